"""Rules over shell commands: a pattern is words, and each command of a text must be named by one.

`git log *` names `git log main` and neither `git log --output=x` nor `git log a b`: `*` as a word is one word of the
workspace and no option, `**` any number of them, and within a word `*` stands for characters but `/`.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, cast

from hatchway.gate.rules import glob_pattern
from hatchway.gate.shell import MOVES, ShellText, Word, nested_texts, parse_shell

IsPlainWord = Callable[[str], bool]
"""Whether a word that a wildcard stands for is harmless: no option, nothing outside the workspace, no secret."""
_PROGRAMS = """
    . 7z ant ash awk bash bsdtar builtin bun bundle busybox cargo chroot command conda coproc cpio csh dash deno doas
    docker env eval exec expect fish flock gawk gdb go gradle ionice ksh lua make mawk mvn nc ncat nice node nodejs
    nohup nox npm npx nsenter osascript parallel patch perl php pip pip3 pipx pnpm podman poetry pytest python python2
    python3 rake rsync ruby runuser screen script sed setsid sh source ssh stdbuf strace su sudo systemd-run tar tclsh
    tee time timeout tmux tox trap unshare unzip uv uvx vi vim watch xargs yarn zsh
"""
RUNS_OTHERS = frozenset(_PROGRAMS.split())
"""Programs that run or unpack what their arguments say: a wildcard never stands for their arguments."""
_EXECUTES = (
    "-exec*",
    "--exec*",
    "-ok*",
    "-delete",
    "-fprint*",
    "-fls",
    "--to-command*",
    "--use-compress-program*",
)
_ELSEWHERE = ("-C*", "-c*", "--git-dir*", "--work-tree*", "--exec-path*")
"""Options of git by which a folder somebody made decides what runs."""


_HOST = re.compile(r"[a-z]+://[^/*?@]+/")
"""Of an address that a pattern names whole: what follows may be a wildcard."""


def command_text(value: Any) -> str | None:
    """What an argument would run: a text for a shell, or words; None when it is neither."""
    if isinstance(value, list | tuple):
        words = cast(Sequence[Any], value)
        return shlex.join(words) if words and all(isinstance(word, str) for word in words) else None
    return value if isinstance(value, str) else None


def names_command(pattern: str, text: str, is_plain_word: IsPlainWord) -> bool:
    """Whether the text is commands and nothing else, each named by the pattern."""
    found = parse_shell(text)
    is_all = found.is_plain and bool(found.commands)
    return is_all and all(_named(pattern, each, is_plain_word) for each in found.commands)


def single_commands(text: str) -> list[str] | None:
    """The commands of a text, each as a text of its own; None when it is not plain."""
    found = parse_shell(text)
    if not found.is_plain or not found.commands:
        return None
    return [shlex.join(word for word in command if word is not None) for command in found.commands]


def denies_command(pattern: str, text: str, *, in_doubt: bool = False) -> bool:
    """Whether a command of the text begins with the pattern's words, also one that another command runs.

    With `in_doubt`: whether it might, for what cannot be known before it runs.
    """
    wanted = _split(pattern)
    if not wanted:
        return True
    found = parse_shell(text)
    if in_doubt and (_is_hidden(found) or not found.commands):
        return True
    return any(_begins(wanted, each, in_doubt) for command in found.commands for each in _all_in(command))


def suggested_pattern(text: str) -> str:
    """The pattern that names commands like this one; `=text` when only this very text can be allowed."""
    found = parse_shell(text)
    known = [word for word in found.commands[0] if word is not None] if len(found.commands) == 1 else []
    if not found.is_plain or not known or known[0] in RUNS_OTHERS or _has_executing(known):
        return f"={text}"
    kept = [word if n == 0 or word.startswith("-") or _is_subcommand(n, word) else "*" for n, word in enumerate(known)]
    return shlex.join(kept).replace("'*'", "*") if all("*" not in word for word in known) else f"={text}"


def _is_subcommand(n: int, word: str) -> bool:
    """`status` of `git status`: a lone lowercase word right after the program."""
    return n == 1 and word.isalpha() and word.islower() and not os.path.exists(word)


def _named(pattern: str, words: Sequence[Word], is_plain_word: IsPlainWord) -> bool:
    wanted, given = _split(pattern), [word for word in words if word is not None]
    if not wanted or not given or len(given) != len(words):
        return False
    if list(wanted) == given:
        return True
    if wanted[0] != given[0] or given[0] in RUNS_OTHERS | MOVES or _has_executing(given):
        return False
    return _rest_named(wanted[1:], given[1:], is_plain_word)


def _rest_named(wanted: Sequence[str], given: Sequence[str], is_plain_word: IsPlainWord) -> bool:
    """Each word of the pattern stands for one word, `**` for any number; tried without going back further than one."""
    reached = {0}
    for part in wanted:
        if part == "**":
            reached = _spread(reached, given, is_plain_word)
        else:
            reached = {at + 1 for at in reached if at < len(given) and _stands_for(part, given[at], is_plain_word)}
    return len(given) in reached


def _spread(reached: set[int], given: Sequence[str], is_plain_word: IsPlainWord) -> set[int]:
    spread = set(reached)
    for at, word in enumerate(given):
        if at in spread and is_plain_word(word):
            spread.add(at + 1)
    return spread


def _stands_for(part: str, word: str, is_plain_word: IsPlainWord) -> bool:
    if part == word:
        return True
    if "*" not in part and "?" not in part:
        return False
    if part == "*":
        return is_plain_word(word)
    is_option = part.startswith("-") and part[1:2] not in "*?"
    host = _HOST.match(part)
    tail = word.partition("=")[2] if is_option else word[host.end() :] if host else word
    return glob_pattern(part).fullmatch(word) is not None and (not tail or is_plain_word(tail))


def _begins(wanted: Sequence[str], words: Sequence[Word], in_doubt: bool) -> bool:
    if not words:
        return False
    given = [os.path.basename(words[0]) if words[0] else None, *words[1:]]
    if "**" in wanted:
        wanted = wanted[: wanted.index("**")]
    if len(given) < len(wanted):
        return False
    pairs = zip(wanted, given, strict=False)
    return all(in_doubt if word is None else fnmatchcase(word.casefold(), part.casefold()) for part, word in pairs)


def _all_in(command: tuple[Word, ...], depth: int = 0) -> list[tuple[Word, ...]]:
    """The command, and those it would run: `sudo -u me rm x` is also `rm x`."""
    found = [command]
    if command and (command[0] is None or os.path.basename(command[0]) in RUNS_OTHERS or _has_executing(command)):
        found += [command[n:] for n in range(1, len(command))]
        if depth < 4:
            inner = [each for text in nested_texts(command) for each in parse_shell(text).commands]
            found += [each for part in inner for each in _all_in(part, depth + 1)]
    return found


def _is_hidden(found: ShellText) -> bool:
    """Whether a program may run whose name is not in the text."""
    return found.unclear.startswith(("it is", "a NUL", "it has the")) or any(
        not command or command[0] is None or os.path.basename(command[0]) in RUNS_OTHERS for command in found.commands
    )


def _has_executing(words: Sequence[Word]) -> bool:
    options = (*_EXECUTES, *_ELSEWHERE) if words and words[0] == "git" else _EXECUTES
    return any(word and any(fnmatchcase(word, option) for option in options) for word in words[1:])


@lru_cache(maxsize=256)
def _split(pattern: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(pattern))
    except ValueError:
        return ()
