"""Permissions: what may run without asking, for this session or for good, and what may never run."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from hatchway.agent.permission_file import PermissionFile
from hatchway.gate.call_rules import COMMAND_ARGUMENTS, CallRule, call_rule
from hatchway.gate.commands import single_commands, suggested_pattern
from hatchway.gate.patterns import render_pattern
from hatchway.gate.places import PATH_ARGUMENTS, is_within, paths_of, real_path, strings_in
from hatchway.gate.rules import strongest
from hatchway.gate.shell_escapes import shell_escapes

FILE = "permissions.json"
CODE_TOOL = "execute_code"
"""The model's tool for a code action."""
SHELL = "shell"
"""What rules call the commands of `!cmd` and `%%bash` in code: `shell(command=git status)`."""
READS, WRITES = frozenset(("read_file",)), frozenset(("write_file", "edit_file"))
"""The agent's own file tools."""
_MOST_CHARACTERS = 4096
"""A longer text is a content, and names no file."""
_MARKS = re.compile(r"['\"\\{}]")
_BETWEEN_WORDS = re.compile(r"[\s;&|<>()'\"`=,]+")


class PermissionManager:
    """Remembers decisions: for good in `permissions.json`, or until the session ends. Deny rules win over all of them.

    The agent's own folder is never written without asking, whatever is allowed; its `plans/` always is.

    Args:
        hatchway_dir: The folder the permissions lie in; its parent is the working directory.
    """

    def __init__(self, hatchway_dir: Path = Path(".hatchway")) -> None:
        self._folder = hatchway_dir.expanduser().absolute()
        self._root = self._folder.parent.resolve()
        self._file = PermissionFile(self._folder / FILE, self._root)
        self._session: list[CallRule] = []

    async def load(self) -> None:
        """Read `permissions.json`; without one nothing is allowed and nothing denied.

        Raises:
            InvalidSetting: It has mistakes; each is told with line and column.
        """
        await asyncio.to_thread(self._file.load)

    async def save(self) -> None:
        """Write what is allowed for good. What other processes added meanwhile is kept, and holds here too.

        Raises:
            InvalidSetting: The file cannot be written, or somebody left it broken.
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
        """As `allow_always`, until this process ends.

        Raises:
            InvalidSetting: It is no pattern.
        """
        self._session.append(call_rule("allow", pattern or tool_name, self._root))

    def is_allowed(self, tool_name: str, tool_args: Mapping[str, Any] | None = None) -> bool:
        """Whether the call may run without asking; False where that cannot be told for sure."""
        args = dict(tool_args or {})
        if self.is_denied(tool_name, args) is not None or self._may_be_denied(tool_name, args):
            return False
        if self._is_own_business(tool_name, args):
            return True
        return not self._is_guarded(tool_name, args) and self._is_granted(tool_name, args)

    def is_denied(self, tool_name: str, tool_args: Mapping[str, Any] | None = None) -> str | None:
        """Why the call may not run at all; None when no rule denies it."""
        args = dict(tool_args or {})
        for name, each in [(tool_name, args), *((SHELL, {"command": text}) for text in _escapes(tool_name, args)[0])]:
            rule = strongest(self._file.rules, name, each)
            if rule is not None and rule.effect == "deny":
                return rule.reason or f"a rule of {FILE} denies {render_pattern(rule.tool, rule.args)}"
        return None

    def suggest(self, tool_name: str, tool_args: Mapping[str, Any] | None = None) -> str:
        """The pattern to offer for calls like this one, for a person to edit."""
        args = tool_args or {}
        for key, value in args.items():
            if key in COMMAND_ARGUMENTS and isinstance(value, str):
                pattern = render_pattern(tool_name, {key: suggested_pattern(value)})
                is_enough = call_rule("allow", pattern, self._root).matches(tool_name, args)
                return pattern if is_enough else render_pattern(tool_name, {key: f"={value}"})
        wanted = {
            key: self._around(value) for key, value in args.items() if key in PATH_ARGUMENTS and isinstance(value, str)
        }
        return render_pattern(tool_name, wanted)

    def _around(self, path: str) -> str:
        """The folder of a file of the workspace; elsewhere, and at its top, the file itself."""
        real = real_path(path, self._root)
        if real is None or "*" in path or "?" in path:
            return f"={path}"
        if not Path(real).is_relative_to(self._root):
            return real
        folder = Path(real).relative_to(self._root).parent
        return f"{folder}/**" if folder.parts else str(Path(real).relative_to(self._root))

    def _is_granted(self, tool_name: str, args: Mapping[str, Any]) -> bool:
        """Whether rules allow the call: each command in it, and each that its code gives to a shell."""
        texts, is_all = _escapes(tool_name, args)
        rules = [*self._file.rules, *self._session]
        if not is_all or not all(self._is_granted(SHELL, {"command": text}) for text in texts):
            return False
        return _allowed(rules, tool_name, args) or all(
            _allowed(rules, tool_name, each) for each in _one_command_each(args)
        )

    def _may_be_denied(self, tool_name: str, args: Mapping[str, Any]) -> bool:
        return any(rule.effect == "deny" and rule.may_match(tool_name, args) for rule in self._file.rules)

    def _is_own_business(self, tool_name: str, args: Mapping[str, Any]) -> bool:
        """Plans, which the agent may always write and read; skills and large results, which it may read."""
        inside = (
            {"plans", "skills", "results"} if tool_name in READS else {"plans"} if tool_name in WRITES else set[str]()
        )
        paths = paths_of(args.get("path")) if inside else None
        return bool(paths) and all(self._part(path) in inside for path in paths or ())

    def _part(self, path: str) -> str:
        """The part of the agent's folder that a path leads to; empty when it leads elsewhere."""
        real, folder = real_path(path, self._root), self._folder.resolve()
        if real is None or not Path(real).is_relative_to(folder):
            return ""
        parts = Path(real).relative_to(folder).parts
        return parts[0] if len(parts) > 1 else ""

    def _is_guarded(self, tool_name: str, args: Mapping[str, Any]) -> bool:
        """Whether the call names something in the agent's folder, and may change it."""
        if tool_name in READS or tool_name == CODE_TOOL:  # code is held by the sandbox, which keeps the folder shut
            return False
        try:
            texts = list(strings_in(args))
        except ValueError:
            return True
        paths = [path for key in PATH_ARGUMENTS & args.keys() for path in paths_of(args[key]) or ()]
        if any(len(path) > _MOST_CHARACTERS for path in paths):
            return True
        short = [text for text in texts if len(text) <= _MOST_CHARACTERS]
        if any(self._spells_home(text) for text in short):
            return True
        words = [word for text in short for word in _BETWEEN_WORDS.split(text)]
        return any(self._leads_home(text) for text in {*short, *words})

    def _spells_home(self, text: str) -> bool:
        """Whether the folder's name stands in a text, also quoted, encoded or abbreviated, as a shell reads it."""
        plain = _MARKS.sub("", unquote(unquote(text))).casefold()
        name = self._folder.name.casefold()
        if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])(?!/plans/(?!.*\.\.))", plain, re.DOTALL):
            return True
        globs = re.findall(rf"{re.escape(name[:1])}[^\s/]*[*?\[][^\s/]*", plain)
        return any(fnmatchcase(name, each) for each in globs if each.strip(".*"))

    def _leads_home(self, text: str) -> bool:
        ways = {text, unquote(text), os.path.expanduser(text)}
        found = [(way, real) for way in ways if (real := real_path(way, self._root)) is not None]
        return any(is_within(real, self._folder) and self._part(way) != "plans" for way, real in found)


def _allowed(rules: Iterable[CallRule], tool_name: str, args: Mapping[str, Any]) -> bool:
    rule = strongest(rules, tool_name, args)
    return rule is not None and rule.effect == "allow"


def _escapes(tool_name: str, args: Mapping[str, Any]) -> tuple[list[str], bool]:
    code = args.get("code")
    return shell_escapes(code) if tool_name == CODE_TOOL and isinstance(code, str) else ([], True)


def _one_command_each(args: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The call once for each command of its text; once as it is where the text is not plain."""
    for key, value in args.items():
        if key in COMMAND_ARGUMENTS and isinstance(value, str):
            return [{**args, key: text} for text in single_commands(value) or (value,)]
    return [dict(args)]
