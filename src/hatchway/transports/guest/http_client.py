"""Requests to the host that are posted again, byte for byte, until they are answered.

A dropped connection, a proxy's timeout or a host that restarts is met this way: the host knows a call by its id and
never sees it twice.
"""

import http.client
import urllib.parse
from time import monotonic, sleep

from . import codec

READ_SECONDS = 300.0  # the host speaks up sooner, if only to say that a call is still pending
GIVE_UP_SECONDS = 60.0  # how long the host may be out of reach before a call fails
LONGEST_PAUSE = 2.0
TRY_AGAIN = (408, 429, 502, 503, 504)


class HostUnreachable(ConnectionError):
    """The host did not answer for GIVE_UP_SECONDS."""


class HostRefused(RuntimeError):
    """The host answered, and did not take the message."""

    def __init__(self, status, answer):
        super().__init__("the host refused a message (HTTP %d): %s" % (status, _reason(answer)))
        self.status = status


def _reason(answer):
    try:
        return str(codec.loads(answer)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return answer[:200].decode("utf-8", "replace")


class HostClient:
    """Connections to one host, kept for the next request. Threads may share it."""

    def __init__(self, url, token):
        parts = urllib.parse.urlsplit(url)
        is_secure = parts.scheme == "https"
        self._connection_class = http.client.HTTPSConnection if is_secure else http.client.HTTPConnection
        self._address = parts.hostname, parts.port
        self._prefix = parts.path.rstrip("/")
        self._headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
        self._idle = []

    def post(self, path, body):
        """What the host finally answers, waited for. Raises HostRefused, HostUnreachable."""
        request = Request(self, path, body)
        answer = None
        while answer is None:
            request.send()
            answer = request.answer()
        return answer

    def send(self, path, body):
        """Send one request; the connection its response will come on. Raises OSError."""
        connection = self._idle.pop() if self._idle else self._connection_class(*self._address, timeout=READ_SECONDS)
        try:
            connection.request("POST", self._prefix + path, body, self._headers)
        except (BrokenPipeError, ConnectionResetError):
            if connection.sock is None:
                raise
            # a host that refuses a body does not read it, but has said why
        except BaseException:
            connection.close()
            raise
        return connection

    def response(self, connection):
        """The status and the body that came. Raises OSError, HTTPException."""
        try:
            response = connection.getresponse()
            answer = response.read()
        except BaseException:
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            self._idle.append(connection)
        return response.status, answer

    def close(self):
        """Close the connections that are not in use."""
        while self._idle:
            self._idle.pop().close()


class Request:
    """One message on its way, and how long it has been failing."""

    def __init__(self, client, path, body, call_id=None):
        self.path = path
        self.call_id = call_id
        self.connection = None
        self._client = client
        self._body = body
        self._pause, self._give_up_at = 0.0, None

    def send(self):
        """Post it, trying again while the host is out of reach. Raises HostUnreachable."""
        while True:
            try:
                self.connection = self._client.send(self.path, self._body)
                return
            except (OSError, http.client.HTTPException) as e:
                self._failed("%s: %s" % (type(e).__name__, e))

    def answer(self):
        """The host's answer, or None when the request has to be sent again. Raises HostRefused, HostUnreachable."""
        try:
            status, answer = self._client.response(self.connection)
        except (OSError, http.client.HTTPException) as e:
            return self._failed("%s: %s" % (type(e).__name__, e))
        if status == 200:
            return answer
        if status in TRY_AGAIN:
            return self._failed("HTTP %d: %s" % (status, _reason(answer)))
        if status != 202:
            raise HostRefused(status, answer)
        self._pause, self._give_up_at = 0.0, None
        return None

    def _failed(self, problem):
        now = monotonic()
        self._give_up_at = self._give_up_at or now + GIVE_UP_SECONDS
        if now >= self._give_up_at:
            raise HostUnreachable("the host cannot be reached: " + problem)
        sleep(self._pause)
        self._pause = min(2 * self._pause or 0.05, LONGEST_PAUSE)
