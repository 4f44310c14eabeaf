"""What a hostile guest may send as arguments: short refusals, and no way to hang the host."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest
import typing_extensions
from pydantic import BaseModel, Field

from hatchway.core.errors import ToolError
from hatchway.tools.functions import Tool, tool


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


@tool
def add(a: int, b: int) -> int:
    return a + b


def refusal(made: Tool, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(ToolError) as refused:
        made.bind(args, kwargs)
    return str(refused.value)


def taking(annotation: Any) -> Tool:
    def take(x: Any) -> Any:
        return x

    take.__annotations__["x"] = annotation
    return tool(take)


def schema_tool(schema: dict[str, Any]) -> Tool:
    return Tool(name="search", parameters=schema, func=lambda **given: given)


def test_a_flood_of_unknown_names():
    flood = {f"x{n}": n for n in range(20_000)}
    for made in (tool(lambda: None, name="nothing"), schema_tool({"properties": {"q": {}}})):
        assert refusal(made, **flood).count("unknown parameter") == 5


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (10**5000, "an int of 16610 bits (int)"),
        ("\ud800\x1b[31m\n", r"'\ud800\x1b[31m\n' (str)"),
        ("x" * 100_000, f"'{'x' * 37}...{'x' * 38}' (str)"),
        (b"x" * 100_000, f"b'{'x' * 80}'… (bytes)"),
        (dict.fromkeys(range(100)), "{0: None, 1: None, 2: None, 3: None, ...} (dict)"),
    ],
    ids=["int", "text", "long text", "bytes", "dict"],
)
def test_hostile_values_are_shown_short_and_harmless(value: Any, shown: str):
    assert refusal(taking(list[int]), value) == f"take(): parameter 'x' must be a list, got {shown}"


def test_hostile_names_are_shown_short():
    told = refusal(add, **{"x" * 100_000: 1, "a": 1, "b": 2})
    assert told == f"add(): unknown parameter '{'x' * 80}'; it takes (a: int, b: int)"


def test_depth_without_end():
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    schema = {
        "properties": {"x": {"$ref": "#/$defs/L"}},
        "$defs": {"L": {"type": "array", "items": {"$ref": "#/$defs/L"}}},
    }
    nested = Tool(name="nested", parameters=schema, func=lambda x: x)
    assert refusal(nested, deep) == "nested(): the arguments are nested too deeply"
    Json = typing_extensions.TypeAliasType("Json", "list[Json] | int")
    made = taking(Json)
    assert refusal(made, deep) == "take(): the arguments are nested too deeply"


class And(BaseModel):
    op: Literal["and"]
    args: "list[And | Or | Cat]"


class Or(BaseModel):
    op: Literal["or"]
    args: "list[And | Or | Cat]"


class Yes(BaseModel):
    op: Literal["yes"]
    then: "Annotated[Yes | No, Field(discriminator='op')] | int"


class No(BaseModel):
    op: Literal["no"]
    then: "Annotated[Yes | No, Field(discriminator='op')] | int"


class Left(typing_extensions.TypedDict):
    left: "Left | Right | int"


class Right(typing_extensions.TypedDict):
    left: "Left | Right | str"


def nested(levels: int, level: Callable[[Any], Any], core: Any) -> Any:
    for _ in range(levels):
        core = level(core)
    return core


def test_alternatives_that_hold_themselves_cannot_hang_the_host():
    told = "take(): the arguments are nested too deeply to tell which type each part is"
    for annotation, level in (
        (And | Or, lambda core: {"op": "or", "args": [core]}),
        (Left | Right, lambda core: {"left": core}),
    ):
        core = {"kind": "cat", "lives": 9} if annotation == And | Or else 1
        made = taking(annotation)
        assert made.prepare(made.bind((nested(8, level, core),), {}))
        assert refusal(made, nested(100, level, core)) == told
        wide = nested(10, level, core)
        assert refusal(taking(list[annotation]), [wide] * 100) == told


def test_a_discriminator_allows_any_depth():
    made = taking(Annotated[Yes | No, Field(discriminator="op")])
    deep = nested(60, lambda core: {"op": "no", "then": core}, 1)
    assert isinstance(made.prepare(made.bind((deep,), {}))["x"], No)
    wrong = nested(60, lambda core: {"op": "no", "then": core}, "x")
    assert refusal(made, wrong).endswith("must be a dict or an integer, got 'x' (str)")


def test_a_schema_of_alternatives_that_hold_themselves_is_checked_once_per_part():
    node = {
        "type": "object",
        "properties": {"a": {"anyOf": [{"$ref": "#/$defs/L"}, {"$ref": "#/$defs/R"}, {"const": 1}]}},
    }
    made = schema_tool({"properties": {"x": {"$ref": "#/$defs/L"}}, "$defs": {"L": node, "R": dict(node)}})
    assert made.bind((nested(60, lambda core: {"a": core}, 1),), {})
    assert "must be" in refusal(made, nested(60, lambda core: {"a": core}, 2))
