"""The text the model reads and the type checker checks against."""

import ast
import dataclasses
import datetime as dt
import enum
import typing
import uuid
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar

import pytest
import typing_extensions
from pydantic import BaseModel, Field, HttpUrl, RootModel

from hatchway.core.calls import CallContext
from hatchway.tools.functions import Tool, tool
from hatchway.tools.stubs import render_stub, render_stubs


class Unit(enum.Enum):
    CELSIUS = "c"
    FAHRENHEIT = "f"


class Weather(typing.TypedDict):
    """What it is like outside."""

    degrees: float
    wind: typing.NotRequired[str]


@dataclasses.dataclass
class Node:
    """Part of a tree."""

    name: str
    children: "list[Node]" = dataclasses.field(default_factory=list["Node"])
    parent: "Node | None" = None


class Trip(BaseModel):
    name: str = Field(description="What it is\ncalled.", alias="trip-name")
    day: dt.date
    root: Node | None = None


class Odd(typing_extensions.TypedDict("Odd", {"class": int, "x-y": typing_extensions.NotRequired[str]})):
    pass


T = TypeVar("T")


@dataclasses.dataclass
class Page(Generic[T]):
    items: list[T]
    next: "Page[T] | None" = None


class Numbers(RootModel[list[int]]):
    pass


class Point(NamedTuple):
    x: int
    y: str


def returning(annotation: Any) -> str:
    def f() -> Any: ...

    f.__annotations__["return"] = annotation
    text = render_stubs([tool(f)])
    exec(compile(text, "stubs", "exec", dont_inherit=True), {})
    return text


def result_of(annotation: Any) -> str:
    return returning(annotation).rpartition("-> ")[2].partition(":\n")[0]


def test_a_whole_module():
    @tool
    def weather(city: str, day: dt.date | None = None, *, unit: Literal["c", "f"] = "c", ctx: CallContext) -> Weather:
        """Tell the weather.

        Args:
            city: Where.
        """
        raise NotImplementedError

    @tool
    async def book(trip: Trip, seats: Annotated[int, Field(description="How many.", ge=1)] = 1) -> list[Trip]:
        """Book a trip."""
        raise NotImplementedError

    assert (
        render_stubs([weather, book])
        == '''\
from datetime import date
from typing import Literal, NotRequired, TypedDict

class Weather(TypedDict):
    """What it is like outside."""
    degrees: float
    wind: NotRequired[str]

class Node(TypedDict):
    """Part of a tree."""
    name: str
    children: NotRequired["list[Node]"]
    parent: NotRequired["Node | None"]

class Trip(TypedDict):
    name: str  # What it is called.
    day: date
    root: NotRequired[Node | None]

def weather(city: str, day: date | None = None, *, unit: Literal["c", "f"] = "c") -> Weather:
    """Tell the weather.

    Args:
        city: Where.
    """
    ...

async def book(trip: Trip, seats: int = 1) -> list[Trip]:
    """Book a trip.

    Args:
        seats: How many.
    """
    ...
'''
    )


def test_the_stub_of_one_tool_is_its_part_of_the_whole():
    @tool
    def book(trip: Trip) -> Trip:
        """Book it."""
        return trip

    expected = 'def book(trip: Trip) -> Trip:\n    """Book it."""\n    ...'
    assert render_stub(book) == book.signature().stub == expected
    assert render_stub(book, "async") == f"async {expected}"
    assert render_stubs([book]).endswith(f"\n\n{expected}\n")


