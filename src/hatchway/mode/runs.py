"""The durable runs of a mode: its journal, the runs that stand in this process, and how any of them is taken up."""

from __future__ import annotations

import asyncio
import uuid
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial

from hatchway.core.decisions import Settlement
from hatchway.core.errors import CheckpointRefused, InDoubt, RunTaken
from hatchway.core.limits import Limits
from hatchway.core.recording import Recording
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeSandbox, CodeSession
from hatchway.core.signing import run_seed
from hatchway.gate.rules import Rule
from hatchway.journal.book import RunBook
from hatchway.journal.entries import RunRow
from hatchway.journal.history import History
from hatchway.journal.store import Journal
from hatchway.mode.durable import DurableRun
from hatchway.mode.grants import Grants, keep_rule, stored_rules
from hatchway.mode.pull import Paused
from hatchway.mode.recovery import MOST_ACTIONS, check_key, recording_of, settled
from hatchway.mode.run import Run

MOST_STANDING = 64
"""Paused runs that keep their process; of more, the oldest are run again when somebody decides."""

MakeRun = Callable[..., DurableRun]
"""`make_run(where, limits, run_id=, session_id=, place=, grants=)`."""


class DurableRuns:
    """What a mode with a journal does with its runs.

    Args:
        journal: Where they are.
        make_run: Makes a run of this mode.
    """

    def __init__(self, journal: Journal, make_run: MakeRun) -> None:
        self.journal = journal
        self._make_run = make_run
        self._standing: OrderedDict[str, DurableRun] = OrderedDict()
        self._always = stored_rules(journal)

    def new(
        self, where: CodeSandbox | CodeSession, limits: Limits, *, session_id: str = "", place: int = 0
    ) -> DurableRun:
        """A run that has not started."""
        run_id = uuid.uuid4().hex
        return self._make_run(
            where, limits, run_id=run_id, session_id=session_id, place=place, grants=self._grants(run_id)
        )

    async def paused(self, run: Run) -> None:
        """Keep a run that waits in this process, as long as there is room."""
        assert isinstance(run, DurableRun)
        self._standing[run.run_id] = run
        while len(self._standing) > MOST_STANDING:
            _, oldest = self._standing.popitem(last=False)
            await oldest.abandon()

    async def resume(
        self, run_id: str, sandbox: CodeSandbox, given: Mapping[str, Settlement]
    ) -> ExecutionResult | tuple[DurableRun, Paused]:
        """Go on with a run, wherever it was started; a finished one gives its result again.

        Raises:
            UnknownRun, RunTaken, ApprovalRequired, InDoubt, CheckpointRefused, CodeExecutionError, ValueError: As
                `CodeMode.resume`.
        """
        row = await asyncio.to_thread(self.journal.run, run_id)
        if row.ending is not None:
            return _ended(row)
        book = await asyncio.to_thread(self.journal.take, row.run_id)
        try:
            row = await asyncio.to_thread(self.journal.run, row.run_id)  # it may have ended until we had it
            if row.ending is not None:
                book.give_back()
                return _ended(row)
            history, settlements, checkpoint = await self._looked_at(book, row, given)
        except BaseException:
            book.give_back()
            raise
        standing = self._standing.pop(row.run_id, None)
        if standing is not None and standing.epoch == row.epoch and checkpoint is None:
            outcome = await standing.go_on(book, row.head, history, settlements, None)
            return outcome if isinstance(outcome, ExecutionResult) else (standing, outcome)
        if standing is not None:
            await standing.abandon()  # somebody else took it up meanwhile: what stands here is of the past
        return await self._taken_up(sandbox, row, book, history, settlements, checkpoint)

    @asynccontextmanager
    async def session(
        self, sandbox: CodeSandbox, session_id: str, limits: Limits, *, is_new: bool
    ) -> AsyncGenerator[tuple[CodeSession, int]]:
        """A session of the journal, its earlier actions run again; with the number of the next action.

        Raises:
            RunTaken: Somebody has it.
            CheckpointRefused: There is none, an action of it has not ended, or cannot be run again.
        """
        locks = self.journal.locks
        if not await asyncio.to_thread(locks.take, session_id):
            raise RunTaken(session_id, what="session")
        try:
            rows = list[RunRow]() if is_new else await self._ended_actions(session_id)
            async with self._repeated(sandbox, rows, limits) as session:
                yield session, len(rows)
        finally:
            locks.give_back(session_id)

    async def _ended_actions(self, session_id: str) -> list[RunRow]:
        """The actions of a session that can be gone on with."""
        rows = await self._actions(session_id)
        if not rows:
            raise CheckpointRefused(
                f"no action of a session {session_id} is in the journal", hint="open a new one: mode.session()"
            )
        if unended := [row for row in rows if row.ending is None]:
            raise CheckpointRefused(
                f"an action of the session has not ended: run {unended[0].run_id} is {unended[0].state}",
                hint=f"await mode.resume({unended[0].run_id!r}) first",
            )
        return rows

    async def close(self) -> None:
        """Kill what stands here and close the journal; the runs can be resumed elsewhere."""
        while self._standing:
            await self._standing.popitem()[1].abandon()
        await asyncio.to_thread(self.journal.close)

    async def _looked_at(
        self, book: RunBook, row: RunRow, given: Mapping[str, Settlement]
    ) -> tuple[History, dict[str, Settlement], bytes | None]:
        check_key(row.head)
        history = await asyncio.to_thread(self.journal.history, row.run_id)
        try:
            settlements = settled(row.run_id, history, given)
        except InDoubt:
            if row.state != "in_doubt":
                await book.paused("in_doubt", None)
            raise
        return history, settlements, await asyncio.to_thread(self.journal.checkpoint, row.run_id, row.epoch)

    async def _taken_up(
        self,
        sandbox: CodeSandbox,
        row: RunRow,
        book: RunBook,
        history: History,
        settlements: Mapping[str, Settlement],
        checkpoint: bytes | None,
    ) -> ExecutionResult | tuple[DurableRun, Paused]:
        if row.sandbox != sandbox.name:
            book.give_back()
            raise CheckpointRefused(
                f"the run was started in the sandbox {row.sandbox}, here it is {sandbox.name}",
                hint=f"CodeMode({row.sandbox!r}, …)",
            )
        grants = self._grants(row.run_id)
        grants.known(await asyncio.to_thread(stored_rules, self.journal, row.run_id))
        make = partial(
            self._make_run,
            limits=row.head.limits,
            run_id=row.run_id,
            session_id=row.session_id,
            place=row.place,
            grants=grants,
        )
        if not row.session_id:
            run = make(sandbox)
            outcome = await run.go_on(book, row.head, history, settlements, checkpoint)
            return outcome if isinstance(outcome, ExecutionResult) else (run, outcome)
        return await self._in_session(sandbox, row, book, history, settlements, make)

    async def _in_session(
        self,
        sandbox: CodeSandbox,
        row: RunRow,
        book: RunBook,
        history: History,
        settlements: Mapping[str, Settlement],
        make: Callable[[CodeSession], DurableRun],
    ) -> ExecutionResult | tuple[DurableRun, Paused]:
        """Go on with an action of a session whose process is gone: its earlier actions are run again first."""
        try:
            earlier = [other for other in await self._actions(row.session_id) if other.place < row.place]
        except BaseException:
            book.give_back()
            raise
        async with self._repeated(sandbox, earlier, row.head.limits, book) as session:
            run = make(session)
            outcome = await run.go_on(book, row.head, history, settlements, None)
        if isinstance(outcome, ExecutionResult):
            return outcome
        run.forget()  # the session it stood in is closed again
        return run, outcome

    async def _actions(self, session_id: str) -> list[RunRow]:
        """The actions of a session, none missing."""
        rows = await asyncio.to_thread(partial(self.journal.runs, session_id=session_id, limit=MOST_ACTIONS))
        if [row.place for row in rows] != list(range(len(rows))):
            raise CheckpointRefused(
                f"actions of the session {session_id} are missing from the journal: they were pruned, or not stored",
                hint="open a new one: mode.session()",
            )
        return rows

    @asynccontextmanager
    async def _repeated(
        self, sandbox: CodeSandbox, rows: list[RunRow], limits: Limits, book: RunBook | None = None
    ) -> AsyncGenerator[CodeSession]:
        try:
            actions = [await asyncio.to_thread(self._recording, row) for row in rows]
            opening = sandbox.replay_session(actions, limits=limits)
            session = await opening.__aenter__()
        except BaseException:
            if book is not None:
                book.give_back()
            raise
        if session is None:
            if book is not None:
                book.give_back()
            raise CheckpointRefused(f"the sandbox {sandbox.name} cannot run a session again")
        try:
            yield session
        finally:
            await opening.__aexit__(None, None, None)

    def _recording(self, row: RunRow) -> Recording:
        return recording_of(row.head, self.journal.history(row.run_id), run_seed(row.session_id or row.run_id))

    def _grants(self, run_id: str) -> Grants:
        def keep(rule: Rule, is_for_good: bool) -> None:
            keep_rule(self.journal, run_id, rule, is_for_good)

        return Grants(self._always, keep)


def _ended(row: RunRow) -> ExecutionResult:
    if isinstance(row.ending, ExecutionResult):
        return row.ending
    if row.ending is None:
        raise RunTaken(row.run_id)
    raise row.ending
