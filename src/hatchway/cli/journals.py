"""Journals as commands open them: one that is there, a run by the beginning of its id, errors with the next command."""

from __future__ import annotations

import os
import re
import shlex
import sqlite3
from pathlib import Path

from hatchway.cli.options import DEFAULT_JOURNAL, JOURNAL_VARIABLE
from hatchway.core.errors import InvalidSetting, JournalError, UnknownRun
from hatchway.journal.database import file_of, is_postgres
from hatchway.journal.entries import RunRow
from hatchway.journal.store import Journal

SHORT_ID = 8
"""Characters of a run's id that are shown in a list; as many are enough to name it."""


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


def new_journal(place: str) -> Journal:
    """The journal at a place, made when it is not there.

    Raises:
        JournalError: It cannot be opened or made.
        InvalidSetting: The place is not one of a journal.
    """
    return _opened(place, "name another place with --journal PATH, or record nothing with --no-journal")


def _opened(place: str, hint: str) -> Journal:
    try:
        return Journal(place)
    except JournalError as e:
        raise JournalError(e.message, hint=hint if e.hint.startswith("see that it") else e.hint) from e
    except sqlite3.Error as e:
        raise JournalError(
            f"the journal {shown_place(place)} cannot be opened: {e}", hint="see that you may write it"
        ) from e


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
    """The command that goes on with a run; what its tools were in, nobody wrote down."""
    return command(f"resume {short(run)}" + (" --tools MODULE" if run.head.functions else ""), journal)


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
