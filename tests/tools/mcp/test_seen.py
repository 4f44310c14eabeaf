"""Types inferred from results: what is told, what is merged, what hostile results can make of it."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hatchway.tools.functions import Tool
from hatchway.tools.mcp.seen import Seen, merged, shape
from hatchway.tools.schema import compile_schema
from hatchway.tools.stubs import render_stubs

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


def stub(schema: Any) -> str:
    tool = Tool(name="s.t", parameters={"type": "object"}, func=lambda: None, seen=lambda: schema)
    return render_stubs([tool.as_seen()])


@pytest.mark.parametrize(
    ("results", "type_"),
    [
        (["text"], "str"),
        ([1, 2.5], "float"),
        (["text", None], "str | None"),
        ([[1], []], "list[int]"),
        ([b"bytes"], "Any"),
        ([{"2026-01-01": 1, "2026-01-02": 2}], "dict[str, int]"),
        ([1, "a", None, [1], {"b": 1}], "Any"),
    ],
)
def test_plain_types(results: list[Any], type_: str) -> None:
    seen = Seen()
    for each in results:
        seen.look("t", each)
    text = stub(seen.schema("t"))
    assert f"-> {type_}:" in text


def test_records_are_merged_over_results() -> None:
    seen = Seen()
    assert seen.look("t", {"id": 1, "note": None})
    assert seen.look("t", {"id": 2, "note": "x", "tags": ["a"]})
    assert not seen.look("t", {"id": 3, "note": "y"})
    assert "id: int" in (text := stub(seen.schema("t")))
    assert "note: str | None" in text
    assert "tags: NotRequired[list[str]]" in text


def test_what_was_known_before_goes_on() -> None:
    again = Seen(Seen({"t": shape({"a": 1})}).told())
    assert not again.look("t", {"a": 2})
    assert again.look("t", {"a": "x"})


@pytest.mark.parametrize(
    "hostile",
    [
        {f"key_{n}": n for n in range(5000)},
        {"x" * 5_000_000: 1},
        {'a": int\nimport os; os.system("touch injected")\n#': 1},
        {"import": 1, "class": 2, "__init__": 3},
        [[[[[[[[[[1]]]]]]]]]],
        [{f"k{n}": {f"k{m}": [1] * 1000 for m in range(40)} for n in range(40)}] * 1000,
    ],
)
def test_hostile_results_make_short_harmless_types(hostile: Any) -> None:
    text = stub(shape(hostile))
    assert len(text) < 20_000
    nodes = list(ast.walk(ast.parse(text)))
    assert not any(isinstance(node, ast.Import) for node in nodes)
    assert {ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)} <= {"TypedDict"}


def test_looking_ends() -> None:
    seen = Seen()
    for _ in range(40):
        seen.look("t", 1)
    assert not seen.look("t", "something else")


@settings(max_examples=60, deadline=None)
@given(st.lists(JSON, min_size=1, max_size=5))
def test_every_result_fits_the_type_it_was_merged_into(results: list[Any]) -> None:
    found = shape(results[0])
    for each in results[1:]:
        found = merged(found, shape(each))
    check = compile_schema(found)
    assert [check(each) for each in results] == [[]] * len(results)
    compile(stub(found), "stub", "exec")
