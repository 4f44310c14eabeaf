"""A program in the namespaces tier."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import Mapping, Sequence
from typing import Any

from hatchway.core.errors import InvalidSetting, ToolDenied
from hatchway.core.limits import Limits
from hatchway.sandboxes.jail.egress import Egress
from hatchway.sandboxes.jail.launch import quota_order
from hatchway.sandboxes.jail.sealed_process import SealedProcess
from hatchway.sandboxes.jail.zygote import Zygote
from hatchway.sandboxes.quota import Quota

TOLD_BYTES = 4096


class SealedCommand(SealedProcess):
    """A sealed process that became a program. Made by `started`."""

    @classmethod
    async def started(
        cls,
        zygote: Zygote,
        limits: Limits,
        fds: list[int],
        egress: Egress | None,
        *,
        argv: Sequence[str],
        environment: Mapping[str, str],
        has_tty: bool,
    ) -> SealedCommand:
        """A new process whose walls stand and whose program runs; the descriptors are closed here.

        Raises:
            InvalidSetting: There is no such program inside.
            SandboxCrashed: The zygote is gone, or a wall could not be put up.
        """
        command = cls(zygote, Quota.of(limits), egress)
        order = {**quota_order(command.quota, **rlimits(limits)), "argv": list(argv), "environment": dict(environment)}
        channel = await command._ordered({**order, "has_tty": has_tty}, fds)
        with channel:
            if told := await _told(channel):
                command.kill()
                await command.wait_gone()
                raise not_started(argv[0], told["errno"])
        if command.gateway is not None:
            command.gateway.serve_for(command)
        return command

    @property
    def is_over(self) -> bool:
        """As `Caller` says."""
        return self.is_dead

    def offers(self, function_name: str) -> bool:
        """As `Caller` says: a command has no functions, so its requests are made as they come."""
        return False

    def count_call(self) -> None:
        """As `Caller` says; a server runs for days, so its requests are not counted."""

    async def call_beside(self, function_name: str, arguments: Mapping[str, Any]) -> Any:
        """As `Caller` says."""
        raise ToolDenied(f"a command has no function {function_name}")

    def send_signal(self, number: int) -> None:
        """As `CommandBody` says."""
        if self._guest >= 0:
            try:
                signal.pidfd_send_signal(self._guest, number)
            except ProcessLookupError:
                pass  # it has just died


def rlimits(limits: Limits) -> dict[str, tuple[int, int]]:
    """What a guest sets on itself, for a program that does not."""
    files, size = int(limits.open_files), int(limits.file_bytes)
    return {"RLIMIT_NOFILE": (files, files), "RLIMIT_FSIZE": (size, size)}


def not_started(program: str, number: int) -> InvalidSetting:
    """The error for a program that could not be executed."""
    why = os.strerror(number) if number else "it ended at once"
    return InvalidSetting(
        f"{program} cannot be started inside the jail: {why}",
        hint="give the directory it lies in: `hatchway jail --read DIR`, path_rules(read=[DIR]), "
        'or "sandbox": {"read": [DIR]} of an MCP server',
    )


async def _told(channel: socket.socket) -> dict[str, Any] | None:
    """Why the program did not start; None when it did: its start closed the channel."""
    data = await asyncio.get_running_loop().sock_recv(channel, TOLD_BYTES)
    return json.loads(data) if data else None
