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
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
TRY_AGAIN = (408, 429, 502, 503, 504)
OVER = 410


class HostUnreachable(ConnectionError):
    """The host did not answer for GIVE_UP_SECONDS."""


class HostRefused(RuntimeError):
    """The host answered, and did not take the message."""

    def __init__(self, status, reason):
        super().__init__("the host refused a message (HTTP %d): %s" % (status, reason))
        self.status = status


class HostClient:
    """Connections to one host, kept for the next request. Threads may share it: each request has its own."""

    def __init__(self, url, token):
        parts = urllib.parse.urlsplit(url)
        self._connection_class = _Secure if parts.scheme == "https" else _Plain
        self._address = parts.hostname, parts.port
        self._prefix = parts.path.rstrip("/")
        self._headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
        self._idle = []
        self._pause, self._give_up_at = 0.0, None
        self._is_over = False

    def post(self, path, body):
        """What the host finally answers, waited for.

        Raises HostRefused, HostUnreachable, or EOFError when the host has ended the execution; so do the others.
        """
        answer = None
        while answer is None:
            answer = self.answer(self.send(path, body))
        return answer

    def send(self, path, body):
        """Send a request, trying again while the host is out of reach; the connection its response comes on."""
        while not self._is_over:
            try:
                return self._send(path, body)
            except (OSError, http.client.HTTPException) as e:
                self._failed("%s: %s" % (type(e).__name__, e))
        raise EOFError("the host has ended this execution")

    def answer(self, connection):
        """The host's answer, or None when the request has to be sent again."""
        try:
            status, answer = self._response(connection)
        except (OSError, http.client.HTTPException) as e:
            return self._failed("%s: %s" % (type(e).__name__, e))
        if status in TRY_AGAIN:
            return self._failed("HTTP %d: %s" % (status, _reason(answer)))
        self._pause, self._give_up_at = 0.0, None
        if status == OVER:
            self._is_over = True
            raise EOFError("the host has ended this execution")
        if status not in (200, 202):
            raise HostRefused(status, _reason(answer))
        return answer if status == 200 else None

    def close(self):
        """Close the connections that are not in use."""
        while self._idle:
            self._idle.pop().close()

    def _send(self, path, body):
        connection = self._idle.pop() if self._idle else self._connection_class(*self._address, timeout=READ_SECONDS)
        try:
            connection.request("POST", self._prefix + path, body, self._headers)
        except (BrokenPipeError, ConnectionResetError):
            pass  # a host that refuses a body does not read it, but has said why
        except BaseException:
            connection.close()
            raise
        return connection

    def _response(self, connection):
        try:
            response = connection.getresponse()
            answer = response.read()
            if response.getheader("Content-Length") is None and not response.chunked:
                raise http.client.HTTPException("the response was cut")
        except BaseException:
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            self._idle.append(connection)
        return response.status, answer

    def _failed(self, problem):
        """Wait before the next attempt, longer each time."""
        now = monotonic()
        self._give_up_at = self._give_up_at or now + GIVE_UP_SECONDS
        if now >= self._give_up_at:
            self._give_up_at = None
            raise HostUnreachable("the host cannot be reached: " + problem)
        sleep(self._pause)
        self._pause = min(2 * self._pause, LONGEST_PAUSE) or FIRST_PAUSE


class _InOnePiece:
    """Sends the head of a request together with its body: apart they would wake the host twice."""

    _head = None

    def send(self, data):
        if self._head is None:
            self._head = data
        else:
            head, self._head = self._head, None
            super().send(head + data)


class _Plain(_InOnePiece, http.client.HTTPConnection):
    pass


class _Secure(_InOnePiece, http.client.HTTPSConnection):
    pass


def _reason(answer):
    try:
        return str(codec.loads(answer)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return answer[:200].decode("utf-8", "replace")
