"""Rules as people write them: what is written is read back the same, and a path is what it leads to."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchway.core.errors import InvalidSetting
from hatchway.gate.call_rules import call_rule
from hatchway.gate.patterns import parse_pattern, render_pattern

NAMES = st.from_regex(r"[A-Za-z_*?.][A-Za-z0-9_*?.]{0,12}", fullmatch=True)


@given(NAMES, st.dictionaries(NAMES, st.text(st.characters(exclude_categories=["Cs"])), max_size=3))
def test_a_pattern_is_read_as_it_was_written(tool: str, args: dict[str, str]) -> None:
    assert parse_pattern(render_pattern(tool, args)) == (tool, args)


@given(st.text())
def test_any_text_is_a_pattern_or_refused(text: str) -> None:
    try:
        tool, args = parse_pattern(text)
    except InvalidSetting:
        return
    assert tool
    assert parse_pattern(render_pattern(tool, args)) == (tool, args)


@pytest.fixture(scope="module")
def workspace() -> Iterator[Path]:
    """Folders with links out, in, around and to nowhere."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve() / "work"
        (root / "src" / "deep").mkdir(parents=True)
        (root / "other").mkdir()
        for where, to in (
            ("in", "src"),
            ("src/out", ".."),
            ("src/etc", "/etc"),
            ("src/loop", "loop"),
            ("src/gone", "../x"),
        ):
            (root / where).symlink_to(to)
        yield root


PARTS = st.sampled_from(
    ["src", "deep", "other", "in", "out", "etc", "loop", "gone", "..", ".", "", "a.py", "SRC", "~", "*"]
)


@given(parts=st.lists(PARTS, max_size=7), is_absolute=st.booleans())
def test_what_a_pattern_of_a_folder_allows_lies_in_that_folder(
    workspace: Path, parts: list[str], is_absolute: bool
) -> None:
    path = "/".join(parts)
    path = f"{workspace}/{path}" if is_absolute else path
    rule = call_rule("allow", "read(path=src/**)", workspace)
    if rule.matches("read", {"path": path}):
        assert Path(os.path.realpath(workspace / path)).is_relative_to(workspace / "src")
    denied = call_rule("deny", "read(path=src/**)", workspace)
    if Path(os.path.realpath(workspace / path)).is_relative_to(workspace / "src" / "deep"):
        assert denied.matches("read", {"path": path})
