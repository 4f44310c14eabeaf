"""Which tools a module or a file offers."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hatchway.cli.tool_modules import load_tools
from hatchway.core.errors import InvalidSetting


@pytest.fixture(autouse=True)
def own_modules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """What a test imports is forgotten again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    known = set(sys.modules)
    yield
    for name in set(sys.modules) - known:
        del sys.modules[name]


def names(tools: Any) -> list[str]:
    return [getattr(t, "name", None) or t.__name__ for t in tools]


def test_every_public_function_and_tool_in_the_order_they_stand() -> None:
    Path("mine.py").write_text(
        "from json import dumps\nfrom hatchway import tool\n"
        "def zebra(): ...\ndef _hidden(): ...\n@tool\ndef ant(): ...\nclass Thing: ...\nNUMBER = 3\n"
    )
    assert names(load_tools("mine.py")) == ["zebra", "ant"]
    assert names(load_tools("mine")) == ["zebra", "ant"]


def test_a_list_named_tools_decides() -> None:
    Path("mine.py").write_text("from json import dumps\ndef a(): ...\nTOOLS = [dumps]\n")
    assert names(load_tools("mine.py")) == ["dumps"]


def test_a_file_may_import_its_neighbours_and_define_models() -> None:
    Path("neighbour.py").write_text("X = 1\n")
    Path("mine.py").write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\nimport neighbour\n"
        "@dataclass\nclass Row:\n    x: int = neighbour.X\ndef rows(row: Row) -> int: ...\n"
    )
    assert names(load_tools(str(Path("mine.py").resolve()))) == ["rows"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("X = 1\n", "there is no tool in mine.py"),
        ("TOOLS = 3\n", "TOOLS in mine.py must be a list of functions and Tools"),
        ("TOOLS = [3]\n", "TOOLS in mine.py must be a list of functions and Tools"),
        ("1 / 0\n", "the tools in mine.py cannot be imported: ZeroDivisionError: division by zero"),
        ("import sys; sys.exit(3)\n", "the tools in mine.py cannot be imported: SystemExit: 3"),
        ("def f(:\n", "the tools in mine.py cannot be imported: SyntaxError: invalid syntax (mine.py, line 1)"),
    ],
)
def test_what_is_wrong_is_said(text: str, message: str) -> None:
    Path("mine.py").write_text(text)
    with pytest.raises(InvalidSetting) as e:
        load_tools("mine.py")
    assert e.value.message == message


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(InvalidSetting, match=r"^there is no file nothing\.py$"):
        load_tools("nothing.py")
