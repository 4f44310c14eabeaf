"""Terminal: lines a person types, read without blocking the event loop and without believing type-ahead."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
from contextlib import suppress


class Terminal:
    """The terminal a person sits at; a context manager that gives its descriptor back."""

    def __init__(self, fd: int, *, owned: bool = False) -> None:
        self._fd = fd
        self._owned = owned
        self._rest = b""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._owned:
            os.close(self._fd)

    def forget_typed(self) -> None:
        """Drop what was typed before the question was on the screen: it cannot be an answer to it."""
        self._rest = b""
        with suppress(termios.error):
            termios.tcflush(self._fd, termios.TCIFLUSH)

    async def line(self, *, keeps_spaces: bool = False) -> str | None:
        """The next line without its end and the space around it; None when the person closed the terminal (Ctrl-D)."""
        while b"\n" not in self._rest:
            piece = await self._piece()
            if not piece:
                return None
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        text = line.decode(errors="replace")
        return text.rstrip("\r") if keeps_spaces else text.strip()

    async def _piece(self) -> bytes:
        loop, arrived = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._fd, arrived.set)
        try:
            await arrived.wait()
        finally:
            loop.remove_reader(self._fd)
        return os.read(self._fd, 4096)


def find_terminal(*, stdin_is_code: bool = False) -> Terminal | None:
    """The terminal to ask at: stdin, or the controlling one when stdin carried the code; None when nobody is there."""
    if sys.stdin is not None and sys.stdin.isatty():
        return Terminal(sys.stdin.fileno())
    if stdin_is_code:
        with suppress(OSError):
            return Terminal(os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC), owned=True)
    return None
