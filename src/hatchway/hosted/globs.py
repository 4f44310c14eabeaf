"""Globs: which files of a mount are meant."""

from __future__ import annotations

import re
from functools import cache

from hatchway.core.errors import InvalidSetting


def matches(relative: str, glob: str) -> bool:
    """`*` and `?` within a name, `[ab]` one letter, `**` over folders; a glob without `/` matches in any folder."""
    text = relative if "/" in glob else relative.rpartition("/")[2]
    return pattern(glob).fullmatch(text) is not None


_GLOB = re.compile(r"(\*\*/)|(\*\*)|(\*)|(\?)|\[(!?)(\]?[^\]/]*)\]")
"""What stands for more than itself in a glob."""


@cache
def pattern(glob: str) -> re.Pattern[str]:
    """A glob as a regular expression.

    Raises:
        InvalidSetting: It cannot be one.
    """
    written, end = "", 0
    for part in _GLOB.finditer(glob):
        written += re.escape(glob[end : part.start()]) + _written(part)
        end = part.end()
    try:
        return re.compile(written + re.escape(glob[end:]), re.S)
    except re.error as e:
        raise InvalidSetting(f"{glob!r} is no glob: {e}", hint='such as "*.py", "[a-c]?.csv" or "data/**"') from None


def _written(part: re.Match[str]) -> str:
    folders, everything, name, letter, is_not, letters = part.groups()
    if letters:
        kept = re.sub(r"[\\\[\]^&~|]", r"\\\g<0>", letters)  # `-` between two letters is a range, as in a shell
        return f"[^/{kept}]" if is_not else f"[{kept}]"
    if folders or everything:
        return "(?:.*/)?" if folders else ".*"
    return "[^/]*" if name else "[^/]" if letter else re.escape(part.group())
