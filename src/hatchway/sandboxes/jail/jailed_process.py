"""What both tiers offer: a sealed process with a guest in it, and who makes such processes."""

from __future__ import annotations

from typing import Protocol

from hatchway.sandboxes.guest_process import GuestProcess
from hatchway.sandboxes.jail.egress import Gateway
from hatchway.sandboxes.quota import Quota


class JailedProcess(GuestProcess, Protocol):
    """A sealed process for one action, or for the actions of one session."""

    @property
    def quota(self) -> Quota:
        """The limits it was born with."""
        ...

    @property
    def is_fresh(self) -> bool:
        """Whether it is a spare that can be used."""
        ...

    @property
    def gateway(self) -> Gateway | None:
        """Its way to the network; None where it has none."""
        ...


class TierMaker(Protocol):
    """Builds one wall on one event loop, and makes processes behind it."""

    @property
    def is_alive(self) -> bool:
        """Whether it can make processes on the running loop."""
        ...

    async def start(self) -> None:
        """Build the wall.

        Raises:
            SandboxUnavailable: The system refuses a part of it.
            SandboxCrashed: It died while starting.
        """
        ...

    async def make(self, quota: Quota) -> JailedProcess:
        """A new sealed process.

        Raises:
            SandboxCrashed: The wall's own process is gone, or the machine has no room.
        """
        ...

    async def close(self) -> None:
        """Kill everything it made; nothing is left when this returns. Legal twice."""
        ...
