"""What the guest asked and what it was answered: a call asked for again is the same call, not a second one."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from dataclasses import dataclass

from hatchway.core.calls import pending_id
from hatchway.transports.http.connection import Reply
from hatchway.transports.http.head import Refused

KEPT_ANSWERS = 256
"""Answers kept after they were handed out, for a guest whose connection dropped before it had read one."""
KEPT_BYTES = 64 * 1024 * 1024
"""Bytes those answers may take together; the latest is kept whatever its size."""
REMEMBERED_CALLS = 10_000
"""Calls remembered by their id alone; an older one that came again would count as a new call."""
BATCH_BYTES = 1024 * 1024
"""Answers sent together up to this size; a larger one goes alone."""

_NOT_KEPT = Reply(404, Refused(404, "this call was answered long ago; the answer is no longer kept").body())


@dataclass(slots=True, eq=False)
class Call:
    """One call of the guest."""

    digest: bytes
    """Of the request: the same id with another request is a violation."""
    reply: asyncio.Future[Reply] | None
    """The answer of a request held open; None for a call whose answer goes to the outbox."""
    is_collected: bool = False
    """The answer was handed out at least once."""


class Calls:
    """Every call by its id. An answer nobody has collected is never dropped."""

    def __init__(self) -> None:
        self._calls: dict[str, Call] = {}
        self._pending: dict[str, Call] = {}
        self._kept: deque[str] = deque()
        self._kept_bytes = 0
        self._remembered: deque[str] = deque()
        self._unnamed = 0
        self.uncollected_bytes = 0
        """Bytes of answers that wait for a guest to ask again."""

    def __getitem__(self, call_id: str) -> Call:
        return self._calls[call_id]

    def get(self, call_id: str) -> Call | None:
        """The call of this id, if there is one."""
        return self._calls.get(call_id)

    def unused_id(self) -> str:
        """An id for a call that came without one; another each time."""
        while True:
            self._unnamed += 1
            if f"host-{self._unnamed}" not in self._calls:
                return f"host-{self._unnamed}"

    def add(self, call_id: str, digest: bytes, *, is_held: bool) -> None:
        """A call seen for the first time."""
        reply = asyncio.get_running_loop().create_future() if is_held else None
        self._calls[call_id] = self._pending[call_id] = Call(digest, reply)

    def pending_id(self, call_id: str | None) -> str:
        """The id meant by an answer.

        Raises:
            InvalidSetting: No such pending call, or several and no `call_id`.
        """
        return pending_id(call_id, self._pending)

    def answer(self, call_id: str, reply: Reply) -> None:
        """Answer a pending call; whoever asks for it, now or later, gets this."""
        call = self._pending.pop(call_id)
        if call.reply is None:
            self._remember(call_id)
        else:
            self.uncollected_bytes += len(reply.body)
            call.reply.set_result(reply)

    def answer_all(self, reply: Reply) -> None:
        """Answer whatever is still pending."""
        for call_id in tuple(self._pending):
            self.answer(call_id, reply)

    async def reply(self, call_id: str, *, seconds: float) -> Reply | None:
        """The answer of a held call, once there is one; None when there is none after so many seconds."""
        call = self._calls[call_id]
        assert call.reply is not None
        await asyncio.wait([call.reply], timeout=seconds)
        if not call.reply.done():
            return None
        reply = call.reply.result()
        if not call.is_collected:
            call.is_collected = True
            self.uncollected_bytes -= len(reply.body)
            self._keep(call_id, len(reply.body))
        return reply

    def _keep(self, call_id: str, size: int) -> None:
        self._kept.append(call_id)
        self._kept_bytes += size
        while len(self._kept) > 1 and (len(self._kept) > KEPT_ANSWERS or self._kept_bytes > KEPT_BYTES):
            self._drop(self._kept.popleft())

    def _drop(self, call_id: str) -> None:
        call = self._calls[call_id]
        assert call.reply is not None
        self._kept_bytes -= len(call.reply.result().body)
        call.reply = asyncio.get_running_loop().create_future()
        call.reply.set_result(_NOT_KEPT)
        self._remember(call_id)

    def _remember(self, call_id: str) -> None:
        self._remembered.append(call_id)
        if len(self._remembered) > REMEMBERED_CALLS:
            del self._calls[self._remembered.popleft()]


class Outbox:
    """Answers for a guest that collects them in batches, numbered from 1; kept until it says how far it has read."""

    def __init__(self) -> None:
        self._answers: deque[bytes] = deque()
        self._first = 1
        self._changed = asyncio.Event()
        self._closed: Refused | None = None
        self.bytes = 0
        """Bytes of answers the guest has not confirmed."""

    def add(self, answer: bytes) -> None:
        """One more answer: a message as JSON."""
        self._answers.append(answer)
        self.bytes += len(answer)
        self._changed.set()

    def confirm(self, received: int) -> None:
        """The guest has every answer up to this number.

        Raises:
            Refused: The number was never sent, or was confirmed before.
        """
        if not self._first - 1 <= received < self._first + len(self._answers):
            raise Refused(409, f"answer {received} was confirmed before, or never sent")
        while self._first <= received:
            self.bytes -= len(self._answers.popleft())
            self._first += 1

    async def batch(self, *, seconds: float) -> tuple[int, list[bytes]]:
        """The answers not confirmed, once there are some, and the number of the last one of them.

        Raises:
            Refused: No more answers will come.
        """
        if not self._answers and self._closed is None:
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._changed.wait()
        if not self._answers and self._closed is not None:
            raise self._closed
        return self._batch()

    def close(self, reason: Refused) -> None:
        """No more answers will come."""
        self._closed = reason
        self._changed.set()

    def _batch(self) -> tuple[int, list[bytes]]:
        answers: list[bytes] = []
        size = 0
        for answer in self._answers:
            size += len(answer)
            if answers and size > BATCH_BYTES:
                break
            answers.append(answer)
        return self._first + len(answers) - 1, answers
