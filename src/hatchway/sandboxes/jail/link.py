"""A control socket to a zygote or to one of its copies: orders go out, deaths come in."""

from __future__ import annotations

import array
import asyncio
import json
import os
import socket
from collections.abc import Callable
from typing import Any

from hatchway.core.errors import SandboxCrashed, SandboxUnavailable

MESSAGE_BYTES = 1 << 16
RETRY_SECONDS = 0.001
"""Between two attempts to order when the socket is full."""

OnDied = Callable[[dict[str, Any] | None], None]
"""Told how a child ended, when everything of it is dead; None: its zygote is gone, nobody knows."""


class Link:
    """One end of a control socket on the running loop; it is owned: `close` it."""

    def __init__(self, control: socket.socket) -> None:
        self.loop = asyncio.get_running_loop()
        self.is_alive = True
        self._control = control
        self._first: asyncio.Future[dict[str, Any]] = self.loop.create_future()
        self._children: dict[int, OnDied] = {}
        self._ordered = 0
        control.setblocking(False)
        self.loop.add_reader(control.fileno(), self._on_message)

    def is_heard(self) -> bool:
        """Whether the other side is there, as of now: its end may not have been read yet."""
        if self.is_alive:
            self._on_message()
        return self.is_alive

    async def first_message(self) -> dict[str, Any]:
        """What the other side says when it is ready, or why it is not.

        Raises:
            SandboxUnavailable: It ended without a word.
        """
        return await self._first

    async def send(self, message: dict[str, Any], fds: list[int] | None = None) -> None:
        """Send a message with descriptors.

        Raises:
            SandboxCrashed: The other side is gone.
        """
        data = json.dumps(message).encode()
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        while True:
            try:
                self._control.sendmsg([data], rights)
                return
            except BlockingIOError:
                await asyncio.sleep(RETRY_SECONDS)
            except OSError as e:
                reason = os.strerror(e.errno or 0)
                raise SandboxCrashed(f"the jail is gone: {reason}", hint="run the action again") from e

    async def order(self, order: dict[str, Any], fds: list[int], on_died: OnDied) -> None:
        """Have a child forked that is given these descriptors.

        Raises:
            SandboxCrashed: The zygote is gone.
        """
        self._ordered += 1
        self._children[self._ordered] = on_died
        await self.send({"number": self._ordered, **order}, fds)

    def close(self) -> None:
        """Close the socket, whose other side then ends itself and its children. Legal twice."""
        if not self.is_alive:
            return
        self.is_alive = False
        self.loop.remove_reader(self._control.fileno())
        self._control.close()
        if not self._first.done():
            self._first.set_exception(SandboxUnavailable("the jail ended while it started", hint="hatchway doctor"))
            self._first.exception()  # whoever waited may be gone
        children, self._children = self._children, {}
        for on_died in children.values():
            on_died(None)

    def _on_message(self) -> None:
        try:
            data = self._control.recv(MESSAGE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        told: dict[str, Any] = json.loads(data)
        if "died" in told:
            on_died = self._children.pop(told["died"], None)
            if on_died is not None:
                on_died(told)
        elif not self._first.done():
            self._first.set_result(told)
