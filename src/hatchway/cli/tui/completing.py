"""Completing: paths after `@`, commands after `/` and their arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

COMMANDS = {
    "/help": "keys and commands",
    "/skill": "use a skill, or list them",
    "/model": "say which model it is, or take another",
    "/tools": "list what the code can call",
}
MOST = 200
"""How many completions are offered; a folder may have millions of files."""


class PromptCompleter(Completer):
    """Completes what is typed at the prompt.

    Args:
        folder: Where paths begin.
        arguments: What may follow a command, with a few words about each; asked at every completion.
    """

    def __init__(
        self, folder: Path, arguments: Mapping[str, Callable[[], Sequence[tuple[str, str]]]] | None = None
    ) -> None:
        self._folder, self._arguments = folder, arguments or {}

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """What fits before the cursor."""
        before = document.text_before_cursor
        word = before.rsplit(None, 1)[-1] if before and not before[-1].isspace() else ""
        if word.startswith("@"):
            yield from self._paths(word[1:])
        elif before.startswith("/") and "\n" not in before:
            yield from self._words(before)

    def _words(self, before: str) -> Iterator[Completion]:
        command, space, rest = before.partition(" ")
        if not space:
            known: Sequence[tuple[str, str]] = list(COMMANDS.items())
            rest = command
        else:
            known = self._arguments[command]() if command in self._arguments else ()
        for name, about in known:
            if name.startswith(rest):
                yield Completion(name, start_position=-len(rest), display_meta=about)

    def _paths(self, typed: str) -> Iterator[Completion]:
        head, _, tail = typed.rpartition("/")
        folder = self._folder / Path(head + "/" if head or typed.startswith("/") else "").expanduser()
        try:
            entries = sorted(folder.iterdir(), key=lambda path: path.name)
        except OSError:
            return
        shown = [path for path in entries if path.name.startswith(tail) and (tail or not path.name.startswith("."))]
        for path in shown[:MOST]:
            name = path.name.replace(" ", "\\ ") + ("/" if path.is_dir() else "")
            yield Completion(name, start_position=-len(tail), display=name)
