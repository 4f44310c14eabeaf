"""Standing: what a run that has not ended waits for, and the command that helps."""

from __future__ import annotations

from hatchway.cli.journals import command, resume_command, short
from hatchway.journal.conversations import ConversationTable
from hatchway.journal.entries import RunRow
from hatchway.journal.store import Journal
from hatchway.trace.blocks import Line, Part
from hatchway.trace.wording import how_many, waiting_words


def standing_line(journal: Journal, run: RunRow) -> Line | None:
    """Where a run stands and the next command; None when it has ended."""
    match run.state:
        case "done" | "failed":
            return None
        case "running":
            return _line("it runs", command(f"show -f {short(run)}", journal))
        case "interrupted":
            return _line("its process is gone", resume_command(run, journal))
        case "in_doubt":
            lost = how_many(len(journal.history(run.run_id).in_doubt))
            return _line(f"{lost} in doubt", resume_command(run, journal))
        case "paused":
            return _paused(journal, run)


def _paused(journal: Journal, run: RunRow) -> Line:
    open_calls = [call for call in journal.history(run.run_id).pending if call.decision is None]
    if not open_calls:
        return _line("every call is decided", _go_on(journal, run))
    approve = command(f"approve {short(run)}", journal)
    return _line(f"{waiting_words(len(open_calls))} for a decision", f"{approve} (or deny)")


def _go_on(journal: Journal, run: RunRow) -> str:
    """What goes on with a run: the conversation that waits for it, or the run by itself."""
    talk = ConversationTable(journal).waiting_for(run.session_id)
    if talk is None:
        return resume_command(run, journal)
    return command(f"run --session {talk.number}", journal) + ", with the --model and --tools it had"


def _line(why: str, what: str) -> Line:
    return Line(mark="…", tone="warn", parts=[Part(f"{why}: "), Part(what, "bold")])
