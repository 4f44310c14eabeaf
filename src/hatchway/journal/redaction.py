"""Redaction: what must not be seen is not stored. Views and events show a mark, the journal keeps a keyed digest."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from hatchway.core.values import to_wire
from hatchway.journal.entries import REDACTED


@dataclass(frozen=True, slots=True)
class Redact:
    """Hides arguments or results of tools: `Redact("mail.*", args=("body",))`, `Redact("vault.read", result=True)`.

    A run whose result was hidden cannot be resumed past that call once its process is gone: the value is nowhere.
    """

    tool: str = "*"
    """Pattern for the tool's name; `*` is any run of characters."""
    args: Sequence[str] = ()
    """Patterns for the names of arguments to hide."""
    result: bool = False
    """Hide what the tool returns."""


class Redaction:
    """The rules of one journal, with the key of its digests."""

    def __init__(self, rules: Iterable[Redact], key: bytes) -> None:
        self._rules = tuple(rules)
        self._key = key

    def is_for(self, tool: str) -> bool:
        """Whether any rule speaks about the tool."""
        return any(fnmatchcase(tool, rule.tool) for rule in self._rules)

    def arguments(self, tool: str, bound: Mapping[str, Any]) -> dict[str, Any] | None:
        """The arguments as they may be seen; None when nothing of them is hidden."""
        hidden = [
            name
            for name in bound
            for rule in self._rules
            if fnmatchcase(tool, rule.tool) and any(fnmatchcase(name, pattern) for pattern in rule.args)
        ]
        return {name: REDACTED if name in hidden else value for name, value in bound.items()} if hidden else None

    def hides_result(self, tool: str) -> bool:
        """Whether what the tool returns is hidden."""
        return any(rule.result and fnmatchcase(tool, rule.tool) for rule in self._rules)

    def digest(self, value: Any) -> str:
        """What is kept of a hidden value: equal values have equal digests, and only the key's owner can tell."""
        return keyed(self._key, value)


def keyed(key: bytes, value: Any) -> str:
    """A keyed digest of a value in its wire form."""
    return hmac.new(key, to_wire(value), hashlib.sha256).hexdigest()
