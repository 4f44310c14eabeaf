"""A transcript: what host and guest said to each other in one execution, kept so that it can be said again."""

from __future__ import annotations

MOST_BYTES = 32 * 1024 * 1024
"""Past this a transcript is dropped: such an execution cannot be dumped, and memory stays flat."""


class Transcript:
    """The order, the calls by id and the answers, each as the line that crossed."""

    __slots__ = ("answers", "calls", "is_dropped", "order", "size")

    def __init__(self) -> None:
        self.begin(b"")

    def begin(self, order: bytes) -> None:
        """An action begins."""
        self.order = order
        self.calls: dict[str, bytes] = {}
        self.answers: list[bytes] = []
        self.size = 0
        self.is_dropped = False

    def called(self, call_id: str, line: bytes) -> None:
        """The guest made a call."""
        self.calls[call_id] = line
        self.size += len(line)
        if self.size > MOST_BYTES:
            self._drop(call_id, line)

    def answered(self, frame: bytes) -> None:
        """The host answered one."""
        if not self.is_dropped:
            self.answers.append(frame)
            self.size += len(frame)

    def _drop(self, call_id: str, line: bytes) -> None:
        """Keep the last call only: somebody may yet ask for its trail."""
        self.is_dropped = True
        self.calls = {call_id: line}
        self.answers = []
        self.size = len(line)
