"""Every error Hatchway raises, in one tree.

HatchwayError                      message, hint
├── CodeExecutionError             the model's code failed: stdout, stderr, files, displays, calls so far
│   ├── CodeSyntaxError            it does not parse
│   ├── CodeTypeError              the type check before the run refused it
│   ├── CodeRuntimeError           it raised, or its interpreter died
│   ├── CodeTimeoutError           it ran past `Limits.wall_seconds`
│   └── CodeLimitError             it went over another limit
├── ToolError (RuntimeError)       a tool failed; raised INSIDE the code at the call
│   └── ToolDenied                 the gate said no; raised INSIDE the code at the call
├── ValueNotPortable (TypeError)   a value cannot cross the wall; names its path
├── InvalidTool (ValueError)       a tool, or a set of tools, is not usable as given
├── InvalidSetting (ValueError)    an argument of a sandbox, rule or mode is not valid
├── ApprovalRequired               a run stands at calls that wait for a decision
├── InDoubt                        a crash left calls of which nobody knows whether they ran
├── CheckpointRefused              a checkpoint is not ours, damaged, used or out of date
│   └── ReplayDiverged             the code went another way than the journal tells; nothing was called
├── UnknownRun (KeyError)          no such run in this journal
├── RunTaken                       somebody else drives this run
├── JournalError                   the journal cannot be opened, read or written
├── SandboxUnavailable             the host cannot offer this sandbox here
│   └── MissingExtra               the package of that backend is not installed
├── SandboxCrashed                 the sandbox's own machinery died, not the code
├── TransportError                 the channel to the sandbox broke
├── ServerUnavailable              an MCP server cannot be reached, or does not answer as one
└── AnswerWithheld (AssertionError) a model's answer was filtered, refused or cut short, or its rounds were over

Three kinds, never mixed: the code failed (`CodeExecutionError`), a tool failed (`ToolError`, seen by the
code only), the host failed (`SandboxUnavailable`, `SandboxCrashed`, `TransportError`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from hatchway.core.calls import CallRecord, FunctionCall
    from hatchway.core.results import Display, ExecFile

_SHOWN_MEMBERS = 10
"""Errors of a group that are told."""


class HatchwayError(Exception):
    """The root: catch this to catch everything Hatchway raises on purpose."""

    def __init__(self, message: str = "", *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        """What happened, in one or a few lines."""
        self.hint = hint
        """What to do next: the exact command or change, or empty."""

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class CodeExecutionError(HatchwayError):
    """The model's code failed; what it had done until then is kept.

    Args:
        message: The traceback as the code would have printed it, with the code's own line numbers.
        stdout: Everything printed so far.
        stderr: Everything written to stderr so far.
        files: Output files collected so far.
        displays: Pictures and other things shown so far.
        calls: The tool calls the code had made, with their outcomes.
        hint: What the author of the code can change.
    """

    def __init__(
        self,
        message: str = "",
        *,
        stdout: str = "",
        stderr: str = "",
        files: Sequence[ExecFile] = (),
        displays: Sequence[Display] = (),
        calls: Sequence[CallRecord] = (),
        hint: str = "",
    ) -> None:
        super().__init__(message, hint=hint)
        self.stdout = stdout
        self.stderr = stderr
        self.files = tuple(files)
        self.displays = tuple(displays)
        self.calls = tuple(calls)
        self.earlier_calls = 0
        """How many calls it had made before those in `calls`: of very many only the last are kept."""

    @property
    def images(self) -> tuple[Display, ...]:
        """The pictures among the displays."""
        return tuple(display for display in self.displays if display.mime_type.startswith("image/"))


class CodeSyntaxError(CodeExecutionError):
    """The code does not parse, or uses syntax this sandbox does not have. Nothing ran."""


class CodeTypeError(CodeExecutionError):
    """The type check before the run refused the code. Nothing ran."""


class CodeRuntimeError(CodeExecutionError):
    """The code raised, or killed its own interpreter."""


class CodeTimeoutError(CodeExecutionError):
    """The code ran past `Limits.wall_seconds` and is dead, with all its descendants."""


class CodeLimitError(CodeExecutionError):
    """The code went over a limit other than time.

    Args:
        limit: The field of `Limits` that was exceeded, such as `"memory_bytes"`.
    """

    def __init__(self, message: str = "", *, limit: str = "", **so_far: Any) -> None:
        super().__init__(message, **so_far)
        self.limit = limit


class ToolError(HatchwayError, RuntimeError):
    """A tool failed. It is raised inside the code, at the call, and can be caught there."""


class ToolDenied(ToolError):
    """The gate refused a call. It is raised inside the code, at the call, and can be caught there."""


class ValueNotPortable(HatchwayError, TypeError):
    """A value cannot cross the wall.

    Args:
        path: Where in the value the offender sits, such as `"result['rows'][3]"`.
    """

    def __init__(self, message: str = "", *, path: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.path = path


class InvalidTool(HatchwayError, ValueError):
    """A tool cannot be offered to code as given: its name, its schema, or a clash with another."""


class InvalidSetting(HatchwayError, ValueError):
    """An argument of a sandbox, a rule or a mode is not valid."""


class ApprovalRequired(HatchwayError):
    """A run stands at calls that wait for a person's decision; `CodeMode.resume` goes on from there."""

    def __init__(self, run_id: str, pending: Sequence[FunctionCall]) -> None:
        names = ", ".join(call.function_name for call in pending)
        super().__init__(
            f"{f'run {run_id}' if run_id else 'the turn'} waits for approval of {len(pending)} call(s): {names}",
            hint="decide with `await resume(run_id, {call_id: Allow() | Deny(reason) | Edit(args)})`",
        )
        self.run_id = run_id
        self.pending = tuple(pending)


