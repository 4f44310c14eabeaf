"""Replaying: a journaled run is run again with the answers it got, no tool called, and compared with what it did."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

from hatchway.core.calls import FunctionCall, Waiting
from hatchway.core.codec import dumps
from hatchway.core.errors import CheckpointRefused, CodeExecutionError, HatchwayError, ReplayDiverged
from hatchway.core.recording import Recording
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeExecution, CodeSandbox, CodeSession
from hatchway.core.signing import run_seed
from hatchway.core.values import as_python
from hatchway.journal.entries import RunRow
from hatchway.journal.store import Journal
from hatchway.mode.recovery import MOST_ACTIONS, check_key, recording_of
from hatchway.sandboxes.replay import shown

End = ExecutionResult | CodeExecutionError | tuple[FunctionCall, ...]
"""Where code came to: its result, its error, or the calls it stands at."""

Known = ExecutionResult | HatchwayError | tuple[FunctionCall, ...]
"""As `End`, as the journal tells it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The first thing that went another way."""

    what: str
    """Such as `call`, `output`, `stdout` or `files`."""
    expected: str
    """What the journal has."""
    actual: str
    """What the code did now."""
    line: int = 0
    """The line of the code; 0 where it cannot be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """A run that was run again."""

    run_id: str
    calls: int
    """Calls that were answered from the journal."""
    standing: int
    """Calls it stands at, when the run has not ended."""
    difference: Difference | None
    """None: it went as before."""


async def replay_run(journal: Journal, run: RunRow, sandbox: CodeSandbox) -> Replayed:
    """Run a run again from the journal; nothing is called and nothing is written.

    Raises:
        CheckpointRefused: It cannot be run again here: another key or sandbox, a redacted result.
        SandboxUnavailable, SandboxCrashed, TransportError: The host failed.
    """
    recording = await asyncio.to_thread(_recording, journal, run)
    answered = {answer.call_id for answer in recording.answers}
    standing = tuple(made.call for made in recording.calls if made.call.call_id not in answered)
    try:
        async with _where(journal, run, sandbox) as where:
            end = await _ended(where, recording)
        difference = _compared(run.ending, standing, end)
    except ReplayDiverged as e:
        difference = Difference(what="call", expected=e.expected or "no further call", actual=e.actual, line=e.line)
    return Replayed(run_id=run.run_id, calls=len(answered), standing=len(standing), difference=difference)


def _recording(journal: Journal, run: RunRow) -> Recording:
    check_key(run.head)
    seed = run_seed(run.session_id or run.run_id)
    return replace(recording_of(run.head, journal.history(run.run_id), seed), printed={})


@asynccontextmanager
async def _where(journal: Journal, run: RunRow, sandbox: CodeSandbox) -> AsyncGenerator[CodeSandbox | CodeSession]:
    """The sandbox, or the session of the run with its earlier actions run again."""
    if not run.session_id:
        yield sandbox
        return
    rows = await asyncio.to_thread(partial(journal.runs, session_id=run.session_id, limit=MOST_ACTIONS))
    earlier = [await asyncio.to_thread(_recording, journal, row) for row in rows if row.place < run.place]
    async with sandbox.replay_session(earlier, limits=run.head.limits) as session:
        if session is None:
            raise CheckpointRefused(f"the sandbox {sandbox.name} cannot run a session again")
        yield session


async def _ended(where: CodeSandbox | CodeSession, recording: Recording) -> End:
    try:
        execution = await where.replay(recording)
    except CodeExecutionError as e:
        return e
    if execution is None:
        raise CheckpointRefused("the sandbox of the run cannot run code again")
    try:
        return await _stood(execution)
    finally:
        await execution.cancel()


async def _stood(execution: CodeExecution) -> End:
    """Where the code comes to when no call is answered any more."""
    while True:
        try:
            event = await execution.next()
        except CodeExecutionError as e:
            return e
        match event:
            case FunctionCall():
                pass  # told again with all others once the code cannot go on
            case Waiting(pending=pending):
                return pending
            case ExecutionResult():
                return event


def _compared(
    ending: ExecutionResult | HatchwayError | None, standing: Sequence[FunctionCall], end: End
) -> Difference | None:
    before: Known = tuple(standing) if ending is None else ending
    match before, end:
        case ExecutionResult(), ExecutionResult():
            return _results(before, end)
        case CodeExecutionError(), CodeExecutionError():
            same = (type(before), before.message) == (type(end), end.message)
            return None if same else Difference(what="error", expected=str(before), actual=str(end))
        case tuple(), tuple():
            expected, actual = ({call.call_id for call in calls} for calls in (standing, end))
            return None if expected == actual else _ends(before, end)
        case _:
            return _ends(before, end)


def _results(before: ExecutionResult, now: ExecutionResult) -> Difference | None:
    for what in ("output", "stdout", "stderr", "files"):
        expected, actual = getattr(before, what), getattr(now, what)
        if what == "files":
            expected, actual = ({f.name: f.content for f in files} for files in (expected, actual))
        if dumps(expected) != dumps(actual):
            return Difference(what=what, expected=as_python(expected), actual=as_python(actual))
    return None


def _ends(before: Known, now: Known) -> Difference:
    return Difference(what="end", expected=_told(before), actual=_told(now))


def _told(end: Known) -> str:
    match end:
        case ExecutionResult():
            return f"the result {as_python(end.output)}"
        case HatchwayError():
            return f"{type(end).__name__}: {end.message}"
        case _:
            calls = ", ".join(shown(call) for call in end)
            return f"standing at {calls}" if calls else "standing at no call"
