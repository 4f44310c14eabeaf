"""Output kept of a running action: all of it up to a limit, past it the beginning and the end."""

from __future__ import annotations

MOST_ERROR_CHARACTERS = 64 * 1024
"""Characters of one error that are told: to the code, to a model, to the journal."""


def shortened(text: str, most: int = MOST_ERROR_CHARACTERS) -> str:
    """The text with its middle left out when it is longer."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters cut …\n{text[-half:]}"


class OutputBuffer:
    """Text of one stream. Past `limit` bytes its middle is dropped and counted.

    Args:
        limit: Bytes of UTF-8 to keep.
    """

    def __init__(self, limit: int) -> None:
        self._head_room, self._tail_room = limit - limit // 2, limit // 2
        self._head, self._tail = bytearray(), bytearray()
        self._dropped = 0

    def append(self, text: str) -> None:
        """Add what was written; lone surrogates become `?`."""
        data = text.encode("utf-8", "replace")
        room = self._head_room - len(self._head)
        if room:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 2 * self._tail_room:  # not each time: cutting a little often would copy a lot
            self._drop()

    @property
    def cut(self) -> int:
        """Bytes dropped so far."""
        self._drop()
        return self._dropped

    def tail(self, most: int) -> str:
        """The last characters written, as far as they are kept."""
        whole = self._tail if self.cut else self._head + self._tail
        return whole.decode("utf-8", "ignore")[-most:] if most > 0 else ""

    def text(self) -> str:
        """What is kept, with a line in the middle that says how much is missing."""
        if not self.cut:
            return (self._head + self._tail).decode("utf-8")
        head, tail = self._head.decode("utf-8", "ignore"), self._tail.decode("utf-8", "ignore")
        kept = len(head.encode("utf-8")) + len(tail.encode("utf-8"))  # halves of characters at the cut are gone too
        cut = self._dropped + len(self._head) + len(self._tail) - kept
        return f"{head}\n… {cut} bytes cut …\n{tail}"

    def _drop(self) -> None:
        over = len(self._tail) - self._tail_room
        if over > 0:
            del self._tail[:over]
            self._dropped += over