class InDoubt(HatchwayError):
    """A crash fell between a call's start and its recorded end: it ran, or it did not."""

    def __init__(self, run_id: str, calls: Sequence[FunctionCall]) -> None:
        names = ", ".join(call.function_name for call in calls)
        super().__init__(
            f"run {run_id} has {len(calls)} call(s) in doubt: {names}",
            hint="look whether the effect is there, then resume with {call_id: Ran(value) | NotRun()}",
        )
        self.run_id = run_id
        self.calls = tuple(calls)


class CheckpointRefused(HatchwayError):
    """A checkpoint cannot be restored. The code is not run again from the start."""

    def __init__(self, reason: str, *, hint: str = "") -> None:
        super().__init__(f"checkpoint refused: {reason}", hint=hint)
        self.reason = reason


class ReplayDiverged(CheckpointRefused):
    """The code, run again, went another way than the journal tells. It was stopped before it called anything.

    Args:
        expected: The call the journal has next, such as `"lookup(3)"`; empty when it has none.
        actual: What the code did instead.
        line: The line of the code that did it; 0 where it cannot be told.
    """

    def __init__(self, *, expected: str, actual: str, line: int = 0) -> None:
        where = f" (line {line} of the code)" if line else ""
        super().__init__(
            f"the code went another way than before: expected {expected or 'no further call'}, got {actual}{where}",
            hint="threads that race, or an order that depends on addresses, cannot be repeated",
        )
        self.expected = expected
        self.actual = actual
        self.line = line


class UnknownRun(HatchwayError, KeyError):
    """The journal knows no run of this id."""

    def __init__(self, run_id: str, *, hint: str = "runs kept in memory end with their CodeMode") -> None:
        super().__init__(f"no run {run_id!r} in this journal", hint=hint)
        self.run_id = run_id


class RunTaken(HatchwayError):
    """Somebody else drives this run or has this session: another process, or another task of this one."""

    def __init__(self, run_id: str, *, what: str = "run", is_journaled: bool = True) -> None:
        follow = f"; follow it with `hatchway show -f {run_id}`" if is_journaled else ""
        hint = f"wait for it to end, pause or die{follow}"
        super().__init__(
            f"{what} {run_id} is being driven by somebody else",
            hint=hint if what == "run" else "wait until it is closed, or open a new one",
        )
        self.run_id = run_id


class JournalError(HatchwayError):
    """The journal cannot be opened, read or written."""


class SandboxUnavailable(HatchwayError):
    """The host cannot offer this sandbox here; the hint says what would change that."""


class MissingExtra(SandboxUnavailable):
    """The package a backend or adapter wraps is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} is not installed", hint=f"pip install 'hatchway[{extra}]'")
        self.extra = extra


class SandboxCrashed(HatchwayError):
    """The sandbox's own machinery (supervisor, pool, engine) died while code was running."""


class TransportError(HatchwayError):
    """The channel between host and sandbox broke, and not because the code ended."""


class ServerUnavailable(HatchwayError):
    """An MCP server cannot be started or reached, died, or does not answer as one."""


class AnswerWithheld(HatchwayError, AssertionError):
    """A model gave no whole answer: it was filtered, refused or cut short, or came not within the rounds it had.

    Args:
        provider: The vendor, or the agent.
        reason: The vendor's own word for it, such as `"content_filter"`, or `"max_rounds"`.
        text: What there is of the answer.
        hint: What to do next, where the reason does not tell it.
    """

    def __init__(self, provider: str, reason: str, *, text: str = "", hint: str = "") -> None:
        is_long = "max" in reason.lower() or "length" in reason.lower()
        next_step = "raise max_output_tokens" if is_long else "ask in other words"
        if "context_window" in reason:
            next_step = "the conversation is too long for the model: ask in a new one"
        super().__init__(
            f"{provider} gave no whole answer: {reason}" + (f": {text[:500]}" if text else ""), hint=hint or next_step
        )
        self.provider = provider
        self.reason = reason
        self.text = text

    @classmethod
    def after(cls, provider: str, rounds: int) -> AnswerWithheld:
        """A model kept writing code past the rounds it had; the last code was not run."""
        told = f"the model still writes code after {rounds} round(s)"
        return cls(provider, "max_rounds", text=told, hint="raise max_rounds, or ask for less")


def described(error: BaseException) -> Mapping[str, str]:
    """The class name and message of an error, as they may be shown inside a sandbox; of a group, also its members."""
    kind = type(error).__name__
    try:
        message = str(error)
    except BaseException:
        message = "(its message could not be read)"
    if isinstance(error, BaseExceptionGroup):
        message = f"{message}: {_members(cast('BaseExceptionGroup[BaseException]', error))}"
    return {"type": kind, "message": message}


def _members(group: BaseExceptionGroup[BaseException]) -> str:
    """The errors of a group and of the groups in it, in one line: without them nobody could tell what went wrong."""
    told: list[str] = []
    left: list[BaseException] = list(group.exceptions)
    while left and len(told) < _SHOWN_MEMBERS:
        member = left.pop(0)
        if isinstance(member, BaseExceptionGroup):
            left[:0] = cast("BaseExceptionGroup[BaseException]", member).exceptions
        else:
            told.append(": ".join(part for part in described(member).values() if part))
    return "; ".join([*told, *(["and more"] if left else [])])
