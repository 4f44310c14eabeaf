"""Which interpreter a language has. Adding a language is one row."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from hatchway.core.errors import InvalidSetting, SandboxUnavailable


class Interpreter(NamedTuple):
    """A command that reads a program from its stdin."""

    command: str
    """A path, or a name that is looked up on the host's `PATH`."""
    args: tuple[str, ...] = ("-",)
    """What makes it read stdin, and more."""

    def argv(self) -> list[str]:
        """The command line, with the full path.

        Raises:
            SandboxUnavailable: There is no such program.
        """
        path = shutil.which(self.command)
        if path is None:
            raise SandboxUnavailable(
                f"there is no interpreter {self.command!r} on this machine",
                hint="install it, or name another: LocalCodeExecutor().with_interpreter('/path/to/it')",
            )
        return [os.path.abspath(path), *self.args]


LANGUAGES: Mapping[str, Interpreter] = {
    "python": Interpreter(sys.executable or "python3"),  # a `python3` of the PATH may be a shim with ways of its own
    "shell": Interpreter("sh", ("-s",)),
    "bash": Interpreter("bash", ("-s",)),
    "node": Interpreter("node"),
}
ALIASES: Mapping[str, str] = {
    "py": "python", "python3": "python", "tool_code": "python",
    "sh": "shell",
    "js": "node", "javascript": "node", "nodejs": "node",
}  # fmt: skip
"""What models write for a language."""


def language_id(written: str) -> str:
    """The id of a language, however a model wrote it."""
    word = written.strip().lower()
    return ALIASES.get(word, word)


def unknown_language(language: str, known: Iterable[str]) -> InvalidSetting:
    """The error for a language an executor does not have."""
    return InvalidSetting(f"there is no language {language!r} here", hint=f"there are: {', '.join(known)}")
