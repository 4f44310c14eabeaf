"""Wording: how calls, decisions and outcomes are put on a line."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, assert_never

from hatchway.core.calls import FunctionCall
from hatchway.core.decisions import Allow, Decision, Deny, Edit
from hatchway.core.events import CallFailed, ToolOutput
from hatchway.core.results import ExecutionResult
from hatchway.trace.blocks import Line, Part, Tone
from hatchway.trace.text import call_source, call_text, cut, elapsed_text, neutral, size_text, value_text

ARGUMENTS, VALUE, ERROR = 100, 200, 2000
"""Characters of a call's arguments, of a value and of an error that fit on a line."""
WHOLE = 1_000_000
"""Characters that are shown of what was cut, where it is shown whole."""
_SCOPES = {"call": "", "run": " for the whole run", "always": " for good"}
BY = {"tool": "the tool", "rule": "a rule", "callback": "the callback", "person": "a person"}


def moment(at: float) -> str:
    """A point in time, in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def outcome_mark(event: ToolOutput | CallFailed) -> tuple[str, Tone]:
    """The mark of how a call ended."""
    match event:
        case ToolOutput():
            return "✓", "good"
        case CallFailed(denied=True):
            return "⊘", "warn"
        case CallFailed():
            return "✗", "bad"
        case _:
            assert_never(event)


def decision_words(decision: Decision, by: str) -> tuple[str, Tone, str]:
    """The mark and the words of a decision."""
    match decision:
        case Allow(scope=scope):
            return "◆", "good", f"allowed{_SCOPES[scope]} by {by}"
        case Deny(reason=reason):
            return "◆", "warn", f"denied by {by}" + (f": {cut(neutral(reason), VALUE)}" if reason else "")
        case Edit():
            return "◆", "accent", f"changed by {by}"
        case _:
            assert_never(decision)


def arguments(call: FunctionCall) -> Mapping[str, Any]:
    """A call's arguments by name; those without one are numbered."""
    return {**{str(place): value for place, value in enumerate(call.args)}, **call.kwargs}


def call_parts(call: FunctionCall) -> list[Part]:
    """A call on a line."""
    return [Part(call_text(call.function_name, arguments(call), ARGUMENTS), "bold")]


def whole_call(call: FunctionCall) -> list[tuple[str, str]]:
    """A call whole, when it does not fit on a line."""
    named = arguments(call)
    if len(call_text(call.function_name, named, WHOLE)) == len(call_text(call.function_name, named, ARGUMENTS)):
        return []
    return [("call", call_source(call.function_name, named, WHOLE)[0])]


def whole_outcome(event: ToolOutput | CallFailed) -> list[tuple[str, str]]:
    """What a call gave, when it does not fit on a line."""
    if isinstance(event, CallFailed):
        return [("error", cut(neutral(event.error), WHOLE))] if len(event.error) > ERROR else []
    whole = value_text(event.content, WHOLE)
    return [("value", whole)] if len(whole) > VALUE else []


def asking(mark: str, call: FunctionCall, what: str) -> Line:
    """A call that somebody has to say something about."""
    about = [*call_parts(call), Part(f" {what}", "warn"), Part(f"  call {neutral(call.call_id)}", "dim")]
    return Line(mark=mark, tone="warn", parts=about, whole=whole_call(call))


def usage_words(result: ExecutionResult) -> str:
    """What a run took."""
    usage, about = result.usage, list[str]()
    if usage.wall_seconds:
        about.append(f"ran {elapsed_text(usage.wall_seconds)}")
    if usage.calls:
        about.append(how_many(usage.calls))
    if usage.memory_bytes:
        about.append(size_text(usage.memory_bytes))
    return "  " + " · ".join(about) if about else ""


def how_many(count: int) -> str:
    """A number of calls."""
    return "1 call" if count == 1 else f"{count} calls"


def waiting_words(count: int) -> str:
    """A number of calls that wait."""
    return "1 call waits" if count == 1 else f"{count} calls wait"


def nth(number: int) -> str:
    """The ordinal of a small number."""
    return {2: "second", 3: "third"}.get(number, f"{number}th")
