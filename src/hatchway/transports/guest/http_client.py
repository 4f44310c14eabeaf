"""Requests to the host that are posted again, byte for byte, until they are answered.

A dropped connection, a proxy's timeout or a host that restarts is met this way: the host knows a call by its id and
never sees it twice.
"""

import re
from time import monotonic, sleep

from . import codec
from .http_connection import Connection, Cut

GIVE_UP_SECONDS = 60.0  # how long the host may be out of reach before a call fails
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
TRY_AGAIN = (408, 429, 502, 503, 504)
OVER = 410

_URL = re.compile(r"(https?)://(\[[0-9A-Fa-f:.]+\]|[^/:@?#]+)(?::([0-9]+))?(/[^?#]*)?")


class HostUnreachable(ConnectionError):
    """The host did not answer for GIVE_UP_SECONDS."""


class HostRefused(RuntimeError):
    """The host, or who speaks for it, will not take the message however often it is sent."""


class HostClient:
    """Connections to one host, kept for the next request. Threads may share it: each request has its own."""

    def __init__(self, url, token):
        scheme, self._host, port, path = _URL.fullmatch(url).groups()
        self._is_secure = scheme == "https"
        self._port = int(port or (443 if self._is_secure else 80))
        self._path = (path or "").rstrip("/")
        headers = "Host: %s:%d\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"
        self._headers = headers % (self._host, self._port, token)
        self._idle = []
        self._pause, self._give_up_at = 0.0, None
        self._is_over = False

    def connect(self):
        """Have a connection ready for the first request; without one it will say what is wrong."""
        connection = self._connection()
        try:
            connection.open()
        except OSError:
            connection.close()
        else:
            self._idle.append(connection)

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
            connection = self._idle.pop() if self._idle else self._connection()
            try:
                connection.send(self._head(path, len(body)) + body)
                return connection
            except OSError as e:
                if type(e).__name__ == "SSLCertVerificationError":
                    raise HostRefused("the host's certificate is not trusted: %s" % e) from None
                self._failed("%s: %s" % (type(e).__name__, e))
        raise EOFError("the host has ended this execution")

    def answer(self, connection):
        """The host's answer, waited for, or None when the request has to be sent again."""
        try:
            status, answer = connection.response()
        except (OSError, Cut) as e:
            return self._failed("%s: %s" % (type(e).__name__, e))
        if connection.is_open:
            self._idle.append(connection)
        if status in TRY_AGAIN:
            return self._failed("HTTP %d: %s" % (status, _reason(answer)))
        self._pause, self._give_up_at = 0.0, None
        if status == OVER:
            self._is_over = True
            raise EOFError("the host has ended this execution")
        if status not in (200, 202):
            raise HostRefused("the host refused a message (HTTP %d): %s" % (status, _reason(answer)))
        return answer if status == 200 else None

    def close(self):
        """Close the connections that are not in use."""
        while self._idle:
            self._idle.pop().close()

    def _head(self, path, size):
        head = "POST %s%s HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n" % (self._path, path, self._headers, size)
        return head.encode("ascii")

    def _connection(self):
        return Connection(self._host, self._port, self._is_secure)

    def _failed(self, problem):
        """Wait before the next attempt, longer each time."""
        now = monotonic()
        self._give_up_at = self._give_up_at or now + GIVE_UP_SECONDS
        if now >= self._give_up_at:
            self._give_up_at = None
            raise HostUnreachable("the host cannot be reached: " + problem)
        sleep(self._pause)
        self._pause = min(2 * self._pause, LONGEST_PAUSE) or FIRST_PAUSE


def _reason(answer):
    try:
        return str(codec.loads(answer)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return answer[:200].decode("utf-8", "replace")
