"""The calls of one execution by their id: a call asked for again is the same call, not a second one."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

from hatchway.transports.http_connection import Reply
from hatchway.transports.http_head import Refused

KEPT_ANSWERS = 256
"""Answers kept after they were handed out, for a guest whose connection dropped before it had read one."""
KEPT_BYTES = 64 * 1024 * 1024
"""Bytes those answers may take together; the latest is kept whatever its size."""
REMEMBERED_CALLS = 100_000
"""Answered calls whose id is remembered; an older one that came again would count as a new call."""

_NOT_KEPT = Reply(410, Refused(410, "this call was answered long ago; the answer is no longer kept").body())


@dataclass(slots=True, eq=False)
class _Call:
    digest: bytes
    reply: asyncio.Future[Reply]
    is_collected: bool = False


class Calls:
    """Who asked what, and what the answer was. An answer nobody has collected is never dropped."""

    def __init__(self) -> None:
        self._calls: dict[str, _Call] = {}
        self._pending: dict[str, _Call] = {}
        self._kept: deque[str] = deque()
        self._kept_bytes = 0
        self._remembered: deque[str] = deque()

    def __contains__(self, call_id: str) -> bool:
        return call_id in self._calls

    def is_same(self, call_id: str, digest: bytes) -> bool:
        """Whether the request known by this id had this digest."""
        return self._calls[call_id].digest == digest

    def add(self, call_id: str, digest: bytes) -> None:
        """A call seen for the first time."""
        call = _Call(digest, asyncio.get_running_loop().create_future())
        self._calls[call_id] = self._pending[call_id] = call

    async def reply(self, call_id: str, *, seconds: float) -> Reply | None:
        """The answer, once there is one; None when there is none after so many seconds."""
        call = self._calls[call_id]
        await asyncio.wait([call.reply], timeout=seconds)
        if not call.reply.done():
            return None
        reply = call.reply.result()
        self._collect(call_id, call)
        return reply

    def pending_id(self, call_id: str | None) -> str:
        """The id meant by an answer.

        Raises:
            ValueError: No such pending call, or several and no `call_id`.
        """
        if call_id is None:
            if len(self._pending) != 1:
                raise ValueError(f"{len(self._pending)} calls are pending: say which by call_id")
            return next(iter(self._pending))
        if call_id not in self._pending:
            raise ValueError(f"no pending call {call_id!r}")
        return call_id

    def answer(self, call_id: str, reply: Reply) -> None:
        """Answer a pending call; it is handed to whoever asks, now or later."""
        self._pending.pop(call_id).reply.set_result(reply)

    def answer_all(self, reply: Reply) -> None:
        """Answer whatever is still pending."""
        for call_id in tuple(self._pending):
            self.answer(call_id, reply)

    def _collect(self, call_id: str, call: _Call) -> None:
        if call.is_collected:
            return
        call.is_collected = True
        self._kept.append(call_id)
        self._kept_bytes += len(call.reply.result().body)
        while len(self._kept) > 1 and (len(self._kept) > KEPT_ANSWERS or self._kept_bytes > KEPT_BYTES):
            self._drop(self._kept.popleft())

    def _drop(self, call_id: str) -> None:
        call = self._calls[call_id]
        self._kept_bytes -= len(call.reply.result().body)
        call.reply = asyncio.get_running_loop().create_future()
        call.reply.set_result(_NOT_KEPT)
        self._remembered.append(call_id)
        if len(self._remembered) > REMEMBERED_CALLS:
            del self._calls[self._remembered.popleft()]
