"""The host's end of a zygote: starts it, orders children from it, hears how they died."""

from __future__ import annotations

import array
import asyncio
import json
import os
import socket
import subprocess
from collections.abc import Callable
from typing import Any

from hatchway.core.errors import SandboxCrashed, SandboxUnavailable
from hatchway.sandboxes.jail.cgroups import Cgroups
from hatchway.sandboxes.jail.launch import INSIDE, Launch
from hatchway.sandboxes.jail.refusals import refusal

START_SECONDS = 30.0
END_SECONDS = 5.0
MESSAGE_BYTES = 1 << 16

OnDied = Callable[[dict[str, Any] | None], None]
"""Told how a child ended, when everything of it is dead; None: the zygote is gone, and with it the child."""


class Zygote:
    """A running zygote on one event loop."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket, cgroups: Cgroups | None) -> None:
        self.loop = asyncio.get_running_loop()
        self.cgroups = cgroups
        """Where children are held to their memory; None: by address space alone."""
        self._process = process
        self._control = control
        self._started: asyncio.Future[dict[str, Any]] = self.loop.create_future()
        self._children: dict[int, OnDied] = {}
        self._ordered = 0
        self.is_alive = True
        self.loop.add_reader(control.fileno(), self._on_message)

    @classmethod
    async def start(cls, launch: Launch) -> Zygote:
        """Start one and wait until its walls stand.

        Raises:
            SandboxUnavailable: The system refuses a part of the walls.
            SandboxCrashed: It died while starting.
        """
        cgroups = Cgroups.create()
        process, control = await asyncio.to_thread(_executed, launch)
        zygote = cls(process, control, cgroups)
        try:
            control.send(json.dumps(launch.message(cgroups.folder if cgroups else None)).encode())
            async with asyncio.timeout(START_SECONDS):
                told = await zygote._started
        except BaseException as e:
            await zygote.close()
            if isinstance(e, TimeoutError | OSError):
                raise SandboxCrashed(f"the jail did not start: {e or 'no answer'}", hint="hatchway doctor") from e
            raise
        if "failed" in told:
            await zygote.close()
            raise refusal(launch.tier, told["failed"], told.get("errno", 0))
        return zygote

    @property
    def keeper_pid(self) -> int:
        """The process that everything of the jail dies with."""
        return self._process.pid

    async def order(self, order: dict[str, Any], fds: list[int], on_died: OnDied) -> None:
        """Have a child forked that is given these descriptors.

        Raises:
            SandboxCrashed: The zygote is gone.
        """
        self._ordered += 1
        message = json.dumps({"number": self._ordered, **order}).encode()
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
        self._children[self._ordered] = on_died
        while True:
            try:
                self._control.sendmsg([message], rights)
                return
            except BlockingIOError:
                await asyncio.sleep(0.001)
            except OSError as e:
                raise SandboxCrashed(f"the jail is gone: {os.strerror(e.errno or 0)}", hint="run the action again") from e

    async def close(self) -> None:
        """End it, and with it every child; everything is dead and given back when this returns. Legal twice."""
        self._end()
        deadline = self.loop.time() + END_SECONDS
        while self._process.poll() is None:
            if self.loop.time() > deadline:
                self._process.kill()
            await asyncio.sleep(0.002)
        if self.cgroups is not None:
            self.cgroups.close()

    def _on_message(self) -> None:
        try:
            data = self._control.recv(MESSAGE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._end()
            return
        told: dict[str, Any] = json.loads(data)
        if "died" in told:
            on_died = self._children.pop(told["died"], None)
            if on_died is not None:
                on_died(told)
        elif not self._started.done():
            self._started.set_result(told)

    def _end(self) -> None:
        """The control socket is closed, by either side."""
        if not self.is_alive:
            return
        self.is_alive = False
        self.loop.remove_reader(self._control.fileno())
        self._control.close()
        if not self._started.done():
            self._started.set_exception(SandboxUnavailable("the jail ended while it started", hint="hatchway doctor"))
            self._started.exception()  # whoever waited may be gone
        children, self._children = self._children, {}
        for on_died in children.values():
            on_died(None)


def _executed(launch: Launch) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Executed, not forked: nothing of this process's memory or environment reaches it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [launch.interpreter.executable, "-s", "-S", "-B", str(INSIDE / "keeper.py"), str(theirs.fileno())]
        environment = {"PYTHONHASHSEED": str(launch.hash_seed)}
        try:
            process = subprocess.Popen(
                command, env=environment, cwd="/", pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=None,
            )  # fmt: skip
        except OSError as e:
            ours.close()
            raise SandboxUnavailable(f"{command[0]} cannot be started: {e}", hint=f"try: {command[0]} -V") from e
    ours.setblocking(False)
    return process, ours
