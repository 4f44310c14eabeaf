"""Doing the tool calls of a reply: code actions, subagents, and tools the model calls itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, assert_never

from hatchway.agent.desk import REJECTED, ActionGate, Answer, Desk, Refused
from hatchway.agent.interpreter import ActionEnd, Interpreter
from hatchway.agent.json_tools import JsonTool, JsonTools
from hatchway.agent.large_results import LargeResults
from hatchway.agent.models import ToolCallPart
from hatchway.agent.permissions import CODE_TOOL
from hatchway.agent.subagents import TASK_TOOL, Subagents
from hatchway.agent.told import action_told, as_text, failure_told, refusal_told, value_told
from hatchway.agent.turn import CallsBook, Done
from hatchway.core.calls import FunctionCall
from hatchway.core.decisions import Allow, Deny, Edit, NotRun, Ran
from hatchway.core.errors import CodeExecutionError, ToolError
from hatchway.core.events import CallDecided, CallFailed, CallStarted, Emit, ToolOutput
from hatchway.core.results import ExecutionResult
from hatchway.mode.session import ModeSession


class ToolCalls:
    """Does the calls of one agent.

    Args:
        agent_id: Whose they are.
        desk: Where each is asked about.
        interpreter: Runs code actions.
        tools: What the model calls itself.
        subagents: Who takes tasks; None where there are none.
        large: Where long results go.
        emit: Takes events.
    """

    def __init__(
        self,
        *,
        agent_id: str,
        desk: Desk,
        interpreter: Interpreter,
        tools: JsonTools,
        subagents: Subagents | None,
        large: LargeResults,
        emit: Emit,
    ) -> None:
        self._agent_id, self._desk, self._interpreter = agent_id, desk, interpreter
        self._tools, self._subagents, self._large, self._emit = tools, subagents, large, emit

    async def __call__(self, calls: Sequence[ToolCallPart], book: CallsBook) -> bool:
        """Do them in order, tasks for subagents that stand side by side at once. False: a bare no ended the turn."""
        answered = {part.tool_call_id for part in book.done}
        left = [call for call in calls if call.tool_call_id not in answered]
        while left:
            together = _together(left)
            left = left[len(together) :]
            if len(together) > 1 or together[0].tool_name == TASK_TOOL:
                done = await self._tasks(together, book)
            else:
                done = [await self.do(together[0], book)]
            for each in done:
                await book.add(each.part, is_last=not left and each is done[-1])
            if any(each.ends_turn for each in done):
                return False
        return True

    async def do(self, call: ToolCallPart, book: CallsBook) -> Done:
        """Do one call, but for a subagent's task."""
        try:
            arguments = _arguments(call)
            if call.tool_name == CODE_TOOL:
                return await self._code(call, _code_of(arguments), book)
            tool = self._tools.by_name.get(call.tool_name)
            if tool is None:
                raise ToolError(f"there is no tool {call.tool_name!r}; there are: {', '.join(self._names())}")
            return await self._tool(call, tool, arguments, book)
        except ToolError as e:
            self._emit(CallFailed(str(e), call_id=call.tool_call_id, tool_name=call.tool_name, agent_id=self._agent_id))
            return Done(part=failure_told(call, e))

    async def told(self, call: ToolCallPart, gate: ActionGate, ended: ActionEnd, prefix: str = "") -> Done:
        """What became of an action: its end, or the person's no, which counts whatever the code made of it."""
        if gate.rejection is not None:
            return _refused(call, gate.rejection, _noted(gate.calls.done_note(), ended.notes))
        if not isinstance(ended.end, CodeExecutionError):  # which names its calls itself
            is_good = isinstance(ended.end, ExecutionResult)
            note = gate.calls.denied_note() if is_good else gate.calls.done_note()
            ended = replace(ended, notes=_noted(note, ended.notes))
        return Done(part=await action_told(call, ended, self._large, prefix))

    async def _code(self, call: ToolCallPart, code: str, book: CallsBook) -> Done:
        answer = await self._desk.ask(CODE_TOOL, {"code": code}, kind="code", call_id=call.tool_call_id)
        prefix = ""
        match answer:
            case Refused():
                return self._denied(call, {"code": code}, answer)
            case Edit(args=args):
                code = _code_of(args)
                prefix = f"The user changed the code. This was run:\n{code}\n\nIts output:\n"
            case Allow() | Ran() | NotRun():
                pass
            case _:
                assert_never(answer)
        gate = ActionGate(self._desk)

        async def begin(session: ModeSession) -> None:
            where = {"session": session.session_id, "place": session.place}
            await book.begin({"id": call.tool_call_id, "kind": "code", "prefix": prefix, **where})

        ended = await self._interpreter.run(code, gate, begin if book.history.is_stored else None)
        return await self.told(call, gate, ended, prefix)

    async def _tool(self, call: ToolCallPart, tool: JsonTool, arguments: dict[str, Any], book: CallsBook) -> Done:
        arguments = tool.tool.bind((), arguments)
        if tool.tool.approval == "deny":
            reason = "it is switched off in the settings of its server"
            return self._denied(call, arguments, Refused(tool_name=tool.name, reason=reason, by_person=False))
        diff = await self._tools.diff(tool, arguments)
        answer = await self._desk.ask(tool.name, arguments, kind="tool", call_id=call.tool_call_id, diff=diff)
        return await self.run_tool(call, tool, arguments, answer, book)

    async def run_tool(
        self, call: ToolCallPart, tool: JsonTool, arguments: Mapping[str, Any], answer: Answer, book: CallsBook
    ) -> Done:
        """Run a tool of the model as it was decided."""
        match answer:
            case Refused():
                return self._denied(call, arguments, answer)
            case Ran(value=value):
                return await self._given(call, value)
            case Edit(args=args):
                arguments = tool.tool.bind((), args)
            case Allow() | NotRun():
                pass
            case _:
                assert_never(answer)
        if book.history.is_stored:
            await book.begin({"id": call.tool_call_id, "kind": "tool", "args": dict(arguments)})
        begun = FunctionCall(call_id=call.tool_call_id, function_name=call.tool_name, kwargs=arguments)
        self._emit(CallStarted(begun, agent_id=self._agent_id))
        return await self._given(call, await self._tools.call(tool, arguments))

    async def _given(self, call: ToolCallPart, value: Any) -> Done:
        self._emit(ToolOutput(value, call_id=call.tool_call_id, tool_name=call.tool_name, agent_id=self._agent_id))
        return Done(part=await value_told(call, value, self._large))

    def _denied(self, call: ToolCallPart, arguments: Mapping[str, Any], refused: Refused) -> Done:
        """It is not run, which is told as for a call that code makes."""
        named = FunctionCall(call_id=call.tool_call_id, function_name=call.tool_name, kwargs=arguments)
        about: Any = {"call_id": call.tool_call_id, "tool_name": call.tool_name, "agent_id": self._agent_id}
        said = refused.reason or REJECTED
        self._emit(CallDecided(named, decision=Deny(said), by="callback", agent_id=self._agent_id))
        self._emit(CallFailed(said, denied=True, **about))
        return _refused(call, refused)

    async def _tasks(self, calls: Sequence[ToolCallPart], book: CallsBook) -> list[Done]:
        if self._subagents is None:
            return [Done(part=failure_told(call, "there are no subagents here")) for call in calls]
        done = await self._subagents.do(calls, book, self._desk)
        for each in done:
            about: Any = {"call_id": each.part.tool_call_id, "tool_name": TASK_TOOL, "agent_id": self._agent_id}
            said, outcome = str(each.part.content), each.part.outcome
            is_good = outcome == "success"
            self._emit(ToolOutput(said, **about) if is_good else CallFailed(said, denied=outcome == "denied", **about))
        return done

    def _names(self) -> list[str]:
        return [CODE_TOOL, *([TASK_TOOL] if self._subagents is not None else []), *self._tools.by_name]


