"""Which names a tool may have: what the code can call without losing anything of its own."""

from __future__ import annotations

import builtins
import keyword
import unicodedata
from collections.abc import Collection
from typing import Any

from hatchway.core.errors import InvalidTool

_BUILTINS = frozenset([*dir(builtins), "ToolError", "ToolDenied"])
"""The last two are builtins inside: what code catches when a call fails."""


def check_name(name: Any) -> None:
    """Refuse a name the code could not call.

    Raises:
        InvalidTool: It is no identifier (or several with dots between), a keyword, a builtin, or Python's own.
    """
    if not isinstance(name, str):
        raise InvalidTool(f"the name of a tool is text, not {name!r:.80}", hint='tool(fn, name="lookup")')
    if name in ("", "<lambda>"):
        raise InvalidTool("a lambda or another callable without a name needs one", hint='tool(fn, name="lookup")')
    parts = name.split(".")
    for part in parts:
        if reason := _flaw(part):
            raise InvalidTool(
                f"{name!r} cannot be the name of a tool: {reason}", hint=f"give name=, such as {_like(name)!r}"
            )
    if parts[0] in _BUILTINS:
        raise InvalidTool(
            f"{name!r} cannot be the name of a tool: the code would lose the builtin {parts[0]!r}",
            hint=f"give name=, such as {_like(name)!r}",
        )


def check_names(name: str, others: Collection[str], spaces: set[str]) -> None:
    """Refuse a name that does not go together with those of other tools; its namespaces are added to theirs.

    Raises:
        InvalidTool: Another has it, or one of the two is a namespace of the other.
    """
    if name in others:
        raise InvalidTool(f"two tools are named {name!r}", hint="give one of them another name=")
    parts = name.split(".")
    within = {".".join(parts[:n]) for n in range(1, len(parts))}
    if name in spaces:
        inner = next(other for other in others if other.startswith(f"{name}."))
        raise InvalidTool(f"{name!r} is the name of a tool and the namespace of {inner!r}")
    if clash := next((space for space in within if space in others), None):
        raise InvalidTool(f"{clash!r} is the name of a tool and the namespace of {name!r}")
    spaces |= within


def _flaw(part: str) -> str:
    if keyword.iskeyword(part):
        return f"{part!r} is a keyword of Python"
    if not part.isidentifier() or unicodedata.normalize("NFKC", part) != part:
        return f"{part!r} is not an identifier"
    return "names that begin with '__' are Python's own" if part.startswith("__") else ""


def _like(name: str) -> str:
    """A name that would do."""
    name = unicodedata.normalize("NFKC", name)
    safe = "".join(character if character.isascii() and character.isalnum() else "_" for character in name).strip("_")
    return f"{safe}_tool" if safe in _BUILTINS or keyword.iskeyword(safe) or not safe.isidentifier() else safe
