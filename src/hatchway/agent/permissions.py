"""Permissions: what may run without asking, for this session or for good, and what may never run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hatchway.agent.permission_file import PermissionFile
from hatchway.gate.patterns import parse_pattern, render_pattern
from hatchway.gate.rules import Rule, strongest

FILE = "permissions.json"


class PermissionManager:
    """Remembers decisions: for good in `permissions.json`, or until the session ends. Deny rules win over all of them.

    Args:
        hatchway_dir: The folder the permissions lie in; its parent is the working directory.
    """

    def __init__(self, hatchway_dir: Path = Path(".hatchway")) -> None:
        self._folder = hatchway_dir.expanduser().absolute()
        self._file = PermissionFile(self._folder / FILE)
        self._session: list[Rule] = []

    async def load(self) -> None:
        """Read `permissions.json`; without one nothing is allowed and nothing denied.

        Raises:
            InvalidSetting: It has mistakes; each is told with line and column.
        """
        await asyncio.to_thread(self._file.load)

    async def save(self) -> None:
        """Write what is allowed for good. What other processes added meanwhile is kept.

        Raises:
            InvalidSetting: The file cannot be written, or somebody else left it broken.
        """
        await asyncio.to_thread(self._file.save)

    async def allow_always(self, tool_name: str, pattern: str | None = None) -> None:
        """Allow a tool, or the calls a pattern names, for good; stored when this returns.

        Args:
            tool_name: The tool that was asked about.
            pattern: Such as `read_file(path=src/**)`; None allows every call of the tool.

        Raises:
            InvalidSetting: It is no pattern, or cannot be stored.
        """
        self._file.allow(pattern or tool_name)
        await self.save()

    def allow_session(self, tool_name: str, pattern: str | None = None) -> None:
        """As `allow_always`, until this process ends."""
        self._session.append(_rule(pattern or tool_name))

    def is_allowed(self, tool_name: str, tool_args: Mapping[str, Any] | None = None) -> bool:
        """Whether the call may run without asking."""
        args = tool_args or {}
        rule = strongest([*self._file.rules(), *self._session], tool_name, args)
        return rule is not None and rule.effect == "allow"

    def is_denied(self, tool_name: str, tool_args: Mapping[str, Any] | None = None) -> str | None:
        """Why the call may not run at all; None when no rule denies it."""
        rule = strongest(self._file.rules(), tool_name, tool_args or {})
        return (rule.reason or f"a rule denies {tool_name}") if rule is not None and rule.effect == "deny" else None

    def suggest(self, tool_name: str, tool_args: Mapping[str, Any] | None = None) -> str:
        """The pattern to offer for calls like this one, for a person to edit."""
        return render_pattern(tool_name, {})


def _rule(pattern: str) -> Rule:
    tool, args = parse_pattern(pattern)
    return Rule("allow", tool, args)
