"""A stream that changes its meaning at a mark: the program's output before, what the container hands out after."""

from __future__ import annotations

import codecs
from typing import Literal

from hatchway.core.output import OutputBuffer
from hatchway.core.sandbox import OnOutput


class StreamText:
    """Text of one stream as it comes: decoded, capped, handed on."""

    def __init__(self, name: Literal["stdout", "stderr"], limit: int, on_output: OnOutput | None) -> None:
        self._name: Literal["stdout", "stderr"] = name
        self._kept = OutputBuffer(limit)
        self._on_output = on_output
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def take(self, data: bytes, *, is_last: bool = False) -> None:
        """Some bytes more."""
        if text := self._decode(data, is_last):
            self._kept.append(text)
            if self._on_output is not None:
                self._on_output(self._name, text)

    def text(self) -> str:
        """What is kept; nothing comes after this."""
        self.take(b"", is_last=True)
        return self._kept.text()


class MarkedStream:
    """Splits stdout at a line that nobody else knows.

    Args:
        mark: The line begins with it; secret, so that the program does not print it by accident.
        output: Takes what stands before it.
        room: Bytes kept of what stands behind it; more is dropped.
    """

    def __init__(self, mark: bytes, output: StreamText, room: int) -> None:
        self._needle = b"\n" + mark + b" "
        self._output = output
        self._room = room
        self._held: bytes = b""
        self._behind: bytearray | None = None
        self.is_cut = False
        """Whether more stood behind it than there is room for."""

    def take(self, data: bytes) -> None:
        """Some bytes more."""
        if self._behind is None:
            data = self._held + data
            place = data.find(self._needle)
            if place < 0:
                keep = self._begun(data)
                self._output.take(data[: len(data) - keep])
                self._held = data[len(data) - keep :]
                return
            self._output.take(data[:place])
            self._held, self._behind = b"", bytearray()
            data = data[place + len(self._needle) :]
        room = self._room - len(self._behind)
        self._behind += data[:room]
        self.is_cut = self.is_cut or len(data) > room

    def _begun(self, data: bytes) -> int:
        """How many bytes at the end may be the beginning of the mark."""
        place = data.rfind(b"\n", -len(self._needle))
        return len(data) - place if place >= 0 and self._needle.startswith(data[place:]) else 0

    def finish(self) -> tuple[str, bytes] | None:
        """The word behind the mark, and the bytes of the lines after it; None when the mark never came."""
        self._output.take(self._held)
        self._held = b""
        if self._behind is None:
            return None
        word, _, rest = bytes(self._behind).partition(b"\n")
        return word.decode("ascii", "replace"), rest
