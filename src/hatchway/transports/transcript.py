"""A transcript: what host and guest said to each other in one execution, kept so that it can be said again."""

from __future__ import annotations

import zlib

MOST_BYTES = 32 * 1024 * 1024
"""Past this a transcript is dropped: such an execution cannot be dumped, and memory stays flat."""

BLOCK = 256
"""Answers that are packed together: they are read again only when an execution is dumped."""


class Transcript:
    """The order, the calls by id and the answers, each as the line that crossed."""

    __slots__ = ("_dropped_ids", "_last", "_packed", "calls", "is_dropped", "order", "size")

    def __init__(self) -> None:
        self.begin(b"")

    def begin(self, order: bytes) -> None:
        """An action begins."""
        self.order = order
        self.calls: dict[str, bytes] = {}
        self._last: list[bytes] = []
        self._packed: list[bytes] = []
        self.size = 0
        self.is_dropped = False
        self._dropped_ids: set[str] = set()

    def has_seen(self, call_id: str) -> bool:
        """Whether a call of this id was made before."""
        return call_id in self.calls or call_id in self._dropped_ids

    def called(self, call_id: str, line: bytes) -> None:
        """The guest made a call."""
        self.calls[call_id] = line
        self.size += len(line)
        if self.size > MOST_BYTES:
            self._drop(call_id, line)

    def answered(self, frame: bytes) -> None:
        """The host answered one."""
        if not self.is_dropped:
            self._last.append(frame)
            self.size += len(frame)
            if len(self._last) >= BLOCK:
                self._packed.append(zlib.compress(b"".join(self._last), 1))
                self._last = []

    @property
    def answers(self) -> tuple[bytes, ...]:
        """All answers, in the order in which they were given."""
        packed = (line for block in self._packed for line in zlib.decompress(block).splitlines(keepends=True))
        return (*packed, *self._last)

    def _drop(self, call_id: str, line: bytes) -> None:
        """Keep the last call only: somebody may yet ask for its trail."""
        self.is_dropped = True
        self._dropped_ids |= self.calls.keys()
        self.calls = {call_id: line}
        self._last, self._packed = [], []
        self.size = len(line)
