"""Common wishes: people's own words find tools that share none of them, and push no tool aside."""

from __future__ import annotations

import json
import re
from collections import Counter
from importlib.resources import files
from pathlib import Path

import pytest

from hatchway.tools.functions import Tool
from hatchway.tools.search.discovery import Finder
from hatchway.tools.search.settings import SearchSettings
from hatchway.tools.search.static import common_words

BENCH = Path(__file__).parents[3] / "bench"
SAID = {
    "calendar.create_event": "Creates an entry with a start and an end in RFC3339.",
    "calendar.list_events": "Returns entries between two instants.",
    "mail.send_message": "Sends a message to the given recipients.",
    "git.git_stash": "Stash the changes in a dirty working directory.",
    "maps.geocode": "Convert an address into coordinates.",
    "db.list_tables": "List all tables in the schema.",
    "kiln.fire_pots": "Fires the pots that stand in the kiln at cone 6.",
    "kiln.open_vent": "Opens the vent.",
}


@pytest.fixture
def finder() -> Finder:
    pytest.importorskip("wordllama")
    schema = {"type": "object", "properties": {}}
    made = [Tool(name=name, description=said, parameters=schema, func=lambda: None) for name, said in SAID.items()]
    found = Finder("hybrid", SearchSettings(database=None))
    found.offer({tool.name: tool for tool in made})
    return found


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("drop the landlord a line", "mail.send_message"),
        ("set my unfinished edits aside for a moment", "git.git_stash"),
        ("which datasets do we keep", "db.list_tables"),
        ("put the dentist into my schedule", "calendar.create_event"),
    ],
)
def test_peoples_own_words(finder: Finder, query: str, name: str) -> None:
    assert finder.search(query, 3)[0].name == name
    finder.close()


def test_a_tool_no_wish_knows_is_found_by_what_it_says(finder: Finder) -> None:
    assert finder.search("burn the pottery in the oven", 1)[0].name == "kiln.fire_pots"
    finder.close()


def table() -> list[str]:
    text = files("hatchway.tools.search").joinpath("wishes.txt").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if not line.startswith("# ")]


def test_the_table_is_well_formed() -> None:
    lines = table()
    assert all(line.count(" = ") == 1 and line == line.strip() for line in lines if line), "names = sayings"
    names = [line.split(" = ")[0].split(", ") for line in lines]
    assert not [name for name, times in Counter(each[0] for each in names).items() if times > 1]
    sayings = [line.split(" = ")[1].split("; ") for line in lines]
    assert all(all(map(str.strip, each)) and len(each) == len(set(each)) for each in (*names, *sayings))


@pytest.mark.parametrize("queries", ["queries.json", "later.json"])
def test_the_table_does_not_know_the_queries_it_is_measured_by(queries: str) -> None:
    told = json.loads((BENCH / queries).read_text(encoding="utf-8"))
    asked = [query for each in told.values() for query in each]
    sayings = [saying for line in table() for saying in line.split(" = ")[1].split("; ")]
    assert [(saying, query) for saying in sayings for query in asked if is_near(saying, query)] == []


def is_near(saying: str, query: str) -> bool:
    """Whether they share three words in a row of which two tell something, or half of what either tells."""
    one, other = telling(saying), telling(query)
    shared = len(one & other)
    is_same = bool(one) and one == other
    return bool(runs(saying) & runs(query)) or is_same or (shared > 1 and 2 * shared >= min(len(one), len(other)))


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def telling(text: str) -> set[str]:
    return {word[:5] for word in words(text) if word not in common_words()}


def runs(text: str) -> set[tuple[str, ...]]:
    found = zip(words(text), words(text)[1:], words(text)[2:], strict=False)
    return {run for run in found if sum(word not in common_words() for word in run) > 1}
