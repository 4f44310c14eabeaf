"""A lease: one worker of the pool, held by one execution, one session or one type check at a time."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable

import pydantic_monty as pm

from hatchway.sandboxes.monty.pilot import Pilot

_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)


class Lease:
    """A worker that is checked out.

    Args:
        session: Monty's handle of it, entered.
        pilot: The thread in which it is used.
        on_return: Called once the worker is back in the pool, or dead.
    """

    def __init__(self, session: pm.MontySession, pilot: Pilot, on_return: Callable[[Lease], None]) -> None:
        self.session = session
        self.pilot = pilot
        self.is_dead = False
        """The worker died or was killed; the pool replaces it."""
        self.feeds = 0
        """Actions fed to it so far."""
        self._pid = session.worker_pid  # later, while the worker has the turn, Monty does not tell
        self._on_return = on_return
        self._returning: asyncio.Future[None] | None = None

    @property
    def is_over(self) -> bool:
        """Whether it was given back, or its worker died."""
        return self.is_dead or self._returning is not None

    def kill(self) -> None:
        """Kill the worker at once, whatever it does."""
        if self.is_over or self._pid is None:
            return
        self.is_dead = True
        try:
            os.kill(self._pid, _KILL)
        except ProcessLookupError:
            pass  # it died by itself

    def give_back(self, then: Callable[[], None] | None = None) -> asyncio.Future[None]:
        """Begin to return the worker, and call `then` afterwards; what runs in it must have been killed."""
        if self._returning is None:
            self._returning = asyncio.get_running_loop().create_future()
            self.pilot.fly(self._returned, self.session.__exit__, None, None, None)
        if then is not None:
            self._returning.add_done_callback(lambda _: then())
        return self._returning

    async def given_back(self) -> None:
        """Return the worker, and wait until that is done; cancelling the wait does not stop it."""
        await asyncio.wait({self.give_back()})

    async def dropped(self) -> None:
        """Kill the worker, and wait until the pool knows."""
        self.kill()
        await self.given_back()

    def _returned(self, _value: None, _error: BaseException | None) -> None:
        """A worker that was killed cannot say goodbye: an error is no news."""
        self._on_return(self)
        if self._returning is not None and not self._returning.done():
            self._returning.set_result(None)
