"""Rules: stored permissions, matched on the tool's name and its arguments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, cast, get_args

from hatchway.core.decisions import Approval
from hatchway.core.errors import InvalidSetting
from hatchway.core.values import as_python

_EFFECTS = get_args(Approval)


@dataclass(frozen=True, slots=True)
class Rule:
    """What holds for calls that match: `Rule("allow", "files.read", {"path": "/data/**"})`.

    In a pattern `*` is any run of characters but `/`, `**` any run at all, `?` one character; the rest is literal.
    An argument pattern is matched against a string as it is and against any other value as JSON. A value with a
    `..` path segment never matches an `allow` rule that has a pattern for it: what it names is not what it says.
    """

    effect: Approval
    """Deny beats allow, allow beats ask, whichever order the rules stand in."""
    tool: str = "*"
    """Pattern for the tool's name; `*` alone is every tool."""
    args: Mapping[str, str] = field(default_factory=dict[str, str])
    """Pattern per argument; all must match, and an argument the call does not have matches none."""
    reason: str = ""
    """Told to the code when the rule denies."""
    read_only: bool = False
    """Whether it speaks about tools only that say of themselves that they change nothing: MCP's `readOnlyHint`."""

    def __post_init__(self) -> None:
        if self.effect not in _EFFECTS:
            raise InvalidSetting(f"a rule's effect is one of {', '.join(_EFFECTS)}, not {self.effect!r}")
        if not self.tool or not isinstance(cast(Any, self.tool), str):
            raise InvalidSetting("a rule needs a tool pattern; '*' is every tool")
        if not isinstance(cast(Any, self.args), Mapping):
            raise InvalidSetting(
                f"a rule's args are patterns by name, not {self.args!r:.80}", hint='{"path": "/data/**"}'
            )
        for name, pattern in self.args.items():
            if not isinstance(cast(Any, pattern), str):
                raise InvalidSetting(
                    f"a rule's pattern for {name} is text, not {pattern!r:.80}",
                    hint=f'{{"{name}": "{json.dumps(pattern, default=str):.80}"}}: other values are matched as JSON',
                )

    def names(self, tool: str) -> bool:
        """Whether the rule speaks about calls of this tool, with whatever arguments it asks for."""
        return self.tool == "*" or glob_pattern(self.tool).fullmatch(tool) is not None

    def matches(self, name: str, arguments: Mapping[str, Any], *, read_only: bool = False) -> bool:
        """Whether the rule speaks about this call, of a tool that says whether it changes anything."""
        if (self.read_only and not read_only) or not self.names(name):
            return False
        return all(key in arguments and self._fits(key, pattern, arguments[key]) for key, pattern in self.args.items())

    def _fits(self, key: str, pattern: str, value: Any) -> bool:
        text = value if isinstance(value, str) else _as_json(value)
        if self.effect == "allow" and ".." in re.split(r"[/\\]", text):
            return False
        return glob_pattern(pattern).fullmatch(text) is not None


def strongest(
    rules: Iterable[Rule], tool: str, arguments: Mapping[str, Any], *, read_only: bool = False
) -> Rule | None:
    """Of the rules that match, the one that counts: deny, then allow, then ask."""
    found: dict[str, Rule] = {}
    for rule in rules:
        if rule.effect not in found and rule.matches(tool, arguments, read_only=read_only):
            if rule.effect == "deny":
                return rule
            found[rule.effect] = rule
    return found.get("allow") or found.get("ask")


@lru_cache(maxsize=1024)
def glob_pattern(glob: str) -> re.Pattern[str]:
    """`*` is any run of characters but `/`, `**` any run at all, `?` one character; the rest is literal."""
    parts = re.split(r"(\*\*|\*|\?)", glob)
    wild = {"**": ".*", "*": "[^/]*", "?": "."}
    return re.compile("".join(wild.get(part) or re.escape(part) for part in parts), re.DOTALL)


def _as_json(value: Any) -> str:
    try:
        return json.dumps(value, sort_keys=True)
    except (TypeError, ValueError):
        return as_python(value)
