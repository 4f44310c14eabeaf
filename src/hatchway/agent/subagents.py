"""Subagents: tasks given to child agents with an interpreter, connections and a history of their own."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from hatchway.agent.desk import Desk, Refused
from hatchway.agent.models import ModelResponse, ToolCallPart, ToolDefinition, ToolReturnPart
from hatchway.agent.told import failure_told, refusal_told
from hatchway.agent.turn import CallsBook, Done
from hatchway.core.decisions import Edit
from hatchway.core.errors import ApprovalRequired, HatchwayError, InvalidSetting, ToolError
from hatchway.mode.replies import reply_text

if TYPE_CHECKING:
    from hatchway.agent.agent import Agent

TASK_TOOL = "subagent_task"
"""The model's tool for giving a task away."""
STOPPED = "The subagent did not come to an answer: the user said no to what it wanted to do, and so stopped it."
USED_UP = (
    "The subagent did not come to an answer: its rounds of tool calls, {rounds} at most, are used up. "
    "What it did is done; give a smaller task, or more rounds (max_turns)."
)
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "prompt": {"type": "string", "description": "The whole task, with everything needed to do it."},
        "max_turns": {"type": "integer", "minimum": 1, "description": "Rounds of tool calls it may take."},
    },
    "required": ["prompt"],
    "additionalProperties": False,
}
_ABOUT = (
    "Give a task to a subagent, which starts with a fresh interpreter and knows nothing of this conversation. "
    "Its answer comes back. Several calls in one reply run side by side."
)


class Subagents:
    """The children of one agent.

    Args:
        make: Makes a child of this id, not started.
        most: How many work at one time.
        max_turns: Tool rounds of one task, at most.

    Raises:
        InvalidSetting: A number below 1: a task would wait for good.
    """

    def __init__(self, make: Callable[[str], Agent], most: int, max_turns: int) -> None:
        if most < 1 or max_turns < 1:
            given = f"max_subagents={most}, max_subagent_turns={max_turns}"
            raise InvalidSetting(f"{given}: both must be 1 or more", hint="enable_subagents=False has none at all")
        self._make, self._max_turns = make, max_turns
        self._places = asyncio.Semaphore(most)

    def definition(self) -> ToolDefinition:
        """As the model is told of it."""
        return ToolDefinition(name=TASK_TOOL, description=_ABOUT, parameters_json_schema=_SCHEMA)

    async def do(self, calls: Sequence[ToolCallPart], book: CallsBook, desk: Desk) -> list[Done]:
        """Have each task done, all at once; the calls are asked about one after the other first.

        After a bare no none of them is begun: the turn is over, and nobody would hear the answers.
        """
        tasks: list[dict[str, Any] | Done] = []
        for call in calls:
            tasks.append(task := await self._asked(call, desk))
            if isinstance(task, Done) and task.ends_turn:
                return [each for each in tasks if isinstance(each, Done)]
        children = {
            call.tool_call_id: f"sub-{secrets.token_hex(2)}"
            for call, task in zip(calls, tasks, strict=True)
            if isinstance(task, dict)
        }
        if book.history.is_stored and children:
            told = {call.tool_call_id: task for call, task in zip(calls, tasks, strict=True) if isinstance(task, dict)}
            await book.begin({"kind": "tasks", "children": children, "tasks": told})
        return await _all(
            self._worked(call, task, children[call.tool_call_id]) if isinstance(task, dict) else _at_once(task)
            for call, task in zip(calls, tasks, strict=True)
        )

    async def go_on(self, calls: Sequence[ToolCallPart], now: dict[str, Any]) -> list[Done]:
        """Go on with tasks that were paused, or whose process is gone."""
        children: dict[str, str] = now["children"]
        return await _all(
            self._worked(call, now["tasks"][call.tool_call_id], children[call.tool_call_id])
            for call in calls
            if call.tool_call_id in children
        )

    async def _asked(self, call: ToolCallPart, desk: Desk) -> dict[str, Any] | Done:
        try:
            task = self._task(call.args_as_dict(raise_if_invalid=True))
            answer = await desk.ask(TASK_TOOL, task, kind="tool", call_id=call.tool_call_id)
            if isinstance(answer, Refused):
                ends_turn = answer.by_person and not answer.reason
                return Done(part=refusal_told(call, answer), ends_turn=ends_turn)
            return self._task(dict(answer.args)) if isinstance(answer, Edit) else task
        except (ValueError, AssertionError, ToolError) as e:
            return Done(part=failure_told(call, f"the task cannot be given as it is: {e}"))

    def _task(self, arguments: dict[str, Any]) -> dict[str, Any]:
        prompt, turns = arguments.get("prompt"), arguments.get("max_turns")
        turns = self._max_turns if turns is None else turns  # models write null for what they leave out
        if not isinstance(prompt, str) or not prompt.strip() or not isinstance(turns, int) or isinstance(turns, bool):
            raise ToolError(f'{TASK_TOOL} takes {{"prompt": "<text>", "max_turns": <number>}}')
        if strangers := sorted(arguments.keys() - {"prompt", "max_turns"}):
            raise ToolError(f"{TASK_TOOL} does not take {', '.join(strangers)}")
        if turns < 1:
            raise ToolError(f"max_turns must be 1 or more, not {turns}")
        return {"prompt": prompt, "max_turns": min(turns, self._max_turns)}

    async def _worked(self, call: ToolCallPart, task: dict[str, Any], child_id: str) -> Done:
        async with self._places:
            child = self._make(child_id)
            try:
                async with child:
                    await child.work(task["prompt"], task["max_turns"])
                    return _ended(call, child, task["max_turns"])
            except ApprovalRequired:
                raise
            except HatchwayError as e:
                return Done(part=failure_told(call, f"the subagent {child_id} failed: {e}"))
            except Exception as e:  # a vendor's error in its own words; the parent's model decides what to do
                return Done(part=failure_told(call, f"the subagent {child_id} failed: {type(e).__name__}: {e}"))


def _ended(call: ToolCallPart, child: Agent, rounds: int) -> Done:
    """What the child said last; or why its turn was cut short, which only its history tells after a crash."""
    last = child.messages[-1] if child.messages else None
    if isinstance(last, ModelResponse):
        answer = reply_text(last) or "The subagent ended without a word."
        return Done(part=ToolReturnPart(call.tool_name, answer, call.tool_call_id))
    parts = [part for part in last.parts if isinstance(part, ToolReturnPart)] if last is not None else []
    if any(part.outcome == "denied" for part in parts):
        return Done(part=ToolReturnPart(call.tool_name, STOPPED, call.tool_call_id, outcome="denied"))
    return Done(part=failure_told(call, USED_UP.format(rounds=rounds)))


async def _all(working: Iterable[Awaitable[Done]]) -> list[Done]:
    """What came of each; where one waits for an approval, the others go as far as they can first."""
    ended = await asyncio.gather(*working, return_exceptions=True)
    for each in ended:
        if isinstance(each, BaseException):
            raise each
    return [each for each in ended if isinstance(each, Done)]


async def _at_once(done: Done) -> Done:
    return done
