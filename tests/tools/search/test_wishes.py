"""Common wishes: people's own words find tools that share none of them, and push no tool aside."""

from __future__ import annotations

from collections import Counter
from importlib.resources import files

import pytest

from hatchway.tools.functions import Tool
from hatchway.tools.search.discovery import Finder
from hatchway.tools.search.settings import SearchSettings

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


def test_the_table_is_well_formed() -> None:
    text = files("hatchway.tools.search").joinpath("wishes.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("# ")]
    assert all(line.count(" = ") == 1 and line == line.strip() for line in lines if line), "names = sayings"
    names = [line.split(" = ")[0].split(", ") for line in lines]
    assert not [name for name, times in Counter(each[0] for each in names).items() if times > 1]
    sayings = [line.split(" = ")[1].split("; ") for line in lines]
    assert all(all(map(str.strip, each)) and len(each) == len(set(each)) for each in (*names, *sayings))
