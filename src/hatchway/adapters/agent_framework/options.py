"""The options every provider and every `execute_code` tool takes, said once; `spelled_out` shows them in signatures."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, cast, get_args

from hatchway.adapters.agent_framework.contents import ResultForm
from hatchway.adapters.agent_framework.forms import ToolInput
from hatchway.adapters.agent_framework.registry import EXECUTE_CODE, Snapshot
from hatchway.core.errors import InvalidSetting
from hatchway.core.grants import AllowedDomainInput, FileMountInput
from hatchway.core.limits import Limits

if TYPE_CHECKING:
    from hatchway.journal.store import Journal

ApprovalMode = Literal["always_require", "never_require"]
_MODES = ("always_require", "never_require")
F = TypeVar("F", bound=Callable[..., None])


class Options(TypedDict, total=False):
    """What the code may call and reach, and how it is run."""

    tools: ToolInput | Sequence[ToolInput] | None
    """What only the code can call; without tools it is a plain interpreter."""
    approval_mode: ApprovalMode | None
    """Of `execute_code` itself; one tool that requires approval makes it require it too. None is `never_require`."""
    workspace_root: str | Path | None
    """A directory the code reads below `/input`."""
    file_mounts: FileMountInput | Sequence[FileMountInput]
    """Files and directories the code reads; granting one is its approval."""
    allowed_domains: AllowedDomainInput | Sequence[AllowedDomainInput]
    """What the code reaches over the network; granting one is its approval."""
    per_call_approval: bool
    """Run the code and ask about each call of a tool that requires approval, instead of about the code."""
    journal: str | PathLike[str] | Journal | None
    """Where paused actions are kept, for other processes too; None keeps them in this one."""
    limits: Limits | None
    """Of each action."""
    result_form: ResultForm
    """Contents side by side (`flat`), or inside one `code_interpreter_tool_result`."""
    tool_name: str
    """What the model calls it: two providers of one agent need two names."""


DEFAULTS: Options = {
    "tools": None,
    "approval_mode": "never_require",
    "workspace_root": None,
    "file_mounts": (),
    "allowed_domains": (),
    "per_call_approval": False,
    "journal": None,
    "limits": None,
    "result_form": "flat",
    "tool_name": EXECUTE_CODE,
}
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What every model vendor takes."""


def complete(options: Mapping[str, Any], owner: object) -> dict[str, Any]:
    """The options with their defaults.

    Raises:
        TypeError: An option there is not.
        InvalidSetting: An option cannot have this value.
    """
    if unknown := sorted(set(options) - set(DEFAULTS)):
        raise TypeError(f"{type(owner).__name__} takes no {', '.join(unknown)}")
    given: dict[str, Any] = {**DEFAULTS, **options}
    if given["limits"] is not None and not isinstance(given["limits"], Limits):
        raise InvalidSetting(f"limits is a Limits, not {given['limits']!r:.80}", hint="limits=Limits(wall_seconds=30)")
    if given["result_form"] not in get_args(ResultForm):
        raise InvalidSetting(f"result_form is 'flat' or 'code_interpreter', not {given['result_form']!r:.80}")
    if isinstance(given["journal"], bool | int | float | bytes):
        raise InvalidSetting(f"journal is a path or a database URL, not {given['journal']!r:.80}")
    if not isinstance(given["tool_name"], str) or not _TOOL_NAME.fullmatch(given["tool_name"]):
        raise InvalidSetting(f"tool_name is letters, digits, - and _, not {given['tool_name']!r:.80}")
    return given


def spelled_out(init: F) -> F:
    """Show `**options` of a constructor as the keywords they are."""
    signature = inspect.signature(init)
    own = [each for each in signature.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    told = {name: str(getattr(hint, "__forward_arg__", hint)) for name, hint in Options.__annotations__.items()}
    given = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=told[name])
        for name, default in DEFAULTS.items()
    ]
    cast(Any, init).__signature__ = signature.replace(parameters=[*own, *given])
    return init


def effective_approval(given: str | None, snapshot: Snapshot, *, per_call: bool) -> ApprovalMode:
    """Whether `execute_code` itself must be approved.

    Raises:
        InvalidSetting: A word the framework would take for "never".
    """
    mode = given or "never_require"
    if mode not in _MODES:
        raise InvalidSetting(f"approval_mode is 'always_require' or 'never_require', not {mode!r}")
    if unknown := [tool for tool in snapshot.tools if tool.approval_mode not in _MODES]:
        word = cast(Any, unknown[0]).approval_mode
        raise InvalidSetting(f"the tool {unknown[0].name!r} has the unknown approval_mode {word!r}")
    escalates = snapshot.needs_approval and not per_call
    return "always_require" if mode == "always_require" or escalates else "never_require"
