"""A transcript: what host and guest said to each other in one execution, kept so that it can be said again."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

MOST_BYTES = 32 * 1024 * 1024
"""Past this a transcript is dropped: such an execution cannot be dumped, and memory stays flat."""

BLOCK = 64 * 1024
"""Bytes of lines that are packed together: they are read again only when an execution is dumped."""


class Transcript:
    """The order, the calls and the answers, each as the line that crossed."""

    __slots__ = ("_is_mixed", "_seen", "answers", "calls", "given", "is_dropped", "order", "pending", "size")

    def __init__(self) -> None:
        self.begin(b"")

    def begin(self, order: bytes) -> None:
        """An action begins."""
        self.order = order
        self.pending: dict[str, bytes] = {}
        """The calls that wait for their answer."""
        self.calls, self.answers = PackedLines(), PackedLines()
        """In the order in which they were made and given. Whoever took them keeps them when the next action begins."""
        self._seen = SeenIds()
        self.size = self.given = 0
        self._is_mixed = self.is_dropped = False

    def called(self, call_id: str, line: bytes) -> int:
        """The guest made a call; its bytes, or 0 when one of this id was made before, and nothing is kept."""
        if not self._seen.add(call_id):
            return 0
        if self._is_mixed:  # how many answers of all there were: the guest counts those on its channel
            line = b'%s,"given":%d}\n' % (line.rstrip()[:-1], self.given)
        size = len(line)
        self.pending[call_id] = line
        if not self.is_dropped:
            self.calls.append(line, size)
            self.size += size
            if self.size > MOST_BYTES:
                self._drop()
        return size

    def called_beside(self, call_id: str, line: bytes) -> None:
        """The guest made a call by another way than this channel."""
        self._is_mixed = True
        self.called(call_id, line)

    def answered(self, call_id: str, frame: bytes) -> int:
        """The host answered one; the bytes its call had, 0 when it was not pending."""
        self.given += 1
        if not self.is_dropped:
            size = len(frame)
            self.answers.append(frame, size)
            self.size += size
            if self.size > MOST_BYTES:
                self._drop()
        return len(self.pending.pop(call_id, b""))

    def _drop(self) -> None:
        self.is_dropped = True
        self.calls, self.answers = PackedLines(), PackedLines()


class PackedLines:
    """Lines in order, all but the last few compressed: ten thousand calls take some hundred kilobytes."""

    __slots__ = ("_last", "_packed", "_room")

    def __init__(self) -> None:
        self._last: list[bytes] = []
        self._packed: list[bytes] = []
        self._room = BLOCK

    def append(self, line: bytes, size: int) -> None:
        """Add one of so many bytes; a newline is at its end, if anywhere, and is not kept."""
        self._last.append(line)
        self._room -= size
        if self._room < 0:
            self._packed.append(zlib.compress(b"\n".join(self._bare()), 1))
            self._last, self._room = [], BLOCK

    def __iter__(self) -> Iterator[bytes]:
        for block in self._packed:
            yield from zlib.decompress(block).split(b"\n")
        yield from self._bare()

    def _bare(self) -> list[bytes]:
        return [line.rstrip(b"\n") for line in self._last]


class SeenIds:
    """Call ids that were used. A guest of ours counts, `ACTION.1`, `ACTION.2`, …, so that a number stands for all."""

    __slots__ = ("_action", "_expected", "_others", "_up_to")

    def __init__(self) -> None:
        self._action = self._expected = ""
        self._up_to = 0
        self._others: set[str] = set()

    def add(self, call_id: str) -> bool:
        """Note an id; False when it was noted before."""
        if call_id == self._expected and not self._others:  # the next in turn, as nearly always
            self._up_to += 1
            self._expected = f"{self._action}.{self._up_to + 1}"
            return True
        action, number = _counted(call_id)
        if call_id in self._others or (number and action == self._action and number <= self._up_to):
            return False
        if number == 1 and not self._up_to:
            self._action, self._expected = action, call_id
        self._others.add(call_id)  # it may have come before its turn
        while self._up_to < number and self._expected in self._others:
            self._others.remove(self._expected)
            self._up_to += 1
            self._expected = f"{self._action}.{self._up_to + 1}"
        return True


def _counted(call_id: str) -> tuple[str, int]:
    """The two parts of an id that counts; the number is 0 for any other, also for one written in another way."""
    action, _, digits = call_id.partition(".")
    if digits.isascii() and digits.isdigit() and len(digits) < 16 and digits[0] != "0":
        return action, int(digits)
    return "", 0
