"""A session: one guest's process kept over several actions, whatever wall is around it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from hatchway.core.errors import CodeLimitError, SandboxCrashed
from hatchway.core.limits import Limits
from hatchway.core.recording import Recording
from hatchway.core.sandbox import CodeExecution, CodeSession, Functions, OnOutput
from hatchway.sandboxes.eviction import GONE, HINT
from hatchway.sandboxes.files_execution import FilesExecution, with_files
from hatchway.sandboxes.guest_execution import GuestExecution
from hatchway.sandboxes.guest_process import GuestProcess
from hatchway.sandboxes.ipython import start_ipython
from hatchway.sandboxes.past import Past
from hatchway.sandboxes.replay import replayed


class GuestSession(CodeSession):
    """The actions of one process, one after the other. What the kernel set at its birth (memory, disk) stays.

    Args:
        process: Where they run; it is killed by `close`.
        limits: The default of each action.
        begin: Starts an action in it: `begin(process, origin, on_output, is_session=)`.
        past: What it did.
    """

    def __init__(
        self, process: GuestProcess, limits: Limits, begin: Callable[..., Awaitable[GuestExecution]], past: Past
    ) -> None:
        self._process, self._limits, self._past = process, limits, past
        self._begin = partial(begin, process, is_session=True)
        self._current: GuestExecution | None = None
        self._gone = GONE
        self._opened_at = asyncio.get_running_loop().time()
        self._is_beginning = False

    async def execute(
        self,
        code: str,
        functions: Functions = (),
        *,
        inputs: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        on_output: OnOutput | None = None,
    ) -> CodeExecution:
        """As the contract says."""
        return await self._start(self._past.fresh(code, functions, inputs, limits or self._limits), on_output)

    async def replay(self, recording: Recording, *, on_output: OnOutput | None = None) -> CodeExecution:
        """As the contract says."""
        return await replayed(recording, partial(self._start, recording), on_output)

    async def repeat(self, actions: Sequence[Recording]) -> None:
        """Run actions again, each to its end; the files they leave are handed back again only when they change.

        Raises:
            ReplayDiverged, CheckpointRefused: One of them went another way.
        """
        await self._past.repeat(actions, self._begin)
        if actions and self._process.output is not None:
            with suppress(CodeLimitError):  # what was too much then is so now
                await self._process.output.collected(actions[-1].limits)

    async def dump(self) -> bytes | None:
        """As the contract says: what its actions said and were told, to be run again."""
        self._check_idle()
        return self._past.sealed()

    @property
    def is_gone(self) -> bool:
        """As the contract says."""
        return self._process.is_dead

    @property
    def idle_since(self) -> float | None:
        """As `Evictable` says."""
        if self._is_beginning:
            return None
        return self._opened_at if self._current is None else self._current.ended_at

    async def evict(self, why: str) -> None:
        """As `Evictable` says."""
        self._gone = f"the session is gone: {why}"
        await self.close()

    async def start_ipython(self, backend: str, facts: Mapping[str, str]) -> None:
        """Have its actions run IPython's way.

        Raises:
            SandboxUnavailable: IPython does not start.
        """
        await start_ipython(self._begin, backend=backend, facts=facts, limits=self._limits)

    async def close(self) -> None:
        """Kill the process, and what runs in it; it is gone, with its files, when this returns."""
        if self._current is not None and not self._current.is_over:
            await self._current.abandon(SandboxCrashed("the session was left while the code ran"))
        self._process.kill()
        await self._process.wait_gone()
        if self._process.output is not None:
            self._process.output.close()
            await self._process.wait_gone()

    async def _start(self, recording: Recording, on_output: OnOutput | None) -> GuestExecution | FilesExecution:
        self._check_idle()
        self._is_beginning = True
        try:
            self._current = await self._past.begin(recording, self._begin, on_output)
        finally:
            self._is_beginning = False
        return with_files(self._current, self._process, recording.limits, is_session=True)

    def _check_idle(self) -> None:
        if self._is_beginning or (self._current is not None and not self._current.is_over):
            raise RuntimeError("the previous action of this session has not ended")
        if self._process.is_dead:
            raise SandboxCrashed(self._gone, hint=HINT)
