"""Permissions a person gave while deciding: for the rest of a run, or for good."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hatchway.core.calls import FunctionCall
from hatchway.core.decisions import Allow
from hatchway.gate.rules import Rule, strongest

if TYPE_CHECKING:
    from hatchway.journal.store import Journal


class Grants:
    """What was allowed beyond single calls.

    Args:
        always: Permissions for good; shared by the runs of a mode, and added to.
        keep: Stores a permission: the rule, and whether it is for good.
    """

    def __init__(self, always: list[Rule], keep: Callable[[Rule, bool], None] | None = None) -> None:
        self._always = always
        self._here: list[Rule] = []
        self._keep = keep

    def known(self, rules: Sequence[Rule]) -> None:
        """Permissions this run was given before."""
        self._here += rules

    def add(self, call: FunctionCall, decision: Allow) -> None:
        """Take in what was allowed; a decision about one call alone adds nothing."""
        if decision.scope == "call":
            return
        rule = Rule("allow", decision.tool or call.function_name, dict(decision.args))
        is_for_good = decision.scope == "always"
        (self._always if is_for_good else self._here).append(rule)
        if self._keep is not None:
            self._keep(rule, is_for_good)

    def allow(self, call: FunctionCall, arguments: Mapping[str, Any]) -> bool:
        """Whether a person has allowed such calls."""
        if not self._always and not self._here:
            return False
        return strongest([*self._always, *self._here], call.function_name, arguments) is not None


def stored_rules(journal: Journal, run_id: str | None = None) -> list[Rule]:
    """Permissions people gave, for good or for this run."""
    return [Rule(body["effect"], body["tool"], body["args"]) for body in journal.rules(run_id)]


def keep_rule(journal: Journal, run_id: str, rule: Rule, is_for_good: bool) -> None:
    """Store a permission a person gave."""
    body = {"effect": rule.effect, "tool": rule.tool, "args": dict(rule.args)}
    journal.add_rule(uuid.uuid4().hex, body, run_id=None if is_for_good else run_id)
