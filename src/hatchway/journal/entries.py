"""What a journal holds, as values: the head of a run, the entries of its log, and their stored form.

Everything is stored in the wire form of `core/codec.py`. An entry is never changed once it is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, cast

from hatchway.core import codec, errors
from hatchway.core.calls import FunctionCall, FunctionSignature
from hatchway.core.decisions import Allow, Decision, Deny, Edit
from hatchway.core.errors import CodeExecutionError, CodeLimitError, CodeRuntimeError, HatchwayError, JournalError
from hatchway.core.limits import Limits
from hatchway.core.results import Display, ExecFile, ExecutionResult, Usage

RunState = Literal["running", "paused", "in_doubt", "interrupted", "done", "failed"]
"""`interrupted`: its process died, or the host failed; `resume` goes on. `in_doubt`: calls wait for Ran or NotRun."""
EntryKind = Literal["pending", "started", "done", "failed", "denied", "decided", "output", "paused", "resumed", "ended"]
REDACTED = "[redacted]"
_FILES = ("files", "images", "displays")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One fact of a run."""

    n: int
    """Its place in the run's log, from 1."""
    kind: EntryKind
    call_id: str
    """The call it is about; empty when it is about none."""
    at: float
    """Seconds since the epoch."""
    body: Mapping[str, Any]
    """By kind, see README.md."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHead:
    """What a run was started with: enough to run its code again."""

    code: str
    inputs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    functions: tuple[FunctionSignature, ...] = ()
    limits: Limits = field(default_factory=Limits)
    tools: Mapping[str, str] = field(default_factory=dict[str, str])
    """A digest of each tool's schema, by name."""
    facts: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the backend must have again: versions, hash seed, packages."""
    key_id: str = ""
    """The key its seed and checkpoints were made with."""
    is_repeatable: bool = True
    """False: the backend cannot run it again, so it ends with its process."""
    inputs_redacted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run as a list of runs shows it."""

    run_id: str
    session_id: str
    """The session it belongs to; empty for a run of its own."""
    place: int
    """The number of the action in its session, from 0."""
    state: RunState
    epoch: int
    """How often it was taken up, the start included."""
    sandbox: str
    tier: str
    started_at: float
    updated_at: float
    ended_at: float | None
    head: RunHead
    ending: ExecutionResult | HatchwayError | None
    """How it ended; None while it has not."""


def to_text(value: Any) -> str:
    """The stored form of a value."""
    return codec.dumps(value).decode("ascii")


def from_text(text: str) -> Any:
    """The value of a stored form.

    Raises:
        JournalError: The text is none: the journal was damaged.
    """
    try:
        return codec.loads(text.encode("ascii"))
    except (codec.Malformed, UnicodeError, AttributeError) as e:
        raise damaged("an entry", e) from e


def damaged(what: str, error: Exception) -> JournalError:
    """Something in a journal is not what was written there."""
    return JournalError(
        f"the journal is damaged: {what} cannot be read: {error!r}", hint="begin another: --journal PATH"
    )


def head_text(head: RunHead) -> str:
    """The stored form of a head."""
    functions = [{"name": f.name, "is_async": f.is_async, "stub": f.stub} for f in head.functions]
    return to_text({**_shallow(head, RunHead), "functions": functions, "limits": asdict(head.limits)})


def head_of(text: str) -> RunHead:
    """The head of a stored form."""
    known = cast("dict[str, Any]", from_text(text))
    try:
        known["functions"] = tuple(FunctionSignature(**f) for f in known["functions"])
        known["limits"] = Limits(**known["limits"])
        return RunHead(**known)
    except (TypeError, KeyError, ValueError) as e:
        raise damaged("the head of a run", e) from e


def call_body(call: FunctionCall) -> dict[str, Any]:
    """A call as part of an entry's body."""
    return {"name": call.function_name, "args": list(call.args), "kwargs": dict(call.kwargs)}


def call_of(call_id: str, body: Mapping[str, Any]) -> FunctionCall:
    """The call an entry tells of."""
    return FunctionCall(
        call_id=call_id, function_name=body["name"], args=tuple(body["args"]), kwargs=dict(body["kwargs"])
    )


def decision_body(decision: Decision) -> dict[str, Any]:
    """A decision as part of an entry's body."""
    match decision:
        case Allow(scope="call"):
            return {"decision": "allow"}
        case Allow(scope=scope, tool=tool, args=args):
            return {"decision": "allow", "scope": scope, "tool": tool, "args": dict(args)}
        case Deny(reason=reason):
            return {"decision": "deny", "reason": reason}
        case Edit(args=args):
            return {"decision": "edit", "args": dict(args)}


def decision_of(body: Mapping[str, Any]) -> Decision:
    """The decision an entry tells of."""
    match body["decision"]:
        case "deny":
            return Deny(body.get("reason", ""))
        case "edit":
            return Edit(body["args"])
        case _:
            return Allow(body.get("scope", "call"), body.get("tool", ""), body.get("args", {}))


def ending_text(end: ExecutionResult | HatchwayError) -> str:
    """The stored form of how a run ended."""
    if isinstance(end, ExecutionResult):
        files = {name: _files(getattr(end, name)) for name in _FILES}
        return to_text({"result": {**_shallow(end, ExecutionResult), "usage": asdict(end.usage), **files}})
    known = {"type": type(end).__name__, "message": end.message, "hint": end.hint}
    if isinstance(end, CodeExecutionError):
        known |= {"stdout": end.stdout, "stderr": end.stderr}
        known |= {"files": _files(end.files), "displays": _files(end.displays)}
    if isinstance(end, CodeLimitError):
        known |= {"limit": end.limit}
    return to_text({"error": known})


def ending_of(text: str) -> ExecutionResult | HatchwayError:
    """How a run ended, of a stored form.

    Raises:
        JournalError: It is none: the journal was damaged.
    """
    known = cast("dict[str, Any]", from_text(text))
    try:
        return _error_of(known["error"]) if "error" in known else _result_of(known["result"])
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise damaged("the end of a run", e) from e


def _result_of(told: dict[str, Any]) -> ExecutionResult:
    told["usage"] = Usage(**told["usage"])
    told |= {name: _exec_files(told[name]) for name in _FILES}
    return ExecutionResult(**told)


def _error_of(told: dict[str, Any]) -> HatchwayError:
    kind = getattr(errors, told.pop("type"), CodeRuntimeError)
    told |= {name: _exec_files(told.get(name, ())) for name in ("files", "displays")}
    if isinstance(kind, type) and issubclass(kind, CodeExecutionError):
        return kind(told.pop("message"), **told)
    return CodeRuntimeError(told["message"], hint=told["hint"])


def _shallow(value: Any, kind: type[Any]) -> dict[str, Any]:
    return {name: getattr(value, name) for name in kind.__dataclass_fields__}


def _files(files: Sequence[ExecFile]) -> list[dict[str, Any]]:
    return [asdict(file) for file in files]


def _exec_files(files: Sequence[Mapping[str, Any]]) -> tuple[ExecFile, ...]:
    return tuple(Display(**file) if "text" in file else ExecFile(**file) for file in files)
