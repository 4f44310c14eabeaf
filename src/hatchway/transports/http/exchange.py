"""The host's end of one execution over HTTP: takes what the guest posts, keeps answers until they are collected."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from typing import Any, cast

from hatchway.core.calls import FunctionCall
from hatchway.core.errors import TransportError, ValueNotPortable
from hatchway.core.transport import Completed, Displayed, Failed, Idle, Received
from hatchway.core.values import to_wire
from hatchway.transports import messages
from hatchway.transports.http.calls import Calls, Outbox
from hatchway.transports.http.connection import Body, Handler, Reply
from hatchway.transports.http.head import Refused
from hatchway.transports.http.inbox import Inbox

MAX_UNCOLLECTED_BYTES = 256 * 1024 * 1024
"""Answers the guest has not collected; past this the next one waits, as it would at a full pipe."""
LARGE_BYTES = 64 * 1024
"""Values from this size on are decoded and encoded off the event loop."""

_OK = Reply(200, b'{"ok": true}')
_PENDING = Reply(202, b'{"pending": true}')


class HttpExchange:
    """Calls in, answers out. What the guest posts twice is taken once."""

    def __init__(self, *, value_bytes: int, poll_seconds: float) -> None:
        self._value_bytes = value_bytes
        self._poll_seconds = poll_seconds
        self._calls = Calls()
        self._outbox = Outbox()
        self._inbox = Inbox()
        self._lines: dict[str, bytes] = {}
        self._last: tuple[str, bytes] = ("", b"")
        self._end: bytes | None = None
        self._is_over = False
        self._collected = asyncio.Event()

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """Who answers which path."""
        return {
            "/call": self._on_call,
            "/complete": self._on_complete,
            "/messages": self._on_messages,
            "/answers": self._on_answers,
        }

    async def receive(self) -> Received:
        """The next thing the guest said. Raises TransportError, EOFError."""
        said = await self._inbox.get()
        if isinstance(said, FunctionCall):
            self._last = said.call_id, self._lines.pop(said.call_id)
        return said

    def line(self, call: FunctionCall) -> bytes | None:
        """The call that was given last, as the guest wrote it."""
        call_id, line = self._last
        return line if call_id == call.call_id else None

    async def send_result(self, value: Any, call_id: str | None) -> None:
        """Answer a call with a value. Raises ValueNotPortable, ValueError."""
        call_id = self._calls.pending_id(call_id)
        packed = self._packed(value) if _is_small(value) else await asyncio.to_thread(self._packed, value)
        self._calls.pending_id(call_id)  # meanwhile it may have been answered otherwise
        if self._calls[call_id].reply is None:
            line = b'{"type":"result","call_id":"%s","value":%s}' % (call_id.encode("ascii"), packed)
            await self._answer(call_id, line)
        else:
            await self._answer(call_id, b'{"result":%s}' % packed)

    async def send_error(self, error: BaseException, call_id: str | None) -> None:
        """Answer a call with an error. Raises ValueError."""
        call_id = self._calls.pending_id(call_id)
        line = messages.error(call_id, error)
        if self._calls[call_id].reply is not None:
            told = json.loads(line)
            line = to_wire({"error": {"type": told["error_type"], "message": told["message"]}})
        await self._answer(call_id, line)

    def _packed(self, value: Any) -> bytes:
        packed = to_wire(value, root="result")
        if len(packed) > self._value_bytes:
            message = f"the result takes {len(packed)} bytes on the wire, {self._value_bytes} are accepted"
            raise ValueNotPortable(message, path="result")
        return packed

    async def _answer(self, call_id: str, answer: bytes) -> None:
        if self._calls[call_id].reply is None:
            self._outbox.add(answer.rstrip(b"\n"))
        self._calls.answer(call_id, Reply(200, answer))
        while not self._is_over and self._calls.uncollected_bytes + self._outbox.bytes > MAX_UNCOLLECTED_BYTES:
            self._collected.clear()
            await self._collected.wait()

    def end(self, reason: str) -> None:
        """Tell everyone that the execution is over: the guest by its open requests, the host by `receive`."""
        gone = Refused(410, reason)
        self._is_over = True
        self._calls.answer_all(Reply(gone.status, gone.body()))
        self._outbox.close(gone)
        self._inbox.fail(EOFError(reason))
        self._collected.set()

    async def _on_call(self, body: Body) -> Reply:
        call_id = await self._take(body.data, is_held=True)
        body.drop()
        if call_id is None:
            raise Refused(400, "only calls are posted here")
        reply = await self._calls.reply(call_id, seconds=self._poll_seconds)
        self._collected.set()
        return reply or _PENDING

    async def _on_complete(self, body: Body) -> Reply:
        if await self._take(body.data, is_held=False) is not None:
            raise Refused(400, "calls are posted to /call")
        return _OK

    async def _on_messages(self, body: Body) -> Reply:
        for line in body.data.splitlines():
            await self._take(line, is_held=False)
        return _OK

    async def _on_answers(self, body: Body) -> Reply:
        try:
            received: object = json.loads(body.data)["received"]
        except (ValueError, LookupError, TypeError, RecursionError):
            received = None
        if type(received) is not int:
            raise Refused(400, 'the body has to be {"received": N}')
        self._outbox.confirm(received)
        self._collected.set()
        last, answers = await self._outbox.batch(seconds=self._poll_seconds)
        return Reply(200, b'{"received":%d,"answers":[%s]}' % (last, b",".join(answers))) if answers else _PENDING

    async def _take(self, data: bytes, *, is_held: bool) -> str | None:
        """Check a message and hand it on if it is new; the id of a call.

        Raises:
            Refused: It is no message, which ends the execution; or there is no room for it.
        """
        try:
            spare_id = self._calls.unused_id() if is_held and b'"call_id"' not in data else ""
            if len(data) < LARGE_BYTES:
                message, idle, line = _read(data, spare_id)
            else:
                message, idle, line = await asyncio.to_thread(_read, data, spare_id)
        except TransportError as e:
            self._inbox.fail(e)
            raise Refused(400, e.message) from None
        match message:
            case FunctionCall():
                return self._take_call(message, idle, line, len(data), is_held=is_held)
            case Completed() | Failed():
                self._take_end(message, _digest(line), len(data))
            case Displayed():
                self._inbox.make_room(len(data))
                self._inbox.put(message, len(data))
            case Idle():
                self._inbox.make_room(0)
                self._inbox.put(message, 0)
            case None:
                pass
        return None

    def _take_call(self, call: FunctionCall, idle: int | None, line: bytes, size: int, *, is_held: bool) -> str:
        known, digest = self._calls.get(call.call_id), _digest(line)
        if known is None:
            self._inbox.make_room(size)
            self._lines[call.call_id] = line
            self._calls.add(call.call_id, digest, is_held=is_held)
            self._inbox.put(call, size)
            if idle is not None:
                self._inbox.put(Idle(idle), 0)
        elif known.digest != digest or (known.reply is not None) != is_held:
            self._inbox.fail(problem := TransportError(f"the call id {call.call_id} came twice, with different calls"))
            raise Refused(409, problem.message)
        return call.call_id

    def _take_end(self, end: Completed | Failed, digest: bytes, size: int) -> None:
        if self._end != digest:
            self._inbox.make_room(size)
            self._end = digest
            self._inbox.put(end, size)


def _read(data: bytes, spare_id: str) -> tuple[Received | None, int | None, bytes]:
    """What a message says, the standstill it claims, and its line. Raises TransportError.

    A guest that gives its call no id gets `spare_id`: it cannot ask again, but it can call.
    """
    data = data.strip()
    if spare_id:
        try:
            fields: object = json.loads(data)
        except (ValueError, RecursionError):
            raise TransportError("a message is not readable: it is no JSON") from None
        if type(fields) is not dict:
            raise TransportError("a message is not an object")
        data = json.dumps({"call_id": spare_id, "args": [], "kwargs": {}, **fields}).encode("ascii")
    message, idle = messages.parse(data)
    return message, idle, data


def _digest(line: bytes) -> bytes:
    return hashlib.blake2b(line, digest_size=16).digest()


def _is_small(value: Any, nodes: int = 500) -> bool:
    """Whether a value is surely encoded in well under a millisecond."""
    left: list[Any] = [value]
    while left and nodes:
        nodes -= 1
        item = left.pop()
        if isinstance(item, str | bytes):
            if len(item) > LARGE_BYTES:
                return False
        elif isinstance(item, dict | list | tuple):
            if len(cast("list[Any]", item)) > nodes:
                return False
            left.extend(cast("dict[Any, Any]", item).values() if isinstance(item, dict) else cast("list[Any]", item))
        elif item is not None and not isinstance(item, bool | int | float):
            return False
    return not left
