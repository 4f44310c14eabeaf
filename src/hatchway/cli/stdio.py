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
from typing import Any

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
    command = await jail.start(argv, stdin=streams[0], stdout=streams[1], stderr=streams[2], limits=limits)
    with _signals_for(command):
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


@contextmanager
def _signals_for(command: JailedCommand) -> Generator[None]:
    """Signals to us are signals to the command."""
    loop = asyncio.get_running_loop()
    pressed = 0

    def hand_on(number: int) -> None:
        nonlocal pressed
        pressed += number == signal.SIGINT
        command.kill() if pressed >= IMPATIENT else command.send_signal(number)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
    for number in numbers:
        loop.add_signal_handler(number, hand_on, number)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


async def through_terminal(jail: CommandJail, argv: Sequence[str], limits: Limits) -> JailedCommand:
    """Run it to its end on a terminal of its own, shown on ours: what it does to its terminal stays there."""
    ours, theirs = os.openpty()
    try:
        _copy_size(ours)
        name = os.environ.get("TERM", "dumb")
        streams: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
        command = await jail.start(argv, **streams, limits=limits, env={"TERM": name}, has_tty=True)
        os.close(theirs)
        theirs = -1
        with _raw_terminal(), _connected(ours), _signals_for(command):
            await command.wait()
            _drain(ours)
    finally:
        for fd in (ours, theirs):
            if fd >= 0:
                os.close(fd)
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
