"""Decisions: what a person, a rule or a callback says about one call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from hatchway.core.calls import FunctionCall
from hatchway.core.errors import InvalidSetting


@dataclass(frozen=True, slots=True)
class Allow:
    """The call may run as it stands, and perhaps others like it: `Allow("run", args={"path": "/data/**"})`."""

    scope: Literal["call", "run", "always"] = "call"
    """Whether it holds for this call, for the rest of the run, or for good; a rule that denies still wins."""
    tool: str = ""
    """Beyond this call: pattern for the tool's name; empty is this very tool."""
    args: Mapping[str, str] = field(default_factory=dict[str, str])
    """Beyond this call: a pattern per argument, all must match; none allows any arguments."""

    def __post_init__(self) -> None:
        if self.scope not in ("call", "run", "always"):
            raise InvalidSetting(f"a call is allowed for 'call', 'run' or 'always', not {self.scope!r:.80}")


@dataclass(frozen=True, slots=True)
class Deny:
    """The call may not run; the code sees `ToolDenied` with the reason."""

    reason: str = ""
    """Told to the code, and so to the model."""


@dataclass(frozen=True, slots=True)
class Edit:
    """The call may run with these arguments instead; they are validated and checked again."""

    args: Mapping[str, Any]
    """All arguments by name, replacing the code's."""

    def __post_init__(self) -> None:
        if not isinstance(cast(Any, self.args), Mapping):
            raise InvalidSetting(f"an edit gives all arguments by name, not {self.args!r:.80}", hint='Edit({"x": 1})')


@dataclass(frozen=True, slots=True)
class Ran:
    """A call in doubt did run, and gave this value."""

    value: Any = None


@dataclass(frozen=True, slots=True)
class NotRun:
    """A call in doubt did not run; it may run now."""


@dataclass(frozen=True, slots=True)
class Later:
    """Nobody can say now: the run pauses at the call, and whoever resumes it is asked again."""


Decision = Allow | Deny | Edit
"""What may be said of a call that waits for approval."""
Settlement = Allow | Deny | Edit | Ran | NotRun
"""What `resume` takes per call."""
Approval = Literal["allow", "ask", "deny"]
"""What a tool or a rule says before anyone is asked."""
ApproveCallback = Callable[[FunctionCall], "bool | Decision | Later | Awaitable[bool | Decision | Later]"]
"""Sees a call with bound, validated arguments; sync callbacks run off the event loop."""


class AskFirst(Exception):
    """Raised by a tool that has done nothing yet: somebody must allow this call before it runs.

    The call is asked about as if the tool were marked `ask`; allowed, the tool is called again with
    `CallContext.approved`.
    """


def as_settlement(answer: bool | Settlement) -> Settlement:
    """As `as_decision`, and what may be said of a call in doubt."""
    return answer if isinstance(answer, Ran | NotRun) else as_decision(answer)


def as_decision(answer: bool | Decision) -> Decision:
    """True and False are short for `Allow()` and `Deny()`; anything else is a mistake of the callback."""
    if isinstance(answer, Allow | Deny | Edit):
        return answer
    if answer is True:
        return Allow()
    if answer is False:
        return Deny()
    raise TypeError(f"an approval is True, False, Allow(), Deny(reason) or Edit(args), not {answer!r}")
