"""A sealed child of the zygote: a process with a guest in it."""

from __future__ import annotations

import os

from hatchway.core.errors import SandboxCrashed
from hatchway.sandboxes.jail.egress import Egress
from hatchway.sandboxes.jail.launch import quota_order
from hatchway.sandboxes.jail.sealed_process import SealedProcess
from hatchway.sandboxes.jail.zygote import Zygote
from hatchway.sandboxes.quota import Quota
from hatchway.transports.stdio import StdinStdoutTransport


class SealedChild(SealedProcess):
    """A sealed process with a guest in it. Made by `spawned`."""

    def __init__(self, zygote: Zygote, quota: Quota, egress: Egress | None = None) -> None:
        super().__init__(zygote, quota, egress)
        self.transport = StdinStdoutTransport()
        self.stdout_fd, stdout = os.pipe()
        try:
            self.stderr_fd, stderr = os.pipe()
        except OSError:
            os.close(self.stdout_fd)
            os.close(stdout)
            raise
        self._their_fds = [stdout, stderr]

    @classmethod
    async def spawned(cls, zygote: Zygote, quota: Quota, egress: Egress | None = None) -> SealedChild:
        """A new child whose walls stand.

        Raises:
            SandboxCrashed: The zygote is gone, or a wall could not be put up.
        """
        child = cls(zygote, quota, egress)
        channel = await child._ordered(quota_order(quota), child._their_fds)
        if child.is_dead:
            channel.close()
            raise SandboxCrashed("the jail's child died before it was used", hint="run the action again")
        fd = channel.detach()
        child.transport.adopt(fd, fd)
        return child

    def _give_back(self) -> None:
        self.transport.close()
        for fd in (self.stdout_fd, self.stderr_fd):
            os.close(fd)
        super()._give_back()