def _together(calls: Sequence[ToolCallPart]) -> Sequence[ToolCallPart]:
    """The first call, with the tasks for subagents that follow it where it is one itself."""
    if calls[0].tool_name != TASK_TOOL:
        return calls[:1]
    end = next((i for i, call in enumerate(calls) if call.tool_name != TASK_TOOL), len(calls))
    return calls[:end]


def _noted(note: str, notes: tuple[str, ...]) -> tuple[str, ...]:
    return (note, *notes) if note else notes


def _refused(call: ToolCallPart, refused: Refused, notes: Sequence[str] = ()) -> Done:
    return Done(part=refusal_told(call, refused, notes), ends_turn=refused.by_person and not refused.reason)


def _arguments(call: ToolCallPart) -> dict[str, Any]:
    try:
        return call.args_as_dict(raise_if_invalid=True)
    except (ValueError, AssertionError) as e:
        raise ToolError(f"the arguments are no JSON object: {e}", hint="call it again with valid JSON") from None


def _code_of(arguments: Mapping[str, Any]) -> str:
    code = arguments.get("code")
    if not isinstance(code, str) or not code.strip() or len(arguments) != 1:
        raise ToolError(f'{CODE_TOOL} takes exactly {{"code": "<Python source>"}}, not {as_text(arguments):.200}')
    return code
