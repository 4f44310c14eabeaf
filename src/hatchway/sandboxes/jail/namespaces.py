"""The first tier: namespaces, a read-only root, Landlock and seccomp, with a zygote that forks sealed children."""

from __future__ import annotations

import asyncio

from hatchway.core.errors import SandboxCrashed
from hatchway.sandboxes.jail.child import SealedChild
from hatchway.sandboxes.jail.launch import Launch
from hatchway.sandboxes.jail.zygote import Zygote
from hatchway.sandboxes.quota import Quota


class NamespacesTier:
    """The zygote of one launch description."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self.zygote: Zygote | None = None
        """The running one."""
        self._made: set[SealedChild] = set()

    @property
    def is_alive(self) -> bool:
        """As `TierMaker` says."""
        zygote = self.zygote
        return zygote is not None and zygote.loop is asyncio.get_running_loop() and zygote.is_alive

    async def start(self) -> None:
        """As `TierMaker` says."""
        self.zygote = await Zygote.start(self._launch)

    async def make(self, quota: Quota) -> SealedChild:
        """As `TierMaker` says."""
        if self.zygote is None:
            raise SandboxCrashed("the jail is closed", hint="run the action again")
        self._made = {child for child in self._made if not child.is_dead or child.has_output}
        child = await SealedChild.spawned(self.zygote, quota, self._launch.egress)
        self._made.add(child)
        return child

    async def close(self) -> None:
        """As `TierMaker` says."""
        zygote, self.zygote = self.zygote, None
        try:
            if zygote is not None:
                await zygote.close()
        finally:
            for child in self._made:
                if child.output is not None:
                    child.output.close()
            self._made.clear()
