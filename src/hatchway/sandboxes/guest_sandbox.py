"""What every sandbox of CPython guests does the same way: actions, sessions, and both run again."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Generic, TypeVar

from hatchway.core.errors import SandboxCrashed
from hatchway.core.limits import DEFAULT_LIMITS, Limits
from hatchway.core.recording import Recording
from hatchway.core.sandbox import CodeExecution, CodeSandbox, CodeSession, Functions, OnOutput
from hatchway.sandboxes.eviction import Sessions
from hatchway.sandboxes.files_execution import FilesExecution, with_files
from hatchway.sandboxes.guest_execution import GuestExecution
from hatchway.sandboxes.guest_process import GuestChannel, GuestProcess
from hatchway.sandboxes.guest_session import GuestSession
from hatchway.sandboxes.past import Past
from hatchway.sandboxes.recorded import Origin, check_facts, fresh
from hatchway.sandboxes.replay import replayed
from hatchway.sandboxes.restoring import restored, restored_session

P = TypeVar("P", bound=GuestProcess)


class GuestSandbox(CodeSandbox, Generic[P]):
    """A sandbox that gives each execution a fresh process with a guest in it, and each session one to keep.

    A backend says how a process is had (`_take`), and closes what it keeps itself.

    Args:
        sessions: How many may be open, and for how long.
    """

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._running: set[GuestExecution] = set()

    @abstractmethod
    async def _take(self, limits: Limits, facts: Mapping[str, str]) -> P:
        """A process nobody has used, held to these limits, with the hash seed of these facts.

        Raises:
            SandboxUnavailable: It cannot be had here.
            SandboxCrashed: What makes them died.
        """

    def _wants_ipython(self) -> bool:
        """Whether sessions run IPython's way.

        Raises:
            InvalidSetting: They should, and there is none.
        """
        return False

    def _channel(self, process: P, limits: Limits) -> GuestChannel:
        """How an action speaks with its process."""
        return process.transport

    def _connect(self, process: P, execution: GuestExecution) -> None:
        """An action is about to begin in this process."""

    async def execute(
        self,
        code: str,
        functions: Functions = (),
        *,
        inputs: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        on_output: OnOutput | None = None,
    ) -> CodeExecution:
        """As the contract says, in a fresh process."""
        return await self._start(fresh(code, functions, inputs, limits or DEFAULT_LIMITS, self.facts), on_output)

    async def replay(self, recording: Recording, *, on_output: OnOutput | None = None) -> CodeExecution:
        """As the contract says; calls that go by another transport are matched by the order the host saw."""
        check_facts(recording.facts, self.facts)
        return await replayed(recording, partial(self._start, recording), on_output)

    async def restore(self, checkpoint: bytes, *, on_output: OnOutput | None = None) -> CodeExecution | None:
        """As the contract says: the code is run again to where it stood."""
        return await restored(checkpoint, self, on_output)

    @asynccontextmanager
    async def session(self, *, limits: Limits | None = None) -> AsyncGenerator[CodeSession]:
        """As the contract says; one process for all actions of the session."""
        async with self.replay_session((), limits=limits) as session:
            yield session

    @asynccontextmanager
    async def replay_session(
        self, actions: Sequence[Recording], *, limits: Limits | None = None
    ) -> AsyncGenerator[CodeSession]:
        """As the contract says."""
        for action in actions:
            check_facts(action.facts, self.facts)
        limits, facts = limits or DEFAULT_LIMITS, {**self.facts, **(actions[0].facts if actions else {})}
        async with self._sessions.place() as hold:
            process = await self._take(limits, facts)
            session = GuestSession(process, limits, self._begin, Past(self.name, facts))
            try:
                if self._wants_ipython():
                    await session.start_ipython(self.name, facts)
                await session.repeat(actions)
                hold(session)
                yield session
            finally:
                await session.close()

    @asynccontextmanager
    async def restore_session(self, checkpoint: bytes) -> AsyncGenerator[CodeSession | None]:
        """As the contract says: its actions are run again."""
        async with restored_session(checkpoint, self) as session:
            yield session

    async def aclose(self) -> None:
        """As the contract says. The sandbox can be used again afterwards."""
        self._running = {execution for execution in self._running if not execution.is_stranded}
        over = SandboxCrashed("the sandbox was closed while the code ran")
        await asyncio.gather(*(execution.abandon(over) for execution in tuple(self._running)))

    async def _start(self, recording: Recording, on_output: OnOutput | None) -> GuestExecution | FilesExecution:
        process = await self._take(recording.limits, recording.facts)
        execution = await self._begin(process, Origin(recording, self.name), on_output, is_session=False)
        return with_files(execution, process, recording.limits, is_session=False)

    async def _begin(
        self, process: P, origin: Origin, on_output: OnOutput | None, *, is_session: bool
    ) -> GuestExecution:
        limits = origin.recording.limits
        execution = GuestExecution(
            process,
            self._channel(process, limits),
            limits=limits,
            tier=self.tier,
            is_session=is_session,
            on_output=on_output,
            on_end=lambda: self._running.discard(execution),
        )
        self._running.add(execution)
        self._connect(process, execution)
        await execution.begin(origin)
        return execution
