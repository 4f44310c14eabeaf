"""One connection to the host: a request is written, its response read as it comes.

Own code instead of `http.client`, which cannot read half a response and come back, takes longer to import than an
action to start, and longer to parse a response than a call to be answered.
"""

import re
import select
import socket

CONNECT_SECONDS = 10.0
READ_SECONDS = 300.0  # the host speaks up sooner, if only to say that a call is still pending
MAX_HEAD = 65536

_STATUS = re.compile(rb"HTTP/1\.[01] ([0-9]{3})[ \r]")
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]+)[ \t]*\r\n", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[ \t]*chunked[ \t]*\r\n", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection:[^\r]*\bclose\b", re.IGNORECASE)


class Cut(Exception):
    """The response ended too early, or is none."""


class Connection:
    """One request at a time. The socket never blocks: each wait costs a thread its turn, so there are few."""

    def __init__(self, host, port, is_secure):
        self._address = host.strip("[]"), port
        self._is_secure = is_secure
        self._socket = None
        self._received = bytearray()
        self._status = 0
        self._length = None
        self._may_stay = True

    @property
    def is_open(self):
        """Whether a request can be sent."""
        return self._socket is not None

    def fileno(self):
        """Readable when more of the response has come."""
        return self._socket.fileno()

    def open(self):
        """Connect. Raises OSError."""
        self._socket = socket.create_connection(self._address, CONNECT_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._is_secure:
            import ssl

            context = ssl.create_default_context()
            self._socket = context.wrap_socket(self._socket, server_hostname=self._address[0])
        self._socket.setblocking(False)

    def send(self, request):
        """Write a whole request, connecting first if need be. Raises OSError."""
        try:
            if self._socket is None:
                self.open()
            left = memoryview(request)
            while left:
                try:
                    left = left[self._socket.send(left) :]
                except OSError as e:
                    self._wait(_wanted(e, select.POLLOUT))
        except (BrokenPipeError, ConnectionResetError):
            pass  # a host that refuses a body does not read it, but has said why
        except BaseException:
            self.close()
            raise

    def has_response(self):
        """Read what has come, without waiting; whether the response is complete, or never will be."""
        try:
            while not self._is_complete():
                try:
                    self._read()
                except OSError as e:
                    return not _wanted(e, select.POLLIN)
        except (OSError, Cut):
            pass  # `response` tells
        return True

    def response(self):
        """The status and the body, waited for. Raises OSError or Cut; the connection is then closed."""
        try:
            while not self._is_complete():
                try:
                    self._read()
                except OSError as e:
                    self._wait(_wanted(e, select.POLLIN))
        except BaseException:
            self.close()
            raise
        return self._taken()

    def close(self):
        """Give the descriptor back."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _read(self):
        data = self._socket.recv(262144)
        if not data:
            raise Cut("the connection was closed")
        self._received += data

    def _wait(self, event):
        poll = select.poll()
        poll.register(self._socket, event)
        if not poll.poll(READ_SECONDS * 1000):
            raise OSError("nothing came for %d seconds" % READ_SECONDS)

    def _is_complete(self):
        while not self._status:
            end = self._received.find(b"\r\n\r\n")
            if end < 0:
                if len(self._received) > MAX_HEAD:
                    raise Cut("the response has no head")
                return False
            self._take_head(bytes(self._received[: end + 2]))
            del self._received[: end + 4]
        if self._length is None:
            return self._received.endswith(b"0\r\n\r\n") and _dechunked(self._received) is not None
        return len(self._received) >= self._length

    def _take_head(self, head):
        status, length = _STATUS.match(head), _LENGTH.search(head)
        if status is None:
            raise Cut("the response is not HTTP")
        self._status = int(status.group(1))
        if self._status < 200:  # an interim response: the real one follows
            self._status = 0
        elif length is None and not _CHUNKED.search(head):
            raise Cut("the response does not say how long it is")
        else:
            self._length = int(length.group(1)) if length else None
            self._may_stay = not _CLOSE.search(head)

    def _taken(self):
        status, length = self._status, self._length
        body = _dechunked(self._received) if length is None else bytes(self._received[:length])
        has_strays = length is not None and len(self._received) > length
        self._received.clear()
        self._status, self._length = 0, None
        if has_strays or not self._may_stay:
            self.close()
        return status, body


def _wanted(error, event):
    """What a socket that would block waits for. Raises the error when it is another one."""
    name = type(error).__name__
    if name == "SSLWantReadError":
        return select.POLLIN
    if name == "SSLWantWriteError":
        return select.POLLOUT
    if isinstance(error, BlockingIOError):
        return event
    raise error


def _dechunked(data):
    """What chunks hold together; None when the last one is not there."""
    parts, at = [], 0
    while True:
        end = data.find(b"\r\n", at)
        if end < 0:
            return None
        try:
            size = int(bytes(data[at:end]).partition(b";")[0], 16)
        except ValueError:
            raise Cut("a chunk is malformed") from None
        at = end + 2
        if size == 0:
            return b"".join(parts)
        parts.append(bytes(data[at : at + size]))
        at += size + 2
