"""Telling a model how its code failed: what kind, what it had printed, and which calls are done for good."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from hatchway.core.calls import CallRecord
from hatchway.core.errors import (
    CodeExecutionError,
    CodeLimitError,
    CodeRuntimeError,
    CodeSyntaxError,
    CodeTimeoutError,
    CodeTypeError,
    HatchwayError,
)
from hatchway.core.values import as_python

MOST_CALLS = 20
"""Calls named in an error."""


def failure_text(error: HatchwayError) -> str:
    """The failure in words a model can act on; that the host failed is marked as such."""
    if not isinstance(error, CodeExecutionError):
        return f"sandbox failed: {error}"
    parts = [f"{failure_kind(error)} in the code:\n{error}"]
    if error.stdout:
        parts.append(f"Printed before that:\n{error.stdout}")
    if error.stderr:
        parts.append(f"On stderr:\n{error.stderr}")
    if error.calls:
        parts.append(f"Calls it had made, which are not undone:\n{calls_text(error.calls, error.earlier_calls)}")
    return "\n\n".join(parts)


def failure_kind(error: CodeExecutionError) -> str:
    """The kind of failure, in two words."""
    match error:
        case CodeSyntaxError():
            return "Syntax error"
        case CodeTypeError():
            return "Type error"
        case CodeRuntimeError():
            return "Runtime error"
        case CodeTimeoutError():
            return "Time limit reached"
        case CodeLimitError():
            return "Limit reached"
        case _:
            return "Error"


def calls_text(calls: Sequence[CallRecord], earlier: int = 0) -> str:
    """The last calls, a line each; `earlier` are not among them."""
    lines = [_line(record) for record in calls[-MOST_CALLS:]]
    more = earlier + len(calls) - len(lines)
    return "\n".join([*([f"- {more} earlier calls"] if more > 0 else []), *lines])


def _line(record: CallRecord) -> str:
    call = record.call  # one that was refused has its arguments as the code gave them
    given = [f"{as_python(value):.60}" for value in call.args]
    given += [f"{name}={as_python(value):.60}" for name, value in call.kwargs.items()]
    called = f"- {call.function_name}({', '.join(given)})"
    match record.state:
        case "done":
            return f"{called} returned {as_python(record.value):.80}"
        case "failed" | "denied":
            return f"{called} {record.state}: {record.error:.200}"
        case "started" | "pending" | "in_doubt":
            return f"{called} {record.state}"
        case _:
            assert_never(record.state)