TYPES: list[tuple[Any, str]] = [
    (int, "int"),
    (None, "None"),
    (Any, "Any"),
    (object, "Any"),
    (bytes, "bytes"),
    (dt.datetime | None, "datetime | None"),
    (None | int | str, "int | str | None"),
    (int | Any, "Any"),
    (dt.time, "time"),
    (dt.timedelta, "timedelta"),
    (Decimal, "Decimal"),
    (uuid.UUID, "UUID | str"),
    (Path, "str"),
    (HttpUrl, "str"),
    (Unit, 'Literal["c", "f"]'),
    (Literal[Unit.CELSIUS, 1, None, b"x"], "Literal[\"c\", 1, b'x'] | None"),
    (Literal['it\'s "so"'], "Literal['it\\'s \"so\"']"),
    (typing.NewType("Id", int), "int"),
    (typing_extensions.TypeAliasType("Ids", list[int]), "list[int]"),
    (list, "list[Any]"),
    (dict, "dict[str, Any]"),
    (tuple, "tuple[Any, ...]"),
    (list[set[int]], "list[set[int]]"),
    (dict[str, tuple[int, ...]], "dict[str, tuple[int, ...]]"),
    (tuple[int, str], "tuple[int, str]"),
    (tuple[()], "tuple[()]"),
    (frozenset[str], "frozenset[str]"),
    (deque[int], "list[int]"),
    (Counter[str], "dict[str, int]"),
    (Sequence[float], "Sequence[float]"),
    (Iterable[float], "Iterable[float]"),
    (Mapping[str, float], "Mapping[str, float]"),
    (Point, "tuple[int, str]"),
    (Numbers, "list[int]"),
    (T, "Any"),
    (Annotated[int, Field(ge=1)], "int"),
    (typing.Callable[[int], int], "Any"),
    (Page[int], "Page"),
]


@pytest.mark.parametrize(("annotation", "text"), TYPES, ids=range(len(TYPES)))
def test_types(annotation: Any, text: str):
    assert result_of(annotation) == text


def test_a_generic_class_for_each_parameter():
    text = returning(tuple[Page[int], Page[Weather], Page[int]])
    assert text.count("class Page(TypedDict):\n    items: list[int]\n") == 1
    assert 'class Page2(TypedDict):\n    items: list[Weather]\n    next: NotRequired["Page2 | None"]' in text
    assert "-> tuple[Page, Page2, Page]:" in text


def test_a_recursive_alias_ends_in_any():
    Json = typing_extensions.TypeAliasType("Json", typing.Union[dict[str, "Json"], list["Json"], int])  # noqa: UP007
    assert result_of(Json) == "dict[str, Any] | list[Any] | int"


def test_keys_that_are_no_identifiers():
    assert 'Odd = TypedDict("Odd", {"class": int, "x-y": NotRequired[str]})' in returning(Odd)


def test_two_classes_of_one_name():
    def make(kind: type) -> Any:
        @dataclasses.dataclass
        class Address:
            line: kind

        return Address

    first, second = make(str), make(int)

    def move(a: Any, b: Any, c: Any) -> None: ...

    move.__annotations__ |= {"a": first, "b": second, "c": first}
    text = render_stubs([tool(move)])
    assert "class Address(TypedDict):\n    line: str" in text
    assert "class Address2(TypedDict):\n    line: int" in text
    assert "def move(a: Address, b: Address2, c: Address) -> None:" in text


def test_a_tool_named_like_a_type_or_a_class():
    @tool
    def date(day: dt.date) -> "Weather":
        raise NotImplementedError

    other = Tool(name="Weather", parameters={}, func=print)
    assert (
        render_stubs([date, other])
        == '''\
from datetime import date as date_
from typing import Any, NotRequired, TypedDict

class Weather2(TypedDict):
    """What it is like outside."""
    degrees: float
    wind: NotRequired[str]

def date(day: date_) -> Weather2:
    ...

def Weather(**kwargs: Any) -> Any:
    ...
'''
    )


def test_dotted_names_are_namespaces():
    def make(name: str, annotation: Any) -> Tool:
        def f(x: Any) -> Any: ...

        f.__annotations__["x"] = annotation
        return tool(f, name=name)

    tools = [
        make("s.list", list[int]),
        make("top", list[int]),
        make("s.deep.find", list[int]),
        make("s.find", list[Node]),
    ]
    assert (
        render_stubs(tools)
        == '''\
import builtins
from typing import Any, NotRequired, TypedDict

class Node(TypedDict):
    """Part of a tree."""
    name: str
    children: NotRequired["list[Node]"]
    parent: NotRequired["Node | None"]

class s:
    def list(x: builtins.list[int]) -> Any:
        ...

    class deep:
        def find(x: list[int]) -> Any:
            ...

    def find(x: builtins.list[Node]) -> Any:
        ...

def top(x: list[int]) -> Any:
    ...
'''
    )


