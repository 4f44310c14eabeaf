"""The host's end of one execution over HTTP: takes what the guest posts, keeps answers until they are collected."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from hatchway.core.errors import TransportError
from hatchway.core.transport import Received
from hatchway.core.values import to_wire
from hatchway.transports.http_calls import Calls, Outbox
from hatchway.transports.http_connection import Handler, Reply
from hatchway.transports.http_head import Refused
from hatchway.transports.http_inbox import Inbox
from hatchway.transports.http_messages import Message, call_of, claim_of, count_of, decoded, end_of

MAX_UNCOLLECTED_BYTES = 256 * 1024 * 1024
"""Answers the guest has not collected; past this the next answer waits, as on a full pipe."""
LARGE_BYTES = 64 * 1024
"""A body from this size on is decoded off the event loop."""

_OK = Reply(200, b'{"ok": true}')
_PENDING = Reply(202, b'{"pending": true}')
_VIOLATIONS = (400, 409)


class HttpExchange:
    """Calls in, answers out. What the guest posts twice is taken once."""

    def __init__(self, *, poll_seconds: float) -> None:
        self._poll_seconds = poll_seconds
        self._calls = Calls()
        self._outbox = Outbox()
        self._inbox = Inbox()
        self._end: bytes | None = None
        self._collected = asyncio.Event()
        self._unnamed = 0
        self._is_over = False

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
        return await self._inbox.get()

    async def send_result(self, value: Any, call_id: str | None) -> None:
        """Answer a call with a value. Raises ValueNotPortable, ValueError."""
        call_id = self._calls.pending_id(call_id)
        data = to_wire(value, root="result") if _is_small(value) else await asyncio.to_thread(to_wire, value, root="result")
        self._calls.pending_id(call_id)  # while it was encoded, another answer may have come
        await self._answer(call_id, b'{"result":%s}' % data, b'{"type":"result","call_id":%s,"value":%s}', data)

    async def send_error(self, error: Mapping[str, str], call_id: str | None) -> None:
        """Answer a call with an error's type and message. Raises ValueError."""
        call_id = self._calls.pending_id(call_id)
        kind, message = to_wire(error["type"]), to_wire(error["message"])
        held = b'{"error":{"type":%s,"message":%s}}' % (kind, message)
        await self._answer(call_id, held, b'{"type":"error","call_id":%s,"error_type":%s,"message":%s}', kind, message)

    async def _answer(self, call_id: str, held: bytes, form: bytes, *data: bytes) -> None:
        if self._calls[call_id].reply is None:
            self._outbox.add(form % (to_wire(call_id), *data))
        self._calls.answer(call_id, Reply(200, held))
        while not self._is_over and self._calls.uncollected_bytes + self._outbox.bytes > MAX_UNCOLLECTED_BYTES:
            self._collected.clear()
            await self._collected.wait()

    def end(self, reason: str) -> None:
        """Tell everyone that this execution is over: the guest by its open requests, the host by `receive`."""
        self._is_over = True
        gone = Refused(410, reason)
        self._calls.answer_all(Reply(410, gone.body()))
        self._outbox.close(gone)
        self._collected.set()
        self._inbox.fail(TransportError(reason))

    async def _on_call(self, body: bytes) -> Reply:
        message, digest = await _read(body)
        with self._violations_end_it():
            call_id = self._take_call(message, digest, len(body), is_held=True)
        reply = await self._calls.reply(call_id, seconds=self._poll_seconds)
        self._collected.set()
        return reply or _PENDING

    async def _on_complete(self, body: bytes) -> Reply:
        message, digest = await _read(body)
        with self._violations_end_it():
            self._take_end(message, digest, len(body))
        return _OK

    async def _on_messages(self, body: bytes) -> Reply:
        for line in body.splitlines():
            message, digest = await _read(line)
            with self._violations_end_it():
                self._take(message, digest, len(line))
        return _OK

    async def _on_answers(self, body: bytes) -> Reply:
        received = count_of((await _read(body))[0], "received")
        last, answers = await self._outbox.batch(received, seconds=self._poll_seconds)
        self._collected.set()
        return Reply(200, b'{"received":%d,"answers":[%s]}' % (last, b",".join(answers))) if answers else _PENDING

    def _take(self, message: Message, digest: bytes, size: int) -> None:
        match message.get("type"):
            case "function_call":
                self._take_call(message, digest, size, is_held=False)
            case "idle":
                self._take_claim(message, "answers")
            case _:
                self._take_end(message, digest, size)

    def _take_call(self, message: Message, digest: bytes, size: int, *, is_held: bool) -> str:
        call = call_of(message)
        call_id = call.call_id
        if call_id in self._calls:
            if self._calls[call_id].digest != digest or (self._calls[call_id].reply is not None) != is_held:
                raise Refused(409, f"call {call_id} came before, and was another one")
            return call_id
        self._inbox.make_room(size)
        self._calls.add(call_id, digest, is_held=is_held)
        self._inbox.put(call, size)
        if message.get("idle") is not None:
            self._take_claim(message, "idle")
        return call_id

    def _take_claim(self, message: Message, field: str) -> None:
        claim = claim_of(message, field)
        self._inbox.make_room(0)
        self._inbox.put(claim, 0)

    def _take_end(self, message: Message, digest: bytes, size: int) -> None:
        end = end_of(message)
        if self._end != digest:
            self._inbox.make_room(size)
            self._end = digest
            self._inbox.put(end, size)
