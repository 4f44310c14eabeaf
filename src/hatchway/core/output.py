"""Output kept of a running action: all of it up to a limit, past it the beginning and the end."""

from __future__ import annotations

from collections import deque


class OutputBuffer:
    """Text of one stream. Past `limit` bytes its middle is dropped and counted.

    Args:
        limit: Bytes of UTF-8 to keep.
    """

    def __init__(self, limit: int) -> None:
        self._head_room = limit - limit // 2
        self._tail_room = limit // 2
        self._head: list[str] = []
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self.cut = 0
        """Bytes dropped so far."""

    def append(self, text: str) -> None:
        """Add what was written; lone surrogates become `?`."""
        data = text.encode("utf-8", "replace")
        if self._head_room and not self._tail:
            data = self._fill_head(data)
        if data:
            self._tail.append(data)
            self._tail_bytes += len(data)
            self._drop()

    def text(self) -> str:
        """What is kept, with a line in the middle that says how much is missing."""
        tail = b"".join(self._tail)
        if not self.cut:
            return "".join(self._head) + tail.decode("utf-8", "replace")
        while tail and tail[0] & 0xC0 == 0x80:  # the cut fell inside a character
            tail, self.cut = tail[1:], self.cut + 1
        return f"{''.join(self._head)}\n… {self.cut} bytes cut …\n{tail.decode('utf-8', 'replace')}"

    def _fill_head(self, data: bytes) -> bytes:
        """Put into the head what fits whole characters; the rest goes to the tail."""
        end = min(len(data), self._head_room)
        while 0 < end < len(data) and data[end] & 0xC0 == 0x80:
            end -= 1
        self._head.append(data[:end].decode("utf-8"))
        self._head_room -= end
        return data[end:]

    def _drop(self) -> None:
        while self._tail_bytes - len(self._tail[0]) > self._tail_room:
            gone = len(self._tail.popleft())
            self._tail_bytes -= gone
            self.cut += gone
        over = self._tail_bytes - self._tail_room
        if over > 0:
            self._tail[0] = self._tail[0][over:]
            self._tail_bytes -= over
            self.cut += over
