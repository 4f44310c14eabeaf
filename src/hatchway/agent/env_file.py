"""`.env` files: variables of a workspace. Never put into the environment as they are: a repository may bring one."""

from __future__ import annotations

import re
from pathlib import Path

from hatchway.agent.workspace_files import read_start

_LINE = re.compile(
    r"""[ \t]*(?:export[ \t]+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*
        (?:'(?P<raw>[^'\n]*)'|"(?P<quoted>(?:[^"\\\n]|\\.)*)"|(?P<plain>[^\n]*?))[ \t]*(?:[ \t]\#[^\n]*)?""",
    re.VERBOSE,
)
_ESCAPES = {"\\n": "\n", "\\t": "\t", '\\"': '"', "\\\\": "\\", "\\$": "$"}
_MOST_BYTES = 256 * 1024


def read_env_file(path: Path) -> dict[str, str]:
    """The variables of a file; none when it cannot be read. Lines that are no assignment are passed over."""
    try:
        text = read_start(path, _MOST_BYTES).decode("utf-8-sig", "replace")
    except OSError:
        return {}
    found = [_LINE.fullmatch(line) for line in text.splitlines()]
    return {each["name"]: _value(each) for each in found if each is not None}


def _value(found: re.Match[str]) -> str:
    if found["quoted"] is not None:
        return re.sub(r"\\.", lambda each: _ESCAPES.get(each[0], each[0]), found["quoted"])
    return found["raw"] if found["raw"] is not None else found["plain"]
