"""What other MCP clients write into an entry, in our words: a file that worked for one of them works here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SAME = {
    "transport": "type",
    "transportType": "type",
    "serverUrl": "url",
    "httpUrl": "url",
    "includeTools": "include",
    "tools": "include",
    "excludeTools": "exclude",
    "disabledTools": "exclude",
}
"""Their word, and ours for the same thing."""
_LEFT_OUT = frozenset(
    ("alwaysAllow", "autoApprove", "autoStart", "description", "displayName", "gallery", "icon", "name", "trust")
)
"""What is for their screens, or gives leave to call tools: leave is given by rules here, never by such a word."""


def in_our_words(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry with other clients' words replaced; where both are there, ours counts."""
    ours: dict[str, Any] = {}
    for word, value in entry.items():
        if word in _LEFT_OUT:
            continue
        if word == "enabled" and isinstance(value, bool):
            ours.setdefault("disabled", not value)
        elif word in _SAME:
            ours.setdefault(_SAME[word], value)
        else:
            ours[word] = value
    return ours
