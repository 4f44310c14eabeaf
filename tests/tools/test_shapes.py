"""JSON schemas as type expressions."""

from typing import Any

import pytest

from hatchway.tools.functions import Tool
from hatchway.tools.stubs import render_stubs


def schema_stub(schema: dict[str, Any], returns: dict[str, Any] | None = None) -> str:
    text = render_stubs([Tool(name="find", parameters=schema, func=print, returns=returns)])
    exec(compile(text, "stubs", "exec", dont_inherit=True), {})
    return text


SHAPES: list[tuple[Any, str]] = [
    ({"type": "string"}, "str"),
    ({"type": "number"}, "float"),
    ({"type": ["integer", "null"]}, "int | None"),
    ({"type": "string", "nullable": True}, "str | None"),
    ({"enum": ["a", 1, None]}, 'Literal["a", 1] | None'),
    ({"enum": [1.5, "a"]}, "float | str"),
    ({"const": True}, "Literal[True]"),
    ({"const": {"a": 1}}, "dict[str, Any]"),
    ({"type": "array"}, "list[Any]"),
    ({"type": "array", "items": {"type": "integer"}}, "list[int]"),
    ({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False}, "list[int | str]"),
    ({"type": "array", "items": [{"type": "integer"}], "additionalItems": False}, "list[int]"),
    ({"type": "object"}, "dict[str, Any]"),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, "dict[str, int]"),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "str | None"),
    ({"oneOf": [{"type": "string"}, {}]}, "Any"),
    ({"allOf": [{"type": "string"}, {"minLength": 1}]}, "str"),
    ({}, "Any"),
    (True, "Any"),
    ({"not": {}}, "Any"),
    ({"$ref": "#/$defs/N"}, "int"),
    ({"$ref": "#/$defs/J"}, "list[Any] | str"),
    ({"$ref": "#/$defs/Tree"}, "Tree"),
    ({"properties": {"a": {"type": "integer"}}}, "FindX"),
    ({"properties": {"a": {}}, "title": "a title"}, "ATitle"),
    ({"properties": {"a": {}}, "title": "int"}, "Int"),
    ({"properties": {"a": {}}, "title": "Any"}, "Any2"),
    ({"properties": {"a": {}}, "title": "名前"}, "FindX"),
    ({"properties": {"a": {}}, "additionalProperties": {"type": "integer"}}, "dict[str, int]"),
    ({"anyOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}, "FindX | FindX2"),
    ({"allOf": [{"$ref": "#/$defs/Tree"}, {"properties": {"b": {}}}]}, "FindX"),
]  # fmt: skip
DEFINITIONS = {
    "N": {"type": "integer"},
    "J": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/J"}}, {"type": "string"}]},
    "Tree": {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}},
}


@pytest.mark.parametrize(("schema", "text"), SHAPES, ids=range(len(SHAPES)))
def test_shapes(schema: Any, text: str):
    stub = schema_stub({"properties": {"x": schema}, "required": ["x"], "$defs": DEFINITIONS})
    assert f"def find(x: {text}) -> Any:" in stub


def test_a_schema_with_everything():
    schema = {
        "type": "object",
        "properties": {
            "limit": {"type": "integer", "default": 10},
            "query": {"type": "string", "description": "What to\nlook for."},
            "filter": {
                "type": "object",
                "description": "Which ones.",
                "properties": {"from": {"type": "string"}, "range": {"$ref": "#/$defs/Range"}},
                "required": ["from"],
            },
            "x-trace": {"type": "string"},
        },
        "required": ["query"],
        "$defs": {
            "Range": {"properties": {"low": {"type": "number"}, "high": {"type": "number"}}, "required": ["low"]}
        },
    }
    returns = {
        "type": "array",
        "items": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
    }
    assert (
        schema_stub(schema, returns)
        == '''\
from typing import Any, NotRequired, TypedDict

class Range(TypedDict):
    low: float
    high: NotRequired[float]

FindFilter = TypedDict("FindFilter", {"from": str, "range": NotRequired[Range]})

class FindResultItem(TypedDict):
    id: int

def find(query: str, limit: int = 10, filter: FindFilter = ..., **kwargs: Any) -> list[FindResultItem]:
    """Args:
        query: What to look for.
        filter: Which ones.

    Given by ** only, as in find(**{"x-trace": ...}): "x-trace": str
    """
    ...
'''
    )


def test_two_tools_share_the_class_they_both_describe():
    address = {"title": "Address", "type": "object", "properties": {"line": {"type": "string"}}}
    other = {"title": "Address", "type": "object", "properties": {"line": {"type": "integer"}}}
    tools = [
        Tool(
            name=name,
            parameters={"properties": {"to": {"$ref": "#/$defs/A"}}, "$defs": {"A": each, **more}},
            func=print,
        )
        for name, each, more in [("a", address, {}), ("b", dict(address), {"B": {}}), ("c", other, {})]
    ]
    text = render_stubs(tools)
    assert "def a(to: Address = ...)" in text
    assert "def b(to: Address = ...)" in text
    assert "def c(to: Address2 = ...)" in text
    assert text.count("class ") == 2


def test_equal_texts_that_refer_to_different_things_are_two_classes():
    box = {"title": "Box", "properties": {"in": {"$ref": "#/$defs/In"}}}
    tools = [
        Tool(name=name, parameters={"properties": {"box": box}, "$defs": {"In": {"type": inner}}}, func=print)
        for name, inner in [("a", "string"), ("b", "integer")]
    ]
    text = render_stubs(tools)
    assert 'Box = TypedDict("Box", {"in": NotRequired[str]})' in text
    assert 'Box2 = TypedDict("Box2", {"in": NotRequired[int]})' in text
