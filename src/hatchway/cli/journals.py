"""Journals as commands open them: one that is there, a run by the beginning of its id, errors with the next command."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path

from hatchway.cli.options import DEFAULT_JOURNAL, JOURNAL_VARIABLE
from hatchway.core.errors import InvalidSetting, JournalError, UnknownRun
from hatchway.journal.database import file_of, is_postgres
from hatchway.journal.entries import RunRow
from hatchway.journal.store import Journal

PAGE_BYTES = 4096
"""What a journal needs at least to be opened."""
SHORT_ID = 8
"""Characters of a run's id that are shown in a list; as many are enough to name it."""
ADAPTERS = {"openai": "OpenAIAdapter", "anthropic": "AnthropicAdapter", "gemini": "GeminiAdapter"}
"""What asks a vendor; its runs are journaled under the vendor's name."""


def open_journal(place: str) -> Journal:
    """The journal at a place where there is one: reading makes none.

    Raises:
        JournalError: There is none, or it cannot be opened.
        InvalidSetting: The place is not one of a journal.
    """
    if not is_postgres(place) and not Path(file_of(place)).expanduser().is_file():
        raise JournalError(
            f"there is no journal {place}",
            hint="`hatchway exec FILE` makes one; one that is elsewhere is named by --journal PATH",
        )
    return _opened(place, "see that you may write it, and its folder")


def new_journal(place: str, *, otherwise: str = "") -> Journal:
    """The journal at a place, made when it is not there.

    Args:
        place: Where.
        otherwise: What else the command can do without one, for the error.

    Raises:
        JournalError: It cannot be opened or made.
        InvalidSetting: The place is not one of a journal.
    """
    return _opened(place, f"name another place with --journal PATH{otherwise}")


def _opened(place: str, hint: str) -> Journal:
    try:
        return Journal(place)
    except (JournalError, sqlite3.Error) as e:
        raise _refusal(place, e, hint) from e


def _is_full(place: str) -> bool:
    """Whether there is no room to write a page where the journal is."""
    if is_postgres(place):
        return False
    folder = Path(file_of(place)).expanduser().absolute().parent
    with suppress(OSError):
        return shutil.disk_usage(folder).free < PAGE_BYTES
    return False


def _refusal(place: str, error: JournalError | sqlite3.Error, hint: str) -> JournalError:
    """Why a journal cannot be opened, and what to do about it."""
    cannot = f"the journal {shown_place(place)} cannot be opened"
    if _is_full(place):
        return JournalError(f"{cannot}: the disk is full", hint="make room there, or name another with --journal PATH")
    if isinstance(error, JournalError):
        return JournalError(error.message, hint=hint if error.hint.startswith("see that it") else error.hint)
    return JournalError(f"{cannot}: {error}", hint="see that you may write it")


def find_run(journal: Journal, run_id: str) -> RunRow:
    """The run whose id is this, or begins so.

    Raises:
        UnknownRun: There is none.
        InvalidSetting: Several begin so.
    """
    try:
        return journal.run(run_id)
    except UnknownRun as e:
        if e.hint.startswith("several"):
            more = "give more of the id: " + command("runs --json", journal)
            raise InvalidSetting(f"several runs begin with {run_id!r}", hint=more) from e
        raise UnknownRun(run_id, hint=command("runs", journal)) from e


def command(words: str, journal: Journal) -> str:
    """A command as it is typed about this journal."""
    return shlex.join(["hatchway", *words.split(), *journal_words(journal.place)])


def resume_command(run: RunRow, journal: Journal) -> str:
    """The command that goes on with a run; what its tools were in, nobody wrote down.

    A request to a vendor goes on in a program: no command has its model and its key.
    """
    if run.sandbox in ADAPTERS:
        return f"in your program: {ADAPTERS[run.sandbox]}(…, journal=…).resume({short(run)!r})"
    return command(f"resume {short(run)}" + (" --tools MODULE" if run.head.functions else ""), journal)


def check_runs_here(run: RunRow, hint: str) -> None:
    """Refuse a run that a command cannot run.

    Raises:
        InvalidSetting: Its code ran at a vendor.
    """
    if run.sandbox in ADAPTERS:
        raise InvalidSetting(f"run {short(run)} is a request to a model at {run.sandbox}, no code of ours", hint=hint)


def journal_words(place: str) -> list[str]:
    """The option that names a journal, where a command would not find it by itself."""
    known = (DEFAULT_JOURNAL, os.environ.get(JOURNAL_VARIABLE))
    return [] if place in known else ["--journal", shown_place(place)]


def shown_place(place: str) -> str:
    """Where a journal is, without the password that a URL may hold."""
    return re.sub(r"(://[^:/@?]*):[^@]*@", r"\1:…@", place.partition("?")[0]) if is_postgres(place) else place


def short(run: RunRow) -> str:
    """Enough of a run's id to name it."""
    return run.run_id[:SHORT_ID]
