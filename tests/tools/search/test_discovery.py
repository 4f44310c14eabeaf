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


def test_an_index_that_is_not_there_yet_is_made_also_without_sync(tmp_path: Path) -> None:
    for database in (None, tmp_path / "search.db"):
        searching = finder(tmp_path, database=database, embedder="test", dimensions=8, sync=False, vector_weight=0.0)
        assert names(searching.search("timezone")) == ["clock.now"]
        searching.close()
    chosen = SearchSettings(directory=tmp_path, database=tmp_path / "search.db", sync=False, vector_weight=0.0)
    later = Finder("hybrid", chosen)
    later.offer({**TOOLS, "sky.rain": made("sky.rain", "Rain in a timezone.")})
    assert "sky.rain" not in names(later.search("timezone"))
    later.close()


def test_an_index_of_another_embedder_says_so_instead_of_comparing_what_cannot_be(tmp_path: Path) -> None:
    finder(tmp_path, embedder="test", dimensions=8).search("timezone")
    other = finder(tmp_path, embedder="test", dimensions=16, sync=False)
    with pytest.raises(InvalidSetting) as raised:
        other.search("timezone")
    assert raised.value.message == f"the search index {tmp_path}/search.db was made by test (8), not by test (16)"
    assert raised.value.hint == "set PYTOOLS_SYNC=true: it is brought up to date"
    mended = finder(tmp_path, embedder="test", dimensions=16)
    assert "clock.now" in names(mended.search("timezone"))


def test_two_with_other_tools_share_a_database_and_each_finds_its_own(tmp_path: Path) -> None:
    first = finder(tmp_path, embedder="test", dimensions=8, vector_weight=0.0)
    assert names(first.search("timezone")) == ["clock.now"]
    second = Finder("hybrid", SearchSettings(directory=tmp_path, database=tmp_path / "search.db", vector_weight=0.0))
    second.offer({"sky.rain": made("sky.rain", "Rain in a timezone.")})
    assert names(second.search("timezone")) == ["sky.rain"]
    assert names(first.search("timezone")) == ["clock.now"]


def test_empty_variables_are_not_set_and_rubbish_is_named() -> None:
    named = ("DIR", "DB_PATH", "EMBEDDING_MODEL", "EMBEDDING_DIM", "SYNC", "WATCH", "BM25_WEIGHT", "VEC_WEIGHT")
    assert search_settings({f"PYTOOLS_{name}": " " for name in named}) == SearchSettings()
    assert search_settings({"PYTOOLS_DB_PATH": "~/x.db"}).database == Path.home() / "x.db"
    old_name = {"PYTOOLS_EMBEDDING_MODEL": "google-gla:gemini-embedding-001", "PYTOOLS_EMBEDDING_DIM": "3072"}
    assert search_settings(old_name).embedder == "google:gemini-embedding-001"
    told = {
        ("PYTOOLS_EMBEDDING_DIM", "1.5"): "PYTOOLS_EMBEDDING_DIM is a whole number of 1 to 65536, not '1.5'",
        ("PYTOOLS_EMBEDDING_DIM", "1" * 30): f"PYTOOLS_EMBEDDING_DIM is a whole number of 1 to 65536, not '{'1' * 30}'",
        ("PYTOOLS_EMBEDDING_DIM", "16"): "PYTOOLS_EMBEDDING_DIM is 16, and the vectors of wordllama have 256",
        ("PYTOOLS_BM25_WEIGHT", "1e308"): "PYTOOLS_BM25_WEIGHT is a number of 0 to 1000, not '1e308'",
        ("PYTOOLS_VEC_WEIGHT", "lots"): "PYTOOLS_VEC_WEIGHT is a number of 0 to 1000, not 'lots'",
    }
    for (name, value), message in told.items():
        with pytest.raises(InvalidSetting) as raised:
            search_settings({name: value})
        assert raised.value.message == message
    with pytest.raises(InvalidSetting, match="both 0: no search would find anything"):
        search_settings({"PYTOOLS_BM25_WEIGHT": "0", "PYTOOLS_VEC_WEIGHT": "0.0"})
