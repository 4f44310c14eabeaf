"""Docstrings: what they say about parameters, and how a text becomes one that cannot break out of its quotes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

_SECTION = re.compile(r"(Args|Arguments|Parameters|Params):\s*$")
_GOOGLE = re.compile(r"(\s+)\*{0,2}(\w+)(?:\s*\([^)]*\))?:\s*(.*)$")
_SPHINX = re.compile(r":param\s+(?:[^:]*\s)?\*{0,2}(\w+):\s*(.*)$")
_NUMPY = re.compile(r"\*{0,2}(\w+)(?:\s*:.*)?$")
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def parameter_descriptions(doc: str) -> dict[str, str]:
    """What a docstring says about each parameter, in Google's, NumPy's or Sphinx' form."""
    lines = doc.splitlines()
    for number, line in enumerate(lines):
        if _SECTION.match(line):
            return _google(lines[number + 1 :])
        if line.strip() == "Parameters" and lines[number + 1 : number + 2] and set(lines[number + 1].strip()) == {"-"}:
            return _numpy(lines[number + 2 :])
    return {found[1]: found[2].strip() for line in lines if (found := _SPHINX.match(line.strip()))}


def _google(lines: list[str]) -> dict[str, str]:
    said: dict[str, str] = {}
    name, indent = "", ""
    for line in lines:
        if line.strip() and not line[0].isspace():
            break
        found = _GOOGLE.match(line)
        if found and (not indent or found[1] == indent):
            indent, name, said[found[2]] = found[1], found[2], found[3].strip()
        elif name and line.strip():
            said[name] = f"{said[name]} {line.strip()}".strip()
    return said


def _numpy(lines: list[str]) -> dict[str, str]:
    said: dict[str, str] = {}
    name = ""
    for number, line in enumerate(lines):
        if not line.strip() or set(lines[number + 1].strip() if number + 1 < len(lines) else "") == {"-"}:
            break
        if not line[0].isspace():
            found = _NUMPY.match(line)
            name = found[1] if found else ""
        elif name:
            said[name] = f"{said.get(name, '')} {line.strip()}".strip()
    return said


def with_parameters(doc: str, described: Mapping[str, str]) -> str:
    """The docstring with a line for each described parameter it does not tell about itself."""
    known = parameter_descriptions(doc)
    added = [f"    {name}: {one_line(text)}" for name, text in described.items() if text and name not in known]
    if not added:
        return doc
    lines = doc.splitlines()
    section = next((number for number, line in enumerate(lines) if _SECTION.match(line)), None)
    if section is not None:
        end = _section_end(lines, section)
        return "\n".join([*lines[:end], *added, *lines[end:]])
    return "\n".join([*lines, "", "Args:", *added] if lines else ["Args:", *added])


def _section_end(lines: list[str], section: int) -> int:
    after = range(section + 1, len(lines))
    end = next((number for number in after if lines[number][:1].strip()), len(lines))
    while not lines[end - 1].strip():
        end -= 1
    return end


def clean(text: str) -> str:
    """The text without control characters, without marks that reorder what is read, with plain newlines."""
    lines = text.expandtabs(4).splitlines()
    return "\n".join("".join(map(_visible, line)).rstrip() for line in lines).strip("\n")


def _visible(character: str) -> str:
    kind = unicodedata.category(character)
    if kind == "Cs":
        return "\ufffd"
    return "" if kind == "Cc" or character in _BIDI else character


def one_line(text: str) -> str:
    """The text on one line."""
    return " ".join(clean(text).split())


def quoted(text: str, indent: str) -> str:
    """The text as an indented docstring literal that ends where it should, whatever the text holds."""
    safe = clean(text).strip().replace("\\", "\\\\")
    if '"""' in safe or safe.endswith('"'):
        safe = safe.replace('"', '\\"')
    if "\n" not in safe:
        return f'{indent}"""{safe}"""'
    body = "\n".join(f"{indent}{line}" if line else "" for line in safe.split("\n"))
    return f'{indent}"""{body.lstrip()}\n{indent}"""'
