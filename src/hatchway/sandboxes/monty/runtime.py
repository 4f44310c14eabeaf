"""The running part of a sandbox: its place in the pool, its files, and whatever of it is alive."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

import pydantic_monty as pm

from hatchway.core.calls import as_signature
from hatchway.core.errors import CheckpointRefused, SandboxCrashed
from hatchway.core.grants import FileMount
from hatchway.core.limits import Limits
from hatchway.core.recording import Recording, guest_seed
from hatchway.core.sandbox import CodeExecution, Functions, OnOutput
from hatchway.sandboxes.eviction import Sessions
from hatchway.sandboxes.monty import pool, system
from hatchway.sandboxes.monty.action import Action
from hatchway.sandboxes.monty.checkpoint import Checkpoint, SessionCheckpoint
from hatchway.sandboxes.monty.execution import MontyExecution
from hatchway.sandboxes.monty.files import Files
from hatchway.sandboxes.monty.inward import into_guest
from hatchway.sandboxes.monty.lease import Lease
from hatchway.sandboxes.monty.left_files import with_output
from hatchway.sandboxes.monty.machine import Stop
from hatchway.sandboxes.monty.offer import Offer
from hatchway.sandboxes.monty.output import MontyOutput
from hatchway.sandboxes.monty.printed import Printed
from hatchway.sandboxes.monty.repeat import Repeat
from hatchway.sandboxes.monty.session import MontySession
from hatchway.sandboxes.repeatable import Repeatable
from hatchway.sandboxes.replay import replayed, run_to_end

T = TypeVar("T")
_NO_LIMIT = 10**9
_CLOSED = "the sandbox was closed while the code was running"
_OWN_STOPS = 1_000_000
"""Stops that are no calls: names looked up, files read, sleep."""


class Runtime:
    """Executions, sessions and checks of one sandbox.

    Args:
        mounts: What the code may read.
        environ: The environment variables of the code.
        places: How many sessions may be open, and for how long.
    """

    def __init__(self, mounts: Sequence[FileMount], environ: Mapping[str, str], places: Sessions) -> None:
        self._files = Files(mounts)
        self._places = places
        self._outputs: set[MontyOutput] = set()
        self._removing: set[asyncio.Future[None]] = set()
        self._environ = dict(environ)
        self._executions: set[MontyExecution] = set()
        self._sessions: set[MontySession] = set()

    async def execute(
        self, code: str, functions: Functions, inputs: Mapping[str, Any], limits: Limits, on_output: OnOutput | None
    ) -> Repeatable:
        """Start code in a fresh interpreter."""
        bindings = _bindings(inputs, limits)
        output = self._new_output()
        lease = await (await pool.join(self)).lease(_machine_limits(limits))
        execution = self._begin(lease, self._action(code, functions, limits, on_output, output=output), bindings)
        return with_output(execution, output, limits, is_session=False)

    async def replay(self, recording: Recording, on_output: OnOutput | None) -> CodeExecution:
        """A recorded action, led to where it stood."""

        async def start(on_output: OnOutput | None) -> Repeatable:
            bindings = _bindings(recording.inputs, recording.limits)
            repeat, output = _repeat(recording), self._new_output()
            lease = await (await pool.join(self)).lease(_machine_limits(recording.limits), policy=repeat.policy)
            action = self._action(
                recording.code, recording.functions, recording.limits, on_output, repeat=repeat, output=output
            )
            return with_output(self._begin(lease, action, bindings), output, recording.limits, is_session=False)

        return await replayed(recording, start, on_output)

    @asynccontextmanager
    async def replay_session(self, actions: Sequence[Recording], limits: Limits) -> AsyncGenerator[MontySession]:
        """A session that can be run again, in which these actions are."""
        seed = guest_seed(actions[0].seed) if actions else os.urandom(32)
        lease = await (await pool.join(self)).lease(_session_limits(limits), policy=Repeat(seed).policy)
        async with self._open(lease, limits) as session:
            for action in actions:
                await run_to_end(action, partial(session.begin, action))
            yield session

    async def type_check(self, code: str, stubs: str) -> None:
        """Check code against stubs without running it."""
        await (await pool.join(self)).checks.check(code, stubs)

    async def restore(self, checkpoint: bytes, on_output: OnOutput | None) -> Repeatable | None:
        """The execution of a checkpoint; None when it is refused."""
        try:
            before, vm = Checkpoint.unsealed(checkpoint)
        except CheckpointRefused:
            return None
        printed = Printed(before.limits.output_bytes, on_output, stdout=before.stdout, stderr=before.stderr)
        repeat = (
            None if before.repeat is None else Repeat(before.repeat[0], drawn=before.repeat[1], reads=before.repeat[2])
        )
        output = self._new_output(before.files)
        action = self._made(before.code, Offer(before.styles), before.limits, printed, repeat=repeat, output=output)
        policy = system.POLICY if repeat is None else repeat.policy
        lease = await (await pool.join(self)).lease({"max_suspensions": _NO_LIMIT}, policy=policy)
        options = self._files.load_options(output, before.limits)
        load = partial(lease.session.load_snapshot, vm, print_callback=printed, **options)
        stop = await _loaded(lease, load)
        if not isinstance(stop, Stop):
            await lease.dropped()
            return None
        execution = self._kept(MontyExecution(action, lease, before=before))
        execution.stand_at(stop)
        return with_output(execution, output, before.limits, is_session=False)

    @asynccontextmanager
    async def session(self, limits: Limits) -> AsyncGenerator[MontySession]:
        """A kept interpreter."""
        lease = await (await pool.join(self)).lease(_session_limits(limits))
        async with self._open(lease, limits) as session:
            yield session

    @asynccontextmanager
    async def restored_session(self, checkpoint: bytes) -> AsyncGenerator[MontySession | None]:
        """The session of a checkpoint; None when it is refused."""
        try:
            before, vm = SessionCheckpoint.unsealed(checkpoint)
        except CheckpointRefused:
            yield None
            return
        lease = await (await pool.join(self)).lease({"max_suspensions": _NO_LIMIT})
        if await _loaded(lease, partial(_load_session, lease, vm)) is None:
            yield None
            return
        lease.feeds = before.feeds
        async with self._open(lease, before.limits, before.files) as session:
            yield session

    async def aclose(self) -> None:
        """Kill everything that still runs, give the files back and leave the pool."""
        await asyncio.gather(
            *[execution.abandon(SandboxCrashed(_CLOSED)) for execution in tuple(self._executions)],
            *[session.aclose() for session in tuple(self._sessions)],
        )
        for output in tuple(self._outputs):
            output.close()
        here = asyncio.get_running_loop()
        # those of another loop end in its threads, and are nobody's to wait for here
        await asyncio.gather(*[each for each in self._removing if each.get_loop() is here])
        self._files.close()
        await pool.leave(self)

    @asynccontextmanager
    async def _open(
        self, lease: Lease, limits: Limits, files: Mapping[str, bytes] | None = None
    ) -> AsyncGenerator[MontySession]:
        session = MontySession(lease, limits, self._start_in_session, self._new_output(files, is_given=True))
        self._sessions.add(session)
        try:
            async with self._places.place() as hold:
                hold(session)
                yield session
        finally:
            await asyncio.shield(session.aclose())
            self._sessions.discard(session)

    def _start_in_session(
        self,
        lease: Lease,
        code: str,
        functions: Functions,
        *,
        inputs: Mapping[str, Any],
        limits: Limits,
        on_output: OnOutput | None,
        output: MontyOutput | None,
        repeat: Repeat | None = None,
    ) -> MontyExecution:
        bindings = _bindings(inputs, limits)
        action = self._action(code, functions, limits, on_output, is_session=True, repeat=repeat, output=output)
        return self._begin(lease, action, bindings)

    def _new_output(self, files: Mapping[str, bytes] | None = None, *, is_given: bool = False) -> MontyOutput | None:
        """A place for the files of an action, where files are granted at all."""
        if not self._files.is_any:
            return None
        self._files.check()
        output = MontyOutput(self._on_removing)
        self._outputs.add(output)
        output.put(files or {}, is_given=is_given)
        return output

    def _on_removing(self, output: MontyOutput, removing: asyncio.Future[None]) -> None:
        self._outputs.discard(output)
        self._removing.add(removing)
        removing.add_done_callback(self._removing.discard)

    def _begin(self, lease: Lease, action: Action, bindings: Mapping[str, Any]) -> MontyExecution:
        execution = self._kept(MontyExecution(action, lease))
        execution.begin(bindings)
        return execution

    def _kept(self, execution: MontyExecution) -> MontyExecution:
        self._executions.add(execution)
        execution.on_end = self._executions.discard
        return execution

    def _action(
        self, code: str, functions: Functions, limits: Limits, on_output: OnOutput | None, **settings: Any
    ) -> Action:
        offer = Offer({s.name: s.is_async for s in map(as_signature, functions)})
        return self._made(code, offer, limits, Printed(limits.output_bytes, on_output), **settings)

    def _made(self, code: str, offer: Offer, limits: Limits, printed: Printed, **settings: Any) -> Action:
        return Action(
            code=code,
            offer=offer,
            limits=limits,
            printed=printed,
            files=self._files,
            environ=self._environ,
            **settings,
        )


def _repeat(recording: Recording) -> Repeat:
    """What answers the clocks of a recorded action; its trail was written by the host, so it is as it should be."""
    script = [recorded.trail.get("clock", ()) for recorded in recording.calls]
    return Repeat(guest_seed(recording.seed), script, is_again=bool(recording.calls))


def _bindings(inputs: Mapping[str, Any], limits: Limits) -> dict[str, Any]:
    return {n: into_guest(v, root=f"inputs[{n!r}]", limit=limits.value_bytes) for n, v in inputs.items()}


def _machine_limits(limits: Limits) -> pm.ResourceLimits:
    return {
        "max_feed_duration_secs": min(limits.wall_seconds, _NO_LIMIT),
        "max_memory": limits.memory_bytes,
        "max_suspensions": min(_NO_LIMIT, 2 * limits.calls + _OWN_STOPS),  # a call that is awaited stops twice
    }


def _session_limits(limits: Limits) -> pm.ResourceLimits:
    """Monty sets limits once per session: those of single actions are kept by the host."""
    return {"max_memory": limits.memory_bytes, "max_suspensions": _NO_LIMIT}


def _load_session(lease: Lease, vm: bytes) -> bool:
    lease.session.load_session(vm)
    return True


async def _loaded(lease: Lease, load: Callable[[], T]) -> T | None:
    """What was loaded; None when Monty refuses the bytes, and the worker is gone then."""
    try:
        return await lease.pilot.flown(load)
    except (pm.MontyError, RuntimeError):
        await lease.dropped()
        return None
    except BaseException:
        await asyncio.shield(lease.dropped())
        raise
