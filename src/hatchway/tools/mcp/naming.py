"""Names of servers and their tools as the code has them: identifiers, each once."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Callable, Iterable
from unicodedata import combining, normalize

_BUILTINS = frozenset(dir(builtins))
_MAX_NAME = 100
"""Characters of a name; it is also a file's, and file systems refuse long ones."""


def as_identifier(name: str) -> str:
    """An identifier that reads like the name: `get-sum` is `get_sum`, `from` is `from_`, `größe` is `grosse`."""
    letters = normalize("NFKD", name.replace("ß", "ss"))
    letters = "".join(letter for letter in letters if not combining(letter))
    plain = re.sub(r"[^0-9A-Za-z_]+", "_", letters)[:_MAX_NAME].strip("_") or "tool"
    plain = f"n{plain}" if plain[0].isdigit() else plain
    return f"{plain}_" if keyword.iskeyword(plain) else plain


def as_namespace(name: str) -> str:
    """As `as_identifier`, and never a builtin, which the code would lose: `filter` is `filter_`."""
    plain = as_identifier(name)
    return f"{plain}_" if plain in _BUILTINS else plain


def unique(names: Iterable[str], spelled: Callable[[str], str] = as_identifier) -> dict[str, str]:
    """An identifier for each name; where two would share one, the later has a number."""
    found: dict[str, str] = {}
    used: set[str] = set()
    for name in dict.fromkeys(names):
        wish = shown = spelled(name)
        number = 1
        while shown in used:
            number += 1
            shown = f"{wish}_{number}"
        used.add(shown)
        found[name] = shown
    return found
