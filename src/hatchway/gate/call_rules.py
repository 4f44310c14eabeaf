"""Rules that know what arguments mean: paths lead somewhere, commands are read by a shell."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hatchway.core.decisions import Approval
from hatchway.gate.commands import command_text, denies_command, names_command
from hatchway.gate.patterns import parse_pattern
from hatchway.gate.places import PATH_ARGUMENTS, allows_path, denies_path, holds_named, paths_of, real_path
from hatchway.gate.rules import Rule

COMMAND_ARGUMENTS = frozenset(("command", "cmd", "shell_command", "commandline", "command_line", "script"))
"""Arguments that a shell reads, by custom."""
SECRETS = (".env", ".env.*", "*.pem", "*.key", "id_*", ".netrc", ".ssh", ".aws", ".gnupg")
"""Names that no wildcard of a command stands for."""
_PARTS = re.compile(r"[:=@,]+")
"""Between what one word names: `HEAD:.env`, `if=.env`, `file=@.env`."""


@dataclass(frozen=True, slots=True)
class CallRule(Rule):
    """A rule whose patterns over `path` go by where the path leads, and over `command` by the words of each command.

    A pattern that begins with `=` stands for the rest of it and nothing else.
    """

    root: Path = Path("/")
    """The working directory: where relative paths begin."""

    def may_match(self, name: str, arguments: Mapping[str, Any]) -> bool:
        """Whether it might speak about the call, for all that can be known: a command can hide what it runs."""
        if not self.names(name):
            return False
        return all(
            key in arguments and self._may_fit(key, pattern, arguments[key]) for key, pattern in self.args.items()
        )

    def _may_fit(self, key: str, pattern: str, value: Any) -> bool:
        text = command_text(value) if key in COMMAND_ARGUMENTS and not pattern.startswith("=") else None
        if text is not None:
            return denies_command(pattern, text, in_doubt=True)
        return self._fits(key, pattern, value)

    def _fits(self, key: str, pattern: str, value: Any) -> bool:
        if pattern.startswith("="):
            return value == pattern[1:]
        if key in PATH_ARGUMENTS and (paths := paths_of(value)) is not None:
            if self.effect == "deny":
                return any(denies_path(pattern, path, self.root) for path in paths)
            return bool(paths) and all(allows_path(pattern, path, self.root) for path in paths)
        if key in COMMAND_ARGUMENTS and (text := command_text(value)) is not None:
            if self.effect == "deny":
                return denies_command(pattern, text)
            return names_command(pattern, text, self._is_plain_word)
        return super(CallRule, self)._fits(key, pattern, value)

    def _is_plain_word(self, word: str) -> bool:
        """Whether a wildcard may stand for it: no option, and nothing but what is in the workspace and no secret."""
        return bool(word) and all(self._is_plain_path(part) for part in {word, *_PARTS.split(word)} if part)

    def _is_plain_path(self, word: str) -> bool:
        """Not the workspace itself: the agent's own folder lies there; nor a folder in which a secret lies."""
        if word.startswith(("-", "/", "~", "@")) or ".." in word.split("/"):
            return False
        if any(denies_path(pattern, word, self.root) for pattern in SECRETS):
            return False
        real = real_path(word, self.root)
        if real is None or real == str(self.root) or not Path(real).is_relative_to(self.root):
            return False
        return not holds_named(real, SECRETS)


def call_rule(effect: Approval, pattern: str, root: Path, reason: str = "") -> CallRule:
    """The rule a line says, such as `read_file(path=src/**)`.

    Raises:
        InvalidSetting: It is no pattern.
    """
    tool, args = parse_pattern(pattern)
    return CallRule(effect, tool, args, reason=reason, root=root)
