"""A transcript: what host and guest said to each other in one execution, kept so that it can be said again."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

MOST_BYTES = 32 * 1024 * 1024
"""Past this a transcript is dropped: such an execution cannot be dumped, and memory stays flat."""

BLOCK = 256
"""Lines that are packed together: they are read again only when an execution is dumped."""


class Transcript:
    """The order, the calls and the answers, each as the line that crossed."""

    __slots__ = ("_answers", "_calls", "_pending", "_seen", "is_dropped", "order", "size")

    def __init__(self) -> None:
        self.begin(b"")

    def begin(self, order: bytes) -> None:
        """An action begins."""
        self.order = order
        self._calls, self._answers = PackedLines(), PackedLines()
        self._pending: dict[str, bytes] = {}
        self._seen = SeenIds()
        self.size = 0
        self.is_dropped = False

    def has_seen(self, call_id: str) -> bool:
        """Whether a call of this id was made before."""
        return call_id in self._seen

    def called(self, call_id: str, line: bytes) -> None:
        """The guest made a call."""
        self._seen.add(call_id)
        self._pending[call_id] = line
        self._keep(self._calls, line)

    def answered(self, call_id: str, frame: bytes) -> None:
        """The host answered one."""
        self._pending.pop(call_id, None)
        self._keep(self._answers, frame)

    def pending_line(self, call_id: str) -> bytes | None:
        """The line of a call that waits for its answer."""
        return self._pending.get(call_id)

    @property
    def calls(self) -> tuple[bytes, ...]:
        """All calls, in the order in which they were made."""
        return tuple(self._calls)

    @property
    def answers(self) -> tuple[bytes, ...]:
        """All answers, in the order in which they were given."""
        return tuple(self._answers)

    def _keep(self, lines: PackedLines, line: bytes) -> None:
        if self.is_dropped:
            return
        lines.append(line)
        self.size += len(line)
        if self.size > MOST_BYTES:
            self.is_dropped = True
            self._calls, self._answers = PackedLines(), PackedLines()


class PackedLines:
    """Lines in order, all but the last few compressed: ten thousand calls take some hundred kilobytes."""

    __slots__ = ("_last", "_packed")

    def __init__(self) -> None:
        self._last: list[bytes] = []
        self._packed: list[bytes] = []

    def append(self, line: bytes) -> None:
        """Add one; a newline is at its end, if anywhere, and is not kept."""
        self._last.append(line.rstrip(b"\n"))
        if len(self._last) >= BLOCK:
            self._packed.append(zlib.compress(b"\n".join(self._last), 1))
            self._last = []

    def __iter__(self) -> Iterator[bytes]:
        for block in self._packed:
            yield from zlib.decompress(block).split(b"\n")
        yield from self._last


class SeenIds:
    """Call ids that were used. A guest of ours counts, `ACTION.1`, `ACTION.2`, …, so that a number stands for all."""

    __slots__ = ("_action", "_others", "_up_to")

    def __init__(self) -> None:
        self._action = ""
        self._up_to = 0
        self._others: set[str] = set()

    def __contains__(self, call_id: str) -> bool:
        action, number = _counted(call_id)
        return (bool(number) and action == self._action and number <= self._up_to) or call_id in self._others

    def add(self, call_id: str) -> None:
        """Note an id; one that comes before its turn is kept until the gap is filled."""
        action, number = _counted(call_id)
        if number == 1 and not self._up_to:
            self._action = action
        if not number or action != self._action or number != self._up_to + 1:
            self._others.add(call_id)
            return
        self._up_to = number
        while self._others and (following := f"{action}.{self._up_to + 1}") in self._others:
            self._others.remove(following)
            self._up_to += 1


def _counted(call_id: str) -> tuple[str, int]:
    """The two parts of an id that counts; the number is 0 for any other, also for one written in another way."""
    action, _, digits = call_id.partition(".")
    if digits.isascii() and digits.isdigit() and len(digits) < 16 and digits[0] != "0":
        return action, int(digits)
    return "", 0
