"""The text the model reads and the type checker checks against."""

import ast
import dataclasses
import datetime as dt
import enum
import typing
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

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


def test_no_tools_no_text():
    assert render_stubs([]).strip() == ""
