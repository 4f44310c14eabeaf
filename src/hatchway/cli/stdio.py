"""A jailed command in the place of this one: its three streams, its terminal, the signals that were meant for it."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import stat
import sys
import termios
import threading
import tty
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Self

from hatchway.core.limits import Limits
from hatchway.sandboxes.jail.command import JailedCommand, Stream
from hatchway.sandboxes.jail.command_jail import CommandJail

CHUNK = 1 << 16
LAST_SECONDS = 1.0
"""How long output is read on after the command's end."""
IMPATIENT = 3
"""So many Ctrl-C, and the command is killed."""


async def through_pipes(jail: CommandJail, argv: Sequence[str], limits: Limits) -> JailedCommand:
    """Run it to its end. Pipes are handed on; files and terminals are not: the command could open them anew."""
    streams: list[Stream] = ["pipe" if not stat.S_ISFIFO(os.fstat(fd).st_mode) else fd for fd in (0, 1, 2)]
    with _Signals() as signals:
        command = await jail.start(argv, stdin=streams[0], stdout=streams[1], stderr=streams[2], limits=limits)
        signals.hand_to(command)
        if command.stdin is not None:
            threading.Thread(target=_feed, args=(asyncio.get_running_loop(), command.stdin), daemon=True).start()
        pumps = [
            asyncio.create_task(_pump(reader, fd))
            for reader, fd in ((command.stdout, 1), (command.stderr, 2))
            if reader is not None
        ]
        await command.wait()
        if pumps:
            await asyncio.wait(pumps, timeout=LAST_SECONDS)
    return command


def _feed(loop: asyncio.AbstractEventLoop, writer: asyncio.StreamWriter) -> None:
    """Our input to the command's, as fast as it reads; in a thread, because a file cannot be waited for."""

    async def write(data: bytes) -> None:
        writer.write(data)
        await writer.drain()

    with suppress(OSError, RuntimeError):  # it ended, and so did the loop
        while data := os.read(0, CHUNK):
            asyncio.run_coroutine_threadsafe(write(data), loop).result()
        loop.call_soon_threadsafe(writer.close)


async def _pump(reader: asyncio.StreamReader, fd: int) -> None:
    while data := await reader.read(CHUNK):
        await asyncio.to_thread(_write, fd, data)


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


class _Signals:
    """Signals to us are signals to the command; those that come before it runs wait for it."""

    NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._command: JailedCommand | None = None
        self._early: list[int] = []
        self._pressed = 0

    def __enter__(self) -> Self:
        for number in self.NUMBERS:
            self._loop.add_signal_handler(number, self._take, number)
        return self

    def __exit__(self, *_: object) -> None:
        for number in self.NUMBERS:
            self._loop.remove_signal_handler(number)

    def hand_to(self, command: JailedCommand) -> None:
        """The command runs."""
        self._command = command
        for number in self._early:
            self._take(number)

    def _take(self, number: int) -> None:
        if self._command is None:
            self._early.append(number)
            return
        self._pressed += number == signal.SIGINT
        if self._pressed >= IMPATIENT:
            self._command.kill()
        else:
            self._command.send_signal(number)


async def through_terminal(jail: CommandJail, argv: Sequence[str], limits: Limits) -> JailedCommand:
    """Run it to its end on a terminal of its own, shown on ours: what it does to its terminal stays there."""
    ours, theirs = os.openpty()
    try:
        _copy_size(ours)
        streams: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
        env = {"TERM": os.environ.get("TERM", "dumb")}
        with _Signals() as signals:
            command = await jail.start(argv, **streams, limits=limits, env=env, has_tty=True)
            signals.hand_to(command)
            with _raw_terminal(), _connected(ours):
                await command.wait()
                _drain(ours)
    finally:
        os.close(ours)
        os.close(theirs)
    return command


@contextmanager
def _raw_terminal() -> Generator[None]:
    """Every key goes to the command, Ctrl-C too."""
    before = termios.tcgetattr(0)
    tty.setraw(0)
    try:
        yield
    finally:
        sys.stdout.flush()
        termios.tcsetattr(0, termios.TCSAFLUSH, before)


@contextmanager
def _connected(ours: int) -> Generator[None]:
    loop = asyncio.get_running_loop()

    def show() -> None:
        try:
            data = os.read(ours, CHUNK)
        except OSError:
            data = b""
        if not data:
            loop.remove_reader(ours)
        _write(1, data)

    def type_in() -> None:
        if data := os.read(0, CHUNK):
            _write(ours, data)
        else:
            loop.remove_reader(0)

    loop.add_reader(ours, show)
    loop.add_reader(0, type_in)
    loop.add_signal_handler(signal.SIGWINCH, _copy_size, ours)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)
        loop.remove_reader(0)
        loop.remove_reader(ours)


def _drain(ours: int) -> None:
    """What the command wrote last."""
    os.set_blocking(ours, False)
    with suppress(OSError):
        while data := os.read(ours, CHUNK):
            _write(1, data)


def _copy_size(terminal: int) -> None:
    with suppress(OSError):
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(8)))
