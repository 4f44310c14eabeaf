"""`hatchway prune`: what has ended is dropped by age, number or size; what has not stays."""

import asyncio
from typing import Any

import pytest

from hatchway.cli.prune import in_bytes, in_seconds
from hatchway.core.results import ExecutionResult
from hatchway.journal.conversations import ConversationTable
from hatchway.journal.entries import RunHead


@pytest.fixture
def five(stories: Any) -> Any:
    """Four runs that ended and one that waits."""
    for number in range(4):
        stories.ended(f"aaaa000{number}", code="x = 1" + " " * 50_000)
    stories.paused("bbbb0000", "hi")
    return stories


def left(hatchway: Any) -> list[str]:
    """The runs that are there."""
    return sorted(run["run_id"] for run in hatchway.json("runs", "--json"))


def test_all_but_the_last(hatchway: Any, five: Any) -> None:
    would = hatchway("prune", "--keep", "1", "--dry-run")
    assert would.stdout.startswith("would drop 3 runs, about 150 KB; the journal has ")
    assert len(left(hatchway)) == 5
    told = hatchway.json("prune", "--keep", "1", "--json")
    assert (told["runs"], told["dry_run"]) == (3, False)
    assert told["bytes"] > 150_000
    assert left(hatchway) == ["aaaa0003", "bbbb0000"]
    assert hatchway("prune", "--keep", "1").stdout.startswith("dropped 0 runs")


def test_by_age(hatchway: Any, five: Any) -> None:
    assert hatchway.json("prune", "--older-than", "1h", "--json")["runs"] == 0
    assert hatchway.json("prune", "--older-than", "0s", "--json")["runs"] == 4
    assert left(hatchway) == ["bbbb0000"]


def test_until_it_fits(hatchway: Any, five: Any) -> None:
    before = five.journal.size()
    told = hatchway.json("prune", "--max-size", str(before - 60_000), "--json")
    assert told["runs"] in (1, 2)
    assert told["size"] <= before - 60_000


def test_conversations_go_too_but_for_open_ones_and_what_they_go_on_with(hatchway: Any, stories: Any) -> None:
    table = ConversationTable(stories.journal)
    for number, state in enumerate([None, '{"now": {"session": "s1"}}', None, None], 1):
        made = table.create(str(number))
        asyncio.run(table.add(made, "main", ["x" * 1000], title=f"talk {number}", turns=1, open_state=state))
    table.take(made)  # somebody talks in the last one just now
    head = RunHead(code="1")
    for run_id, session in (("aaaa0000", "s1"), ("aaaa0001", "s2")):
        book = stories.journal.begin(run_id, head, sandbox="monty", tier="language", session_id=session)
        asyncio.run(book.ended(ExecutionResult(output=1)))
        book.give_back()
    would = hatchway.json("prune", "--keep", "3", "--dry-run", "--json")
    assert (would["runs"], would["conversations"]) == (0, 1)
    assert hatchway("prune", "--keep", "3").stdout.startswith("dropped 0 runs and 1 conversation, about 1.1 KB; ")
    told = hatchway.json("prune", "--older-than", "0s", "--json")
    assert (told["runs"], told["conversations"]) == (1, 1)
    assert left(hatchway) == ["aaaa0000"]  # or the open turn would run it again
    rows = hatchway.json("conversations", "--all", "--json")
    assert [(row["number"], row["state"]) for row in rows] == [(4, "in use"), (2, "open")]
    table.give_back(made)
    assert hatchway.json("prune", "--max-size", "1", "--json")["conversations"] == 1


@pytest.mark.parametrize(
    ("text", "seconds"), [("30d", 30 * 86400), ("1.5h", 5400), ("90M", 5400), ("2w", 14 * 86400), ("5 s", 5)]
)
def test_spans(text: str, seconds: float) -> None:
    assert in_seconds(None, None, text) == seconds  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "count"), [("1GB", 1024**3), ("500mb", 500 * 1024**2), ("10", 10), ("1.5k", 1536)])
def test_sizes(text: str, count: int) -> None:
    assert in_bytes(None, None, text) == count  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "Error: say what to drop: --older-than 30d, --keep 1000 or --max-size 1GB"),
        (["--older-than", "30"], "'30' is no span of time such as 30d, 12h or 90m"),
        (["--max-size", "-1"], "'-1' is no size such as 1GB or 500MB"),
        (["--keep", "-1"], "-1 is not in the range x>=0"),
    ],
)
def test_a_bound_that_is_none(hatchway: Any, five: Any, args: list[str], said: str) -> None:
    ran = hatchway("prune", *args)
    assert ran.returncode == 2
    assert said in ran.stderr
    assert len(left(hatchway)) == 5
