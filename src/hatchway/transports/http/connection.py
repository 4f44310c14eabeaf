"""One connection of the HTTP server: requests are answered one after the other, in the order they came."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from hatchway.transports.http.head import MAX_HEAD_BYTES, REASONS, Refused, parse_head

if TYPE_CHECKING:
    from hatchway.transports.http.server import HttpServer

HEAD_SECONDS = 10.0
"""A connection's first byte, and then the whole head of a request, has to come within this; no call waits for it."""
BODY_SECONDS = 60.0
"""A body may come as slowly as it likes, but not stand still for longer than this."""
IDLE_SECONDS = 600.0
"""A connection unused for this long is closed."""
LINGER_SECONDS = 1.0
"""After a refusal, what the client still sends is dropped unread for this long, so that it can read the reason."""

_WRITE_BYTES = 256 * 1024
_EXTRA_HEADERS = {401: ("WWW-Authenticate: Bearer",), 405: ("Allow: POST",), 503: ("Retry-After: 1",)}


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: its status and its JSON."""

    status: int
    body: bytes


class Body:
    """A whole body, counted against what a server may hold until it is dropped."""

    def __init__(self, data: bytes, on_drop: Callable[[], None]) -> None:
        self.data = data
        """Empty once it is dropped."""
        self._on_drop = on_drop

    def drop(self) -> None:
        """It is decoded, or not needed: an answer may take hours. Legal twice."""
        self.data = b""
        self._on_drop()


Handler = Callable[[Body], Awaitable[Reply]]
"""Gets a body, answers when it likes, and is cancelled when the client goes away. May raise `Refused`."""


class Connection(asyncio.Protocol):
    """Reads requests, asks the server who answers them, writes the answers."""

    _transport: asyncio.Transport

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self.gone: asyncio.Future[None] = self._loop.create_future()
        """Done once the connection is closed for good."""
        self._received = bytearray()
        self._handler: Handler | None = None
        self._body_bytes = 0
        self.task: asyncio.Task[None] | None = None
        """Answers the current request, once that is complete."""
        self.is_known = False
        """Has shown the token at least once."""
        self._unsent = memoryview(b"")
        self._can_write = True
        self._keep_alive = True
        self._refused = False
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._within(HEAD_SECONDS)
        try:
            self._server.admit(self)
        except Refused as e:
            self._refuse(e)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.forget(self)
        self._release()
        self._within(None)
        if self.task is not None:
            self.task.cancel()
        self.gone.set_result(None)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        starts_request = self._handler is None and not self._received
        self._received += data
        if self.task is None:
            if starts_request:
                self._within(HEAD_SECONDS)
            self._advance()
        elif len(self._received) > MAX_HEAD_BYTES:
            self.abort()  # during an answer reading goes on to see the client leave, not to store its next requests

    def pause_writing(self) -> None:
        self._can_write = False

    def resume_writing(self) -> None:
        self._can_write = True
        self._flush()

    def close(self) -> None:
        """Let what is being sent arrive, then close."""
        self._keep_alive = False
        if self.task is not None:
            self.task.cancel()
        if not self._unsent:
            self._transport.close()

    def abort(self) -> None:
        """Close now."""
        self._transport.abort()

    def _advance(self) -> None:
        """Go as far with the current request as the bytes received allow."""
        try:
            if self._handler is None and not self._read_head():
                return
        except Refused as e:
            self._refuse(e)
            return
        if len(self._received) < self._body_bytes:
            self._within(BODY_SECONDS)
            return
        self._within(None)
        assert self._handler is not None
        self.task = self._loop.create_task(self._answer(self._handler, Body(self._take_body(), self._release)))

    def _read_head(self) -> bool:
        end = self._received.find(b"\r\n\r\n", 0, MAX_HEAD_BYTES)
        if end < 0:
            if len(self._received) >= MAX_HEAD_BYTES:
                raise Refused(431, f"the head has more than {MAX_HEAD_BYTES} bytes")
            return False
        head = parse_head(bytes(self._received[:end]))
        self._keep_alive = head.keep_alive
        self._handler = self._server.handler_of(head)
        self.is_known = True
        self._server.reserve(head.length or 0)
        self._body_bytes = head.length or 0
        del self._received[: end + 4]
        if head.expects_continue:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return True

    def _take_body(self) -> bytes:
        with memoryview(self._received) as received:
            body = bytes(received[: self._body_bytes])
        del self._received[: self._body_bytes]
        return body

    def _release(self) -> None:
        self._server.release(self._body_bytes)
        self._body_bytes = 0

    async def _answer(self, handler: Handler, body: Body) -> None:
        try:
            reply = await handler(body)
        except Refused as e:
            reply = Reply(e.status, e.body())
        except Exception as e:
            self._loop.call_exception_handler({"message": "an HTTP callback could not be answered", "exception": e})
            reply = Reply(500, Refused(500, "the host failed to answer").body())
        body.drop()
        self._send(reply)

    def _refuse(self, refusal: Refused) -> None:
        """Say why, keep nothing more, and close once the client had time to read it."""
        self._refused, self._keep_alive = True, False
        self._received.clear()
        self._send(Reply(refusal.status, refusal.body()))

    def _send(self, reply: Reply) -> None:
        if self._transport.is_closing():
            return
        lines = [
            f"HTTP/1.1 {reply.status} {REASONS[reply.status]}",
            "Content-Type: application/json",
            f"Content-Length: {len(reply.body)}",
            *_EXTRA_HEADERS.get(reply.status, ()),
            f"Connection: {'keep-alive' if self._keep_alive else 'close'}\r\n\r\n",
        ]
        head, body = "\r\n".join(lines).encode("ascii"), memoryview(reply.body)
        self._transport.write(head + body[:_WRITE_BYTES])  # in one piece: the guest wakes once
        self._unsent = body[_WRITE_BYTES:]
        self._flush()

    def _flush(self) -> None:
        """Write in pieces: asyncio would copy the rest of one large write into a buffer of its own."""
        while self._unsent and self._can_write:
            piece, self._unsent = self._unsent[:_WRITE_BYTES], self._unsent[_WRITE_BYTES:]
            self._transport.write(piece)
        if self._can_write:
            self._end_request()

    def _end_request(self) -> None:
        self.task, self._handler = None, None
        if self._refused:
            self._within(LINGER_SECONDS)
            self._transport.write_eof()
        elif not self._keep_alive:
            self._transport.close()
        elif self._received:
            self._within(HEAD_SECONDS)
            self._advance()
        else:
            self._within(IDLE_SECONDS)

    def _within(self, seconds: float | None) -> None:
        """The client has this long to go on; None: as long as it likes."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self._loop.call_later(seconds, self._too_late)

    def _too_late(self) -> None:
        if self._refused or (self._handler is None and not self._received):
            self.abort()
        else:
            self._refuse(Refused(408, "the request was not complete in time"))
