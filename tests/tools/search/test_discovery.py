"""Finding tools: by category, by words, by meaning; saved ones among them; an index that does no work twice."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from hatchway.core.errors import InvalidSetting, ToolError
from hatchway.tools.functions import Tool
from hatchway.tools.gentools import save_tool
from hatchway.tools.search.catalog import Catalog, entry
from hatchway.tools.search.discovery import Finder
from hatchway.tools.search.index import Index
from hatchway.tools.search.settings import SearchSettings, search_settings


def made(name: str, description: str = "") -> Tool:
    schema = {"type": "object", "properties": {"path": {"type": "string", "description": "Where."}}}
    return Tool(name=name, description=description, parameters=schema, func=lambda **_: None)


TOOLS = {
    each.name: each
    for each in (
        made("files.read_text", "Read the complete contents of a file from the file system as text. More follows."),
        made("files.move", "Move or rename files and directories."),
        made("clock.now", "Get current time in a specific timezone."),
        made("git.commit", "Records changes to the repository."),
        made("plain", "Adds numbers."),
    )
}


def finder(tmp_path: Path, mode: Any = "hybrid", **settings: Any) -> Finder:
    chosen = {"directory": tmp_path, "database": tmp_path / "search.db", **settings}
    found = Finder(mode, SearchSettings(**chosen))
    found.offer(TOOLS)
    return found


def names(found: Any) -> list[str]:
    return [each.name for each in found]


def test_categories_and_lists() -> None:
    catalog = Catalog(TOOLS)
    assert catalog.categories() == {"clock": 1, "files": 2, "functions": 1, "git": 1}
    assert names(catalog.listed("files")) == ["files.move", "files.read_text"]
    assert catalog.listed("files")[1].summary == "Read the complete contents of a file from the file system as text."
    with pytest.raises(ToolError, match=r"there is no category 'x'; there are: clock, files, functions, git"):
        catalog.listed("x")
    assert "def read_text(path: str = ...)" in catalog.describe("files.read_text")
    with pytest.raises(ToolError, match=r"there is no tool 'files.reed_text'; did you mean files.read_text"):
        catalog.describe("files.reed_text")


def test_words_and_meaning(tmp_path: Path) -> None:
    pytest.importorskip("wordllama")
    searching = finder(tmp_path)
    assert names(searching.search("rename a directory"))[0] == "files.move"
    assert names(searching.search("what hour is it in Tokyo"))[0] == "clock.now"
    searching.close()


def test_only_what_changed_is_read_anew(tmp_path: Path) -> None:
    settings = SearchSettings(database=tmp_path / "x" / "search.db", embedder="test", dimensions=8)
    index = Index(settings)
    assert index.sync(map(entry, TOOLS.values())) == 5
    index.close()
    again = Index(settings)
    assert again.sync(map(entry, TOOLS.values())) == 0
    assert again.sync(map(entry, [made("plain", "Other words."), *list(TOOLS.values())[:4]])) == 1
    assert again.sync(map(entry, list(TOOLS.values())[:1])) == 0
    assert again.search("other words") == ["files.read_text"]


@pytest.mark.parametrize("query", ["", "   ", '" OR 1 --', "NEAR(a b)", "name:x", "\x00", "ä" * 5000, "*", "AND NOT"])
def test_any_text_is_a_query(query: str, tmp_path: Path) -> None:
    searching = finder(tmp_path, embedder="test", dimensions=8)
    assert all(name in TOOLS for name in names(searching.search(query, 10_000)))
    searching.close()


def test_weights(tmp_path: Path) -> None:
    words_only = finder(tmp_path, embedder="test", dimensions=8, vector_weight=0.0)
    assert names(words_only.search("timezone")) == ["clock.now"]
    words_only.close()


def test_saved_tools_are_found_as_soon_as_they_are_there(tmp_path: Path) -> None:
    searching = finder(tmp_path, embedder="test", dimensions=8)
    assert searching.catalog.categories()["files"] == 2
    searching.search("x")
    save_tool("slug", "def run(title: str) -> str:\n    'Make a slug.'\n    return title", "text", root=tmp_path)
    assert "gentools.text.slug" in names(searching.search("make a slug"))
    assert searching.catalog.describe("gentools.text.slug") == (
        'from gentools.text.slug import run\n\ndef run(title: str) -> str:\n    """Make a slug."""\n'
    )
    searching.close()


def test_nothing_is_watched_when_nobody_wants_it(tmp_path: Path) -> None:
    searching = finder(tmp_path, embedder="test", dimensions=8, watch=False)
    searching.search("x")
    save_tool("slug", "def run(title: str) -> str:\n    'Make a slug.'\n    return title", "text", root=tmp_path)
    assert "gentools.text.slug" not in names(searching.search("make a slug"))
    searching.offer(TOOLS)
    assert "gentools.text.slug" in names(searching.search("make a slug"))
    searching.close()


def test_an_index_of_another_version_is_made_anew(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "search.db") as db:
        db.execute("CREATE TABLE tools (name TEXT PRIMARY KEY, digest TEXT NOT NULL, vector BLOB NOT NULL)")
    db.close()
    searching = finder(tmp_path, embedder="test", dimensions=8)
    assert "clock.now" in names(searching.search("current time in a timezone"))
    searching.close()


def test_a_common_word_does_not_outweigh_what_is_meant(tmp_path: Path) -> None:
    searching = finder(tmp_path, embedder="test", dimensions=8, vector_weight=0.0)
    assert names(searching.search("what is the timezone of a file in the system"))[0] != "plain"
    assert names(searching.search("to the in a timezone")) == ["clock.now"]
    searching.close()


def test_what_the_environment_says() -> None:
    told = {"PYTOOLS_DB_PATH": "x.db", "PYTOOLS_EMBEDDING_MODEL": "test", "PYTOOLS_WATCH": "false"}
    settings = search_settings({**told, "PYTOOLS_BM25_WEIGHT": "0.5"})
    assert (settings.database, settings.embedder, settings.watch) == (Path("x.db"), "test", False)
    assert (settings.bm25_weight, settings.vector_weight, settings.sync) == (0.5, 1.0, True)
    assert search_settings({}).database == Path(".hatchway/search.db")
    for name, value in {"PYTOOLS_SYNC": "maybe", "PYTOOLS_EMBEDDING_DIM": "0", "PYTOOLS_VEC_WEIGHT": "nan"}.items():
        with pytest.raises(InvalidSetting, match=name):
            search_settings({name: value})


def test_a_damaged_index_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "search.db").write_bytes(b"rubbish" * 1000)
    finder = Finder("hybrid", SearchSettings(database=tmp_path / "search.db", embedder="test", dimensions=8))
    finder.offer({})
    with pytest.raises(InvalidSetting) as raised:
        finder.search("anything")
    assert raised.value.message.endswith("search.db cannot be opened: file is not a database")
    assert raised.value.hint == "remove it where it is damaged: it is made anew; or set PYTOOLS_DB_PATH"
