"""Which wall a jail gets: the forced one, or the strongest the system lets us build. Never silently a weaker one."""

from __future__ import annotations

import logging
from typing import Literal

from hatchway.core.errors import SandboxCrashed, SandboxUnavailable
from hatchway.core.limits import DEFAULT_LIMITS
from hatchway.sandboxes.jail.jailed_process import JailedProcess, TierMaker
from hatchway.sandboxes.jail.landlock import LandlockTier
from hatchway.sandboxes.jail.launch import Launch
from hatchway.sandboxes.jail.namespaces import NamespacesTier
from hatchway.sandboxes.quota import Quota
from hatchway.sandboxes.shortage import NoRoom

JailTier = Literal["namespaces", "landlock"]
NO_SOCKETS = "without namespaces the code has no sockets: allowed domains are reached by fetch only"
_log = logging.getLogger("hatchway")
_told: set[str] = set()
"""The reasons that were logged: a program with many jails says each once."""


class Walls:
    """The maker of a jail's processes; decides about the tier when it first starts.

    Args:
        launch: The jail.
        tier: The tier to have, or none; None takes the strongest.
    """

    def __init__(self, launch: Launch, tier: JailTier | None) -> None:
        self.tier: JailTier | None = tier
        """The tier in force; None until it is decided."""
        self.weaker_because = ""
        """Why it is not the strongest tier; empty when it is, or when it was forced."""
        self._is_forced = tier is not None
        self._launch = launch
        self._maker: TierMaker | None = None
        self._first: JailedProcess | None = None

    @property
    def is_alive(self) -> bool:
        """As `TierMaker` says."""
        return self._maker is not None and self._maker.is_alive

    async def start(self) -> None:
        """As `TierMaker` says."""
        if self.tier is not None:
            self._maker = _made(self.tier, self._launch)
            await self._maker.start()
            return
        try:
            await self._try("namespaces")
        except NoRoom:
            raise  # no reason to hold the code by less
        except (SandboxUnavailable, SandboxCrashed) as refused:
            await self._fall_back(refused)

    async def make(self, quota: Quota) -> JailedProcess:
        """As `TierMaker` says."""
        if self._maker is None:
            raise SandboxCrashed("the jail is closed", hint="run the action again")
        first, self._first = self._first, None
        if first is not None and first.quota == quota and not first.is_dead:
            return first
        return await self._maker.make(quota)

    async def close(self) -> None:
        """As `TierMaker` says."""
        self._first = None
        if self._maker is not None:
            await self._maker.close()

    async def _try(self, tier: JailTier) -> None:
        """A tier counts only once a process was sealed by it."""
        self._maker = _made(tier, self._launch)
        try:
            await self._maker.start()
            process = await self._maker.make(Quota.of(DEFAULT_LIMITS))
        except BaseException:
            await self._maker.close()
            raise
        self._first = process
        self.tier = tier
        _decided[:] = [tier]

    async def _fall_back(self, refused: SandboxUnavailable | SandboxCrashed) -> None:
        try:
            await self._try("landlock")
        except (SandboxUnavailable, SandboxCrashed) as also:
            message = f"no wall can be built here. {refused.message}. {also.message}"
            raise SandboxUnavailable(message, hint=refused.hint) from also
        self.weaker_because = f"{refused.message}; {refused.hint}; {NO_SOCKETS}"
        if self.weaker_because not in _told:
            _told.add(self.weaker_because)
            _log.warning("the jail holds by Landlock only: %s", self.weaker_because)


_decided: list[JailTier] = []


def last_decided() -> JailTier | None:
    """The tier the last jail of this process got that was free to take any; None before that."""
    return _decided[-1] if _decided else None


def _made(tier: JailTier, launch: Launch) -> TierMaker:
    match tier:
        case "namespaces":
            return NamespacesTier(launch)
        case "landlock":
            return LandlockTier(launch)
