"""The settings of a code mode, as the toolset, the capability and the desk behind them have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

from hatchway.core.errors import InvalidSetting
from hatchway.core.limits import Limits
from hatchway.core.sandbox import CodeSandbox
from hatchway.gate.rules import Rule
from hatchway.sandboxes.registry import sandbox_class

if TYPE_CHECKING:
    from hatchway.journal.store import Journal


@dataclass(kw_only=True)
class CodeModeSettings:
    """How code runs, and what the model is told of it."""

    sandbox: CodeSandbox | str
    """An instance, which stays the caller's to close, or a registered name."""
    tool_name: str = "execute_code"
    """What the model calls it."""
    limits: Limits | None = None
    """Of each action."""
    journal: str | PathLike[str] | Journal | None = None
    """Where paused actions are kept; None keeps them in this process."""
    rules: Sequence[Rule] = ()
    """Stored permissions, on top of what the agent's tools say."""
    type_check: bool = True
    """Check code before it runs, where the sandbox can and no state is kept."""
    state: Literal["none", "run", "conversation"] = "none"
    """How long names persist: for one action, one run of the agent, or one conversation."""
    max_retries: int = 3
    """Times in a row the model may correct code that failed."""
    max_sessions: int = 16
    """Interpreters kept at one time; past that the one used longest ago is closed."""

    def settings(self) -> dict[str, Any]:
        """The settings by name."""
        return {field.name: getattr(self, field.name) for field in fields(CodeModeSettings)}

    def check(self) -> None:
        """Tell a mistake now, and import the sandbox now: not on the event loop, in the middle of a run.

        Raises:
            InvalidSetting: A name nobody knows, or no such state.
            MissingExtra: A package is not installed.
        """
        if self.state not in ("none", "run", "conversation"):
            raise InvalidSetting(f"state is 'none', 'run' or 'conversation', not {self.state!r}")
        if isinstance(self.sandbox, str) and self.sandbox != "auto":
            sandbox_class(self.sandbox)
