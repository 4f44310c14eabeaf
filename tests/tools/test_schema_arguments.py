"""Arguments a JSON schema describes."""

from typing import Any

import pytest

from hatchway.core.errors import ToolError
from hatchway.tools.functions import Tool


def refusal(made: Tool, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(ToolError) as refused:
        made.bind(args, kwargs)
    return str(refused.value)


def schema_tool(schema: dict[str, Any]) -> Tool:
    return Tool(name="search", parameters=schema, func=lambda **given: given)


def test_schema_tools_bind_required_parameters_first():
    made = schema_tool(
        {
            "properties": {"n": {"type": "integer"}, "q": {"type": "string"}, "deep": {"default": False}},
            "required": ["q"],
        }
    )
    assert made.bind(("x", 3), {}) == {"q": "x", "n": 3}
    assert str(made.signature().parameters) == "(q: 'str', n: 'int' = Ellipsis, deep: 'Any' = False) -> 'Any'"
    assert refusal(made, "x", "3") == "search(): parameter 'n' must be an integer, got '3' (str)"
    assert refusal(made, "x", m=3) == (
        "search(): unknown parameter 'm'; it takes (q: str, n: int = ..., deep: Any = False)"
    )


def test_schema_tools_get_json_types():
    made = schema_tool({"properties": {"a": {}, "b": {"type": "array"}}})
    bound = made.bind((), {"a": ({1}, {"k": (2,)}), "b": {3}})
    assert bound == {"a": ({1}, {"k": (2,)}), "b": {3}}
    assert made.prepare(bound) == {"a": [[1], {"k": [2]}], "b": [3]}
    nested = schema_tool({"properties": {"a": {"type": "object"}}})
    assert refusal(nested, {1: 2}) == "search(): parameter 'a' must have texts as keys, got the key 1 (int)"


def test_schema_tools_take_more_only_when_they_say_so():
    for open_schema in ({}, {"properties": {"a": {}}, "additionalProperties": True}, {"anyOf": [{"required": ["z"]}]}):
        assert schema_tool(open_schema).bind((), {"z": 1}) == {"z": 1}
    typed = schema_tool({"additionalProperties": {"type": "integer"}})
    assert refusal(typed, z="1") == "search(): parameter 'z' must be an integer, got '1' (str)"
    closed = schema_tool({"properties": {"ab": {}}, "additionalProperties": False})
    assert refusal(closed, aa=1) == "search(): unknown parameter 'aa', did you mean 'ab'? It takes (ab: Any = ...)"


def test_schema_tools_take_what_fits_a_pattern():
    made = schema_tool(
        {"properties": {"a": {}}, "patternProperties": {"^v": {"type": "integer"}}, "additionalProperties": False}
    )
    assert made.bind((), {"a": 1, "version": 2}) == {"a": 1, "version": 2}
    assert refusal(made, version="2") == "search(): parameter 'version' must be an integer, got '2' (str)"
    assert refusal(made, a=1, b=2) == ("search(): unknown parameter 'b'; it takes (a: Any = ..., **kwargs: Any)")


def test_schema_tools_with_names_python_cannot_have():
    made = schema_tool({"properties": {"from": {"type": "string"}, "q": {"type": "string"}}, "required": ["from", "q"]})
    assert made.bind(("x",), {"from": "y"}) == {"q": "x", "from": "y"}
    assert refusal(made, "x") == (
        "search(): missing required parameter 'from'; it takes (q: str, **kwargs: Any)\n"
        "'from' is given by ** only: search(**{'from': ...})"
    )
    assert refusal(made, "x", from_="y") == (
        "search(): 2 problems\n"
        "- unknown parameter 'from_', did you mean 'from'?\n"
        "- missing required parameter 'from'\n"
        "It takes (q: str, **kwargs: Any)\n"
        "'from' is given by ** only: search(**{'from': ...})"
    )
    assert refusal(made, "x", **{"from": "y", "to": 1}) == (
        "search(): unknown parameter 'to'; it takes (q: str, **kwargs: Any)"
    )


def test_a_schema_behind_a_reference():
    made = schema_tool(
        {"$ref": "#/$defs/In", "$defs": {"In": {"properties": {"q": {"type": "string"}}, "required": ["q"]}}}
    )
    assert made.bind(("x",), {}) == {"q": "x"}
    assert refusal(made) == "search(): missing required parameter 'q'; it takes (q: str)"
