"""`hatchway prune`: drop ended runs and old conversations from a journal."""

from __future__ import annotations

import re

import click

from hatchway.cli.options import journal_option, json_option

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
BYTES = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}


def in_seconds(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """A span of time such as `30d`, `12h` or `90m`."""
    if value is None:
        return None
    if (found := re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhdw])", value.lower())) is None:
        raise click.BadParameter(f"{value!r} is no span of time such as 30d, 12h or 90m")
    return float(found[1]) * SECONDS[found[2]]


def in_bytes(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """A size such as `1GB` or `500MB`."""
    if value is None:
        return None
    if (found := re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)b?", value.lower())) is None:
        raise click.BadParameter(f"{value!r} is no size such as 1GB or 500MB")
    return int(float(found[1]) * BYTES[found[2]])


@click.command()
@click.option("--older-than", callback=in_seconds, metavar="SPAN", help="Drop what ended longer ago: 30d, 12h.")
@click.option("--keep", type=click.IntRange(min=0), metavar="N", help="Drop all but the N that ended last.")
@click.option("--max-size", callback=in_bytes, metavar="SIZE", help="Drop the oldest until the rest fits: 1GB, 500MB.")
@click.option("--dry-run", is_flag=True, help="Only say what would be dropped.")
@journal_option
@json_option
def prune(
    older_than: float | None, keep: int | None, max_size: int | None, dry_run: bool, journal: str, as_json: bool
) -> None:
    """Drop ended runs and old conversations from a journal.

    A run that has not ended is never dropped, nor a conversation with a turn that has not: they may be resumed. --keep
    counts runs and conversations apart; for --max-size runs are dropped first. Exit code 0: it is done, also when
    nothing was to be dropped; 2: there is no such journal, or no bound was given.
    """
    from hatchway.cli.journals import open_journal
    from hatchway.cli.objects import print_json
    from hatchway.journal.conversations import ConversationTable
    from hatchway.journal.old_conversations import prune_conversations
    from hatchway.trace.text import size_text

    if older_than is None and keep is None and max_size is None:
        raise click.UsageError("say what to drop: --older-than 30d, --keep 1000 or --max-size 1GB")
    with open_journal(journal) as opened:
        dropped = opened.prune(older_than=older_than, keep=keep, max_bytes=max_size, dry_run=dry_run)
        # in a trial run they are still there: what the runs would leave counts
        most = None if max_size is None else max_size + dropped.bytes * dry_run
        talks = prune_conversations(
            ConversationTable(opened), older_than=older_than, keep=keep, max_bytes=most, dry_run=dry_run
        )
        left = opened.size()
    if as_json:
        counts = {"runs": dropped.runs, "conversations": talks.conversations}
        print_json({**counts, "bytes": dropped.bytes + talks.bytes, "size": left, "dry_run": dry_run})
        return
    would = "would drop" if dry_run else "dropped"
    runs = "1 run" if dropped.runs == 1 else f"{dropped.runs} runs"
    talked = {0: "", 1: " and 1 conversation"}.get(talks.conversations, f" and {talks.conversations} conversations")
    size = size_text(dropped.bytes + talks.bytes)
    click.echo(f"{would} {runs}{talked}, about {size}; the journal has {size_text(left)}")
