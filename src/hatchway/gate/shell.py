"""Shell text read by a real parser: the simple commands in it, wherever they stand, and whether that is all of it.

Whoever decides by words must know them. A word the shell makes itself (`$x`, `$(…)`, `*.py`, `~`) is not known, and
what is not known for sure is not plain: better asked once too often.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from hatchway.core.errors import MissingExtra

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

Word = str | None
"""A word of a command; None where it is made when the command runs."""
MOST_CHARACTERS = 20_000
MOVES = frozenset(("cd", "chdir", "pushd", "popd"))
"""After these a path means another file."""
_KNOWN_WORD = re.compile(r"[A-Za-z0-9_./:,+@%=^#-]+")
_MADE_IN_QUOTES = re.compile(r"[\\$`!]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_STRUCTURE = frozenset(
    ("program", "list", "pipeline", "negated_command", "subshell", "compound_statement", "redirected_statement")
)
_TOKENS = frozenset(("&&", "||", ";", "|", "|&", "&", "\n", "(", ")", "{", "}", "!"))
_HARMLESS_REDIRECT = re.compile(r"\d*(?:>|>>)&\d|\d*(?:&>|&>>|>|>>|<)\s*/dev/null")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellText:
    """What a text would run."""

    commands: tuple[tuple[Word, ...], ...]
    """Every simple command, also those in substitutions; the program is the first word."""
    unclear: str = ""
    """Why the commands are not all there is to it; empty when they are."""

    @property
    def is_plain(self) -> bool:
        """Whether it runs these commands and does nothing else, every word of them known."""
        return not self.unclear


def parse_shell(text: str) -> ShellText:
    """The commands of a text for `bash`.

    Raises:
        MissingExtra: The parser is not installed.
    """
    if len(text) > MOST_CHARACTERS or "\0" in text:
        return ShellText(commands=(), unclear="it is too long to be looked through" if "\0" not in text else "a NUL")
    data = text.encode("utf-8", "replace")
    root = _parser().parse(data).root_node
    commands = tuple(_words(node) for node in _below(root) if node.type == "command")
    return ShellText(commands=commands, unclear=_unclear(root, text) or _moved(commands))


def _moved(commands: tuple[tuple[Word, ...], ...]) -> str:
    is_moved = len(commands) > 1 and any(MOVES & {*command[:2]} for command in commands)
    return "paths in it begin in another directory" if is_moved else ""


def nested_texts(words: tuple[Word, ...]) -> Iterator[str]:
    """Texts a command hands to a shell: `bash -c 'text'`, `eval text`."""
    for option, word in pairwise(words):
        if option and re.fullmatch(r"-[A-Za-z]*c", option) and word:
            yield word
    if words and words[0] in ("eval", "trap") and all(words):
        yield " ".join(word for word in words[1:] if word)


@cache
def _parser() -> Parser:
    try:
        from tree_sitter import Language, Parser
        from tree_sitter_bash import language
    except ImportError as e:
        raise MissingExtra("the parser of shell commands", "agent") from e
    return Parser(Language(language()))


def _unclear(root: Node, text: str) -> str:
    if root.has_error:
        return "it is no shell text that can be read"
    if "\\" in text:  # the grammar leaves out `\\ ` between words, and reads a continued word as two
        return "it is written with a backslash"
    if found := _CONTROL.search(text):
        return f"it has the control character {found[0]!r}"
    try:
        return next(_oddities(root), "")
    except RecursionError:
        return "it is nested too deeply to be looked through"


def _oddities(node: Node) -> Iterator[str]:
    """What stands in the text beside simple commands with known words."""
    if node.type == "command":
        if any(word is None for word in _words(node)):
            yield "a word of it is made when it runs"
        elif any(child.type not in ("command_name", *_WORDS) for child in node.children):
            yield "it sets variables or redirects"
        return
    if node.type == "file_redirect":
        if not _HARMLESS_REDIRECT.fullmatch(_text(node)):
            yield "it redirects to or from a file"
        return
    if not node.is_named:
        if node.type not in _TOKENS:
            yield f"it has {node.type!r}"
        return
    if node.type not in _STRUCTURE:
        yield f"it has a {node.type.replace('_', ' ')}"
        return
    for child in node.children:
        yield from _oddities(child)


_WORDS = frozenset(("word", "number", "raw_string", "string", "concatenation"))


def _words(command: Node) -> tuple[Word, ...]:
    named = [child for child in command.children if child.is_named]
    return tuple(
        _word(child.children[0] if child.type == "command_name" and child.children else child)
        for child in named
        if child.type not in ("variable_assignment", "file_redirect", "heredoc_redirect", "herestring_redirect")
    )


def _word(node: Node) -> Word:
    text = _text(node)
    match node.type:
        case "word" | "number":
            return text if _KNOWN_WORD.fullmatch(text) else None
        case "raw_string":
            return text[1:-1]
        case "string":
            is_plain = all(child.type in ('"', "string_content") for child in node.children)
            return text[1:-1] if is_plain and text[:1] == '"' and not _MADE_IN_QUOTES.search(text) else None
        case "concatenation":
            parts = [_word(child) for child in node.children]
            return None if None in parts else "".join(part for part in parts if part is not None)
        case _:
            return None


def _below(node: Node) -> Iterator[Any]:
    pending = [node]
    while pending:
        found = pending.pop()
        yield found
        pending.extend(reversed(found.children))


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")