class Loud(str):
    """Not a plain text: its repr is its own."""


DEFAULTS: list[tuple[Any, str]] = [
    (None, "None"),
    (True, "True"),
    (-1, "-1"),
    (1.5, "1.5"),
    (float("nan"), "..."),
    (float("-inf"), "..."),
    (10**6000, "..."),
    ("a\n\"b'", "'a\\n\"b\\''"),
    ("x" * 200, "..."),
    (b"\x00", "b'\\x00'"),
    (Unit.CELSIUS, '"c"'),
    ((1,), "(1,)"),
    ((), "()"),
    ([1, [2]], "[1, [2]]"),
    ({"a": (1, 2)}, '{"a": (1, 2)}'),
    ({1}, "{1}"),
    (set[int](), "..."),
    (frozenset({1}), "..."),
    (object(), "..."),
    ([object()], "..."),
    (Loud("x"), "..."),
    (Node("x"), "..."),
]


@pytest.mark.parametrize(("default", "text"), DEFAULTS, ids=range(len(DEFAULTS)))
def test_defaults(default: Any, text: str):
    def f(x: Any = default) -> None: ...

    stub = tool(f).signature().stub
    compile(stub, "stub", "exec")
    assert stub.startswith(f"def f(x: Any = {text}) -> None:")


HOSTILE = [
    '"""\nimport os\n"""',
    'ends in a quote"',
    'four """" quotes',
    "ends in a backslash\\",
    'escaped \\"""',
    "\\",
    '"',
    "a\x00b\x1b[31m\x07\u202e\u2028c\x85d\x0ce\rf",
    "\ud800",
    "\\N{BULLET} \\x41 \\u0041",
    "    indented\n\tand tabs",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_description_cannot_break_out(text: str):
    properties = {"a": {"description": text}, "b": {"properties": {"c": {"description": text}}, "description": text}}
    hostile = Tool(name="s.f", description=text, parameters={"properties": properties}, func=print)
    stubs = render_stubs([hostile])
    module = ast.parse(stubs)
    assert [type(node).__name__ for node in module.body] == ["ImportFrom", "ClassDef", "ClassDef"]
    namespace = typing.cast(ast.ClassDef, module.body[2])
    (function,) = namespace.body
    assert isinstance(function, ast.FunctionDef)
    assert [type(node).__name__ for node in function.body] == ["Expr", "Expr"]
    assert not set(stubs) & set("\x00\x1b\x07\u202e\u2028\x85\x0c\r\ud800")


def test_the_docstring_says_what_the_description_said():
    text = 'Quote """ and backslash \\ and\n\n  indent\nand "'
    stub = Tool(name="f", description=text, parameters={"properties": {}}, func=print).signature().stub
    (function,) = ast.parse(stub).body
    assert ast.get_docstring(typing.cast(ast.FunctionDef, function)) == text


def test_a_hostile_name_cannot_break_out():
    names = ['a"]: ...\nimport os #', "x\ny", "a: int = exec('1')", "a, /", "ﬁ", "fi", "__x", "lambda", "\ud800"]
    schema = {"properties": {name: {"properties": {name: {}}, "title": name} for name in names}}
    hostile = Tool(name="f", parameters=schema, func=print, returns=schema)
    module = ast.parse(render_stubs([hostile]))
    assert {type(node).__name__ for node in module.body} == {"ImportFrom", "Assign", "ClassDef", "FunctionDef"}
    assert [str(each) for each in hostile.signature().parameters.parameters] == ["fi", "kwargs"]  # pyright: ignore


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


def test_no_tools_no_text():
    assert render_stubs([]).strip() == ""
