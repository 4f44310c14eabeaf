"""Shell commands in code for IPython: `!cmd`, `x = !cmd`, `%sx cmd`, `%%bash`. Found rather once too often."""

from __future__ import annotations

import re

_CELL = re.compile(
    r"\s*%%(?:bash|sh|system|sx|!|script|cmd|zsh)\b[^\n]*(?:\n|\Z)(?P<body>.*)|\s*%%!(?P<rest>.*)", re.DOTALL
)
_LINE = re.compile(
    r"""(?:^[^\S\n]*|=[^\S\n]*)                                   # alone, or after: name =
        (?:!{1,2}(?!=)|%(?:sx|system|bash|sh)\b[^\S\n]*)(?P<text>(?:[^\n]*\\\n)*[^\n]*)""",
    re.MULTILINE | re.VERBOSE,
)
_HARMLESS = "time|timeit|capture|latex|html|markdown|svg|matplotlib|who|whos|precision|pprint"
_OTHER_WAYS = re.compile(
    rf"\bget_ipython\b|(?:^|=)[^\S\n]*%{{1,2}}(?!(?:{_HARMLESS}|sx|system|bash|sh)\b)[A-Za-z_!]", re.MULTILINE
)
"""Magics that may run something, or may not: nobody keeps a list of them all."""


def shell_escapes(code: str) -> tuple[list[str], bool]:
    """The texts that a shell would be given, and whether those are all of them as far as can be seen."""
    if cell := _CELL.fullmatch(code):
        head = code.lstrip().partition("\n")[0]
        is_plain = re.fullmatch(r"%%(?:bash|sh)\s*", head) is not None
        return [cell["body"] or cell["rest"] or ""], is_plain
    return [found["text"].strip() for found in _LINE.finditer(code)], not _OTHER_WAYS.search(code)
