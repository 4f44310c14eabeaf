"""Rules as a person writes them in one line: `read_file(path=src/**)`, `github.*`, `shell.run(command=git log **)`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from hatchway.core.errors import InvalidSetting

_WHOLE = re.compile(r"\s*(?P<tool>[^\s()=,\"]+)\s*(?:\((?P<args>.*)\)\s*)?", re.DOTALL)
_ARGUMENT = re.compile(
    r"\s*(?P<key>[^\s()=,\"]+)\s*=\s*(?P<value>\"(?:[^\"\\]|\\.)*\"|[^,\"][^,]*|)\s*(?:,|$)", re.DOTALL
)
_PLAIN = re.compile(r"[^\s\",][^\",]*")


def parse_pattern(text: str) -> tuple[str, dict[str, str]]:
    """The tool's pattern and those of its arguments.

    Raises:
        InvalidSetting: It is no pattern.
    """
    found = _WHOLE.fullmatch(text)
    if found is None:
        raise _no_pattern(text)
    tool, inside = found["tool"], (found["args"] or "").strip()
    args: dict[str, str] = {}
    at = 0
    while at < len(inside):
        argument = _ARGUMENT.match(inside, at)
        if argument is None or argument["key"] in args:
            raise _no_pattern(text)
        args[argument["key"]] = _value(argument["value"].strip(), text)
        at = argument.end()
    return tool, args


def render_pattern(tool: str, args: Mapping[str, str]) -> str:
    """The line again: what `parse_pattern` reads back as the same."""
    inside = ", ".join(f"{key}={value if _is_plain(value) else json.dumps(value)}" for key, value in args.items())
    return f"{tool}({inside})" if args else tool


def _is_plain(value: str) -> bool:
    return _PLAIN.fullmatch(value) is not None and value == value.strip()


def _value(text: str, whole: str) -> str:
    if not text.startswith('"'):
        return text
    try:
        return str(json.loads(text))
    except ValueError:
        raise _no_pattern(whole) from None


def _no_pattern(text: str) -> InvalidSetting:
    return InvalidSetting(
        f"{text[:200]!r} is no pattern of calls",
        hint='write read_file, github.*, read_file(path=src/**) or f(x="a, b")',
    )
