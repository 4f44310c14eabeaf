"""The guest's end of the HTTP callback transport: posts a message and waits for the answer, however long it takes.

Standard library of Python 3.9 only, and no import of ours. A dropped connection, a proxy's timeout or a host that is
restarting is met by posting the same bytes again: the host knows a call by its id and never sees it twice.
"""

import http.client
import os
import urllib.parse
from time import monotonic, sleep

READ_SECONDS = 300.0  # the host speaks up sooner, if only to say that a call is still pending
GIVE_UP_SECONDS = 60.0  # how long the host may be out of reach before the call fails
MAX_PAUSE = 2.0
RETRIED = (408, 429, 502, 503, 504)  # a proxy or a host that says: not now


class HostUnreachable(ConnectionError):
    """The host did not answer for GIVE_UP_SECONDS."""


class HostRefused(RuntimeError):
    """The host answered, and did not take the message."""

    def __init__(self, status, answer):
        super().__init__("the host refused a message (HTTP %d): %s" % (status, answer[:500].decode("utf-8", "replace")))
        self.status = status


class HostClient:
    """Posts to one host over kept connections. Threads may share it: each exchange has a connection of its own."""

    def __init__(self, url, token):
        parts = urllib.parse.urlsplit(url)
        secure = parts.scheme == "https"
        self._connection_class = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        self._address = parts.hostname, parts.port
        self._prefix = parts.path.rstrip("/")
        self._headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
        self._idle = []
        os.register_at_fork(after_in_child=self.close)  # a connection shared by two processes would mix answers

    def post(self, path, body):
        """The body of the host's final answer. Raises HostRefused, HostUnreachable."""
        pause, give_up_at = 0.0, None
        while True:
            try:
                status, answer = self._exchange(path, body)
            except (OSError, http.client.HTTPException) as e:
                problem = "%s: %s" % (type(e).__name__, e)
            else:
                if status == 200:
                    return answer
                if status == 202:
                    pause, give_up_at = 0.0, None
                    continue
                if status not in RETRIED:
                    raise HostRefused(status, answer)
                problem = "HTTP %d" % status
            now = monotonic()
            give_up_at = give_up_at or now + GIVE_UP_SECONDS
            if now >= give_up_at:
                raise HostUnreachable("the host cannot be reached (%s)" % problem)
            sleep(pause)
            pause = min(2 * pause or 0.05, MAX_PAUSE)

    def close(self):
        """Close the connections that are not in use."""
        while self._idle:
            self._idle.pop().close()

    def _exchange(self, path, body):
        connection = self._connect()
        try:
            try:
                connection.request("POST", self._prefix + path, body, self._headers)
            except (BrokenPipeError, ConnectionResetError):
                pass  # a host that refuses a body does not read it, but has said why
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

    def _connect(self):
        try:
            return self._idle.pop()
        except IndexError:
            return self._connection_class(*self._address, timeout=READ_SECONDS)
