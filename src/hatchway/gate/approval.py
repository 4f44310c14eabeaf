"""Approval: who says whether a call may run, in the order the design pins."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from hatchway.core.calls import FunctionCall
from hatchway.core.decisions import Approval, ApproveCallback, Decision, Later, as_decision
from hatchway.gate.rules import Rule, strongest

T = TypeVar("T")
OffLoop = Callable[[Callable[[], T]], Awaitable[T]]
"""Runs a blocking function off the event loop."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known about a call before anybody is asked."""

    kind: Literal["run", "ask", "deny"]
    by: Literal["tool", "rule"] = "tool"
    reason: str = ""


NOBODY_ASKS = Verdict("run")
"""The tool allows itself and no rule speaks about the call: the common case."""
_RUN_BY_RULE = Verdict("run", "rule")


def verdict(
    approval: Approval,
    rules: Sequence[Rule],
    tool: str,
    arguments: Mapping[str, Any],
    *,
    asks_all: bool,
    read_only: bool = False,
) -> Verdict:
    """Deny anywhere wins, then a rule's allow; the rest is asked when somebody asks about everything.

    Args:
        approval: What the tool itself says.
        rules: The stored permissions.
        tool: The name of the tool that is called.
        arguments: The bound arguments, with the tool's defaults filled in, so that leaving one out hides nothing.
        asks_all: An `approve` callback is there and sees every call that no rule settled.
        read_only: The tool says that it changes nothing.
    """
    if approval == "deny":
        return Verdict("deny", "tool", f"the tool {tool} is switched off")
    rule = strongest(rules, tool, arguments, read_only=read_only) if rules else None
    if rule is not None and rule.effect == "deny":
        return Verdict("deny", "rule", rule.reason or f"a rule denies {tool}")
    if rule is not None and rule.effect == "allow":
        return _RUN_BY_RULE
    if asks_all or approval == "ask":
        return Verdict("ask", "tool")
    return Verdict("ask", "rule") if rule is not None else NOBODY_ASKS


async def ask(approve: ApproveCallback, call: FunctionCall, off_loop: OffLoop[Any]) -> Decision | None:
    """The callback's decision, None for `Later`; a sync callback runs off the event loop.

    Raises:
        TypeError: The callback answered something that is no decision.
    """
    if inspect.iscoroutinefunction(approve) or inspect.iscoroutinefunction(type(approve).__call__):
        answer = approve(call)
    else:
        answer = await off_loop(lambda: approve(call))
    said = await answer if inspect.isawaitable(answer) else answer
    return None if isinstance(said, Later) else as_decision(said)
