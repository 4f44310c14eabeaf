"""Resuming: going on with a turn whose process was killed, from what the conversation and the journal know of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter

from hatchway.agent.desk import ActionGate, Answer, Desk, Refused
from hatchway.agent.history import History
from hatchway.agent.interpreter import LOST, ActionEnd, Interpreter
from hatchway.agent.json_tools import JsonTools
from hatchway.agent.models import ModelMessage, ModelRequest, ToolCallPart, ToolReturnPart
from hatchway.agent.subagents import Subagents
from hatchway.agent.told import failure_told
from hatchway.agent.tool_calls import ToolCalls
from hatchway.agent.turn import CallsBook, Done
from hatchway.core.calls import CallRecord, FunctionCall
from hatchway.core.decisions import Later, NotRun, Ran, Settlement
from hatchway.core.errors import (
    ApprovalRequired,
    CheckpointRefused,
    CodeExecutionError,
    HatchwayError,
    InDoubt,
    SandboxCrashed,
    TransportError,
)
from hatchway.core.results import ExecutionResult
from hatchway.journal.entries import RunRow

MOST_ATTEMPTS = 3
"""How often an action is led back to where it stood while the sandbox dies on the way."""
_MESSAGES: TypeAdapter[list[ModelMessage]] = TypeAdapter(list[ModelMessage])


def parts_to_json(parts: Sequence[ToolReturnPart]) -> Any:
    """Answers as they are stored with an open turn."""
    return _MESSAGES.dump_python([ModelRequest(list(parts))], mode="json") if parts else []


def book_of(history: History, state: dict[str, Any]) -> CallsBook:
    """What an open turn knows about its calls."""
    stored = _MESSAGES.validate_python(state.get("done") or [])
    done = [part for message in stored for part in message.parts if isinstance(part, ToolReturnPart)]
    return CallsBook(history=history, limit=state.get("limit"), done=done, now=state.get("now"))


class Resuming:
    """Does the calls of a reply like `ToolCalls`, and first what a process that is gone was at.

    Args:
        calls: Does the others.
        desk: Where people are asked.
        interpreter: Takes the run up.
        tools: What the model calls itself.
        subagents: Who had tasks.
    """

    def __init__(
        self, calls: ToolCalls, desk: Desk, interpreter: Interpreter, tools: JsonTools, subagents: Subagents | None
    ) -> None:
        self._calls, self._desk, self._interpreter = calls, desk, interpreter
        self._tools, self._subagents = tools, subagents

    async def __call__(self, calls: Sequence[ToolCallPart], book: CallsBook) -> bool:
        """Do the calls. False: a bare no ended the turn."""
        now, by_id = book.now, {call.tool_call_id: call for call in calls}
        done: list[Done] = []
        if now is not None and now["kind"] == "tasks":
            done = [] if self._subagents is None else await self._subagents.go_on(calls, now)
        elif now is not None and (call := by_id.get(now["id"])) is not None:
            done = [await (self._code if now["kind"] == "code" else self._tool)(call, now, book)]
        for each in done:
            await book.add(each.part, is_last=False)
        if any(each.ends_turn for each in done):
            return False
        return await self._calls(calls, book)

    async def _code(self, call: ToolCallPart, now: dict[str, Any], book: CallsBook) -> Done:
        row = await self._row(now["session"], now["place"])
        if row is None:  # it was allowed and had not begun: nothing of it has happened
            return await self._calls.do(call, book)
        gate = ActionGate(self._desk)
        gate.run_id = row.run_id
        gate.calls.take(await self._made(row))
        ended = await self._ended(row, gate)
        return await self._calls.told(call, gate, ended, now.get("prefix", ""))

    async def _row(self, session_id: str, place: int) -> RunRow | None:
        journal = self._interpreter.mode.journal
        rows = await asyncio.to_thread(lambda: journal.runs(session_id=session_id, limit=100_000))
        return next((row for row in rows if row.place == place), None)

    async def _ended(self, row: RunRow, gate: ActionGate) -> ActionEnd:
        if isinstance(row.ending, ExecutionResult | CodeExecutionError):
            return await self._told_again(row, row.ending)
        decisions: dict[str, Settlement] = {}
        attempts = MOST_ATTEMPTS
        while True:
            try:
                ended = await self._interpreter.resume(row.run_id, gate, decisions)
                attempts -= 1
                if attempts and isinstance(ended.end, SandboxCrashed | TransportError):
                    decisions = {}  # what they allowed has been done, or is asked again
                    continue
                return ended
            except ApprovalRequired as waiting:
                if gate.is_postponed:
                    raise
                decisions = {}  # those before it have had their effect
                for call in waiting.pending:
                    if isinstance(decision := await gate.decide(call), Later):
                        raise
                    decisions[call.call_id] = decision
            except InDoubt as doubt:
                for call in doubt.calls:
                    if (settled := await self._settled(call, gate, row.head.code)) is None:
                        return ActionEnd(end=None, notes=(LOST,))
                    decisions[call.call_id] = settled
            except CheckpointRefused as e:
                return ActionEnd(end=await self._told_as_error(row, e), notes=(LOST,))

    async def _told_again(self, row: RunRow, end: ExecutionResult | CodeExecutionError) -> ActionEnd:
        """An action that came to its end: whoever listens now has not seen it, or not all of it."""
        if isinstance(end, CodeExecutionError):
            end.calls = await self._made(row)  # stored apart from it; the model must not make them again
        await self._interpreter.tell_again(row.run_id)
        return ActionEnd(end=end, notes=(LOST,))

    async def _settled(self, call: FunctionCall, gate: ActionGate, code: str) -> Settlement | None:
        """What a person says about a call in doubt; None where the action is not to go on."""
        answer = await self._desk.ask(
            call.function_name,
            call.kwargs,
            kind="call",
            call_id=call.call_id,
            run_id=gate.run_id,
            in_doubt=True,
            code=code,
        )
        if isinstance(answer, Refused):
            gate.reject(replace(answer, by_person=True))
            return None
        return answer if isinstance(answer, Ran) else NotRun()

    async def _told_as_error(self, row: RunRow, refused: CheckpointRefused) -> CodeExecutionError:
        calls = await self._made(row)
        return CodeExecutionError(f"the action was broken off and cannot go on: {refused}", calls=calls)

    async def _made(self, row: RunRow) -> tuple[CallRecord, ...]:
        """The calls of an action, in the order in which it made them."""
        history = await asyncio.to_thread(self._interpreter.mode.journal.history, row.run_id)
        return tuple(call.record() for call in sorted(history.calls.values(), key=lambda call: call.made))

    async def _tool(self, call: ToolCallPart, now: dict[str, Any], book: CallsBook) -> Done:
        tool = self._tools.by_name.get(call.tool_name)
        if tool is None:
            return Done(part=failure_told(call, f"interrupted, and the tool {call.tool_name} is not offered any more"))
        arguments = now["args"]
        answer: Answer = NotRun()  # a tool that changes nothing just runs again
        if not (tool.tool.idempotent or tool.tool.read_only):
            answer = await self._desk.ask(tool.name, arguments, kind="tool", call_id=call.tool_call_id, in_doubt=True)
        try:
            return await self._calls.run_tool(call, tool, arguments, answer, book)
        except HatchwayError as e:
            return Done(part=failure_told(call, e))
