"""`hatchway conversations`: what was talked about with the agent."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hatchway.cli.options import journal_option, json_option

if TYPE_CHECKING:
    from hatchway.agent.conversations import ConversationRow

STYLES = {"idle": "dim", "open": "yellow", "in use": "cyan"}


@click.command()
@click.option("--all", "everywhere", is_flag=True, help="Of all folders, not only of this one.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, metavar="N", help="At most so many."
)
@journal_option
@json_option
def conversations(everywhere: bool, limit: int, journal: str, as_json: bool) -> None:
    """List conversations with the agent, newest first.

    Go on with one by its number: hatchway --session NUMBER; with the newest: hatchway -c. One that is open was broken
    off in the middle of a turn: what it asked is asked again.
    """
    rows = _rows(journal, None if everywhere else Path.cwd(), limit)
    if as_json:
        from hatchway.cli.objects import print_json

        print_json([_object(row) for row in rows])
    else:
        _print(rows, everywhere=everywhere)


def _rows(journal: str, folder: Path | None, limit: int) -> list[ConversationRow]:
    from hatchway.agent.conversations import Conversations
    from hatchway.cli.journals import open_journal
    from hatchway.journal.database import file_of, is_postgres

    if not is_postgres(journal) and not Path(file_of(journal)).expanduser().exists():
        return []  # nobody has talked here yet
    with open_journal(journal) as opened:
        return Conversations.open(opened).list(folder, limit=limit)


def _object(row: ConversationRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "number": row.number,
        "state": row.state,
        "started_at": row.started.timestamp(),
        "updated_at": row.updated.timestamp(),
        "turns": row.turns,
        "title": row.title,
        "working_dir": str(row.working_dir),
    }


def _print(rows: list[ConversationRow], *, everywhere: bool) -> None:
    from rich.text import Text

    from hatchway.cli.display import make_console, neutral
    from hatchway.trace.text import elapsed_text

    console, now = make_console(), time.time()
    if not rows:
        console.print("no conversation yet: hatchway starts one")
    for row in rows:
        place = f"{neutral(str(row.working_dir))}  " if everywhere else ""
        turns = "1 turn" if row.turns == 1 else f"{row.turns} turns"
        line = Text.assemble(
            (f"{row.number:>4}", "bold"),
            (f"  {row.state:<6}", STYLES[row.state]),
            (f"  {elapsed_text(now - row.updated.timestamp()):>9} ago  {turns:>9}  ", "dim"),
            (place, "dim"),
            neutral(row.title).replace("\n", " ").replace("\t", " "),
        )
        if console.is_terminal:
            line.truncate(console.width, overflow="ellipsis")
        console.print(line, soft_wrap=True)
    if rows and console.is_terminal:
        console.print(Text("go on with one: hatchway --session NUMBER; with the newest: hatchway -c", "dim"))
