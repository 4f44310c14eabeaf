"""Binding, checking and converting arguments: nothing is coerced, every refusal says what is valid."""

import dataclasses
import datetime as dt
import enum
import math
import typing
import uuid
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import pytest
import typing_extensions
from pydantic import BaseModel, Field, field_validator

from hatchway.core.errors import ToolError
from hatchway.tools.functions import Tool, tool


class Unit(enum.Enum):
    CELSIUS = "c"
    FAHRENHEIT = "f"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass
class Stop:
    city: str
    nights: int = 1
    then: "list[Stop]" = dataclasses.field(default_factory=list["Stop"])


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str = Field(alias="the-name")

    @field_validator("name")
    @classmethod
    def not_empty(cls, name: str) -> str:
        if not name:
            raise ValueError("a dog has a name")
        return name


class Old(typing.TypedDict):
    v: int
    kids: typing.NotRequired["list[Old]"]


class New(typing_extensions.TypedDict, total=False):
    a: typing_extensions.Required[int]
    b: str


class Point(NamedTuple):
    x: int
    y: int


@tool
def add(a: int, b: int) -> int:
    return a + b


@tool
def plan(stops: list[Stop], *, unit: Unit = Unit.CELSIUS) -> int:
    return len(stops)


def refusal(made: Tool, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(ToolError) as refused:
        made.bind(args, kwargs)
    return str(refused.value)


def taking(annotation: Any) -> Tool:
    def take(x: Any) -> Any:
        return x

    take.__annotations__["x"] = annotation
    return tool(take)


def converted(annotation: Any, value: Any) -> Any:
    made = taking(annotation)
    bound = made.bind((value,), {})
    assert bound["x"] is value
    return made.prepare(bound)["x"]


def test_arguments_are_bound_by_name_and_defaults_are_not_filled_in():
    made = tool(lambda a, b=2, *, c=3: (a, b, c), name="three")
    assert made.bind((1,), {}) == {"a": 1}
    assert made.bind((1, 5), {"c": 6}) == {"a": 1, "b": 5, "c": 6}
    assert made.bind((), {"b": 5, "a": 1}) == {"b": 5, "a": 1}
    assert add.bind([1, 2], {}) == {"a": 1, "b": 2}


def test_what_was_given_is_not_touched():
    given = {"a": 1, "b": 2}
    bound = add.bind((), given)
    bound["a"] = 5
    assert given == {"a": 1, "b": 2}


MESSAGES: list[tuple[Tool, tuple[Any, ...], dict[str, Any], str]] = [
    (add, (1, "x"), {}, "add(): parameter 'b' must be an integer, got 'x' (str)"),
    (add, (1,), {}, "add(): missing required parameter 'b'; it takes (a: int, b: int)"),
    (
        add,
        (1,),
        {"c": 2},
        "add(): 2 problems\n"
        "- missing required parameter 'b'\n"
        "- unknown parameter 'c', did you mean 'b'?\n"
        "It takes (a: int, b: int)",
    ),
    (add, (1, 2), {"c": 3}, "add(): unknown parameter 'c'; it takes (a: int, b: int)"),
    (add, (1, 2, 3), {}, "add(): 3 positional argument(s) given, at most 2 can be; it takes (a: int, b: int)"),
    (add, (1, 2), {"a": 3}, "add(): parameter 'a' given twice, by position and by name; it takes (a: int, b: int)"),
    (
        add,
        ("1", None),
        {},
        "add(): 2 problems\n"
        "- parameter 'a' must be an integer, got '1' (str)\n"
        "- parameter 'b' must be an integer, got None",
    ),
    (
        add,
        (True, 1.0),
        {},
        "add(): 2 problems\n"
        "- parameter 'a' must be an integer, got True (bool)\n"
        "- parameter 'b' must be an integer, got 1.0 (float)",
    ),
    (
        plan,
        ([{"city": "x"}, {"city": "y"}, {"city": 3}],),
        {},
        "plan(): parameter 'stops[2].city' must be a string, got 3 (int)",
    ),
    (plan, ([{"nights": 2}],), {}, "plan(): parameter 'stops[0].city' is missing"),
    (
        plan,
        ([{"city": "x", "then": [{"city": "y", "nights": "2"}]}],),
        {},
        "plan(): parameter 'stops[0].then[0].nights' must be an integer, got '2' (str)",
    ),
    (plan, ([],), {"unit": "k"}, "plan(): parameter 'unit' must be one of 'c', 'f', got 'k'"),
    (plan, ([],), {"unit": 1}, "plan(): parameter 'unit' must be a string, got 1 (int)"),
    (plan, ("Bonn",), {}, "plan(): parameter 'stops' must be a list, got 'Bonn' (str)"),
    (
        plan,
        ([], "c"),
        {},
        "plan(): 2 positional argument(s) given, at most 1 can be; "
        'it takes (stops: list[Stop], *, unit: Literal["c", "f"] = "c")',
    ),
    (
        plan,
        ([],),
        {"units": "c"},
        "plan(): unknown parameter 'units', did you mean 'unit'? "
        'It takes (stops: list[Stop], *, unit: Literal["c", "f"] = "c")',
    ),
    (taking(int | str), (1.5,), {}, "take(): parameter 'x' must be an integer or a string, got 1.5 (float)"),
    (taking(int | None), ("1",), {}, "take(): parameter 'x' must be an integer or None, got '1' (str)"),
    (taking(Literal["a", "b"]), ("c",), {}, "take(): parameter 'x' must be one of 'a', 'b', got 'c'"),
    (taking(Literal["only"]), (["c"],), {}, "take(): parameter 'x' must be a string, got ['c'] (list)"),
    (
        taking(Annotated[Cat | Dog, Field(discriminator="kind")]),
        ({"kind": "cow"},),
        {},
        "take(): parameter 'x.kind' must be 'cat' or 'dog', got 'cow'",
    ),
    (
        taking(Cat | Dog),
        ({"kind": "cat", "lives": "9"},),
        {},
        "take(): parameter 'x.lives' must be an integer, got '9' (str)",
    ),
    (taking(Dog), ({"kind": "dog", "name": ""},), {}, "take(): parameter 'x.name' is not valid: a dog has a name"),
    (taking(Dog), ({"kind": "dog", "the-name": "Rex"},), {}, "take(): parameter 'x.name' is missing"),
    (taking(New), ({"a": 1, "c": 2},), {}, "take(): parameter 'x.c' is not known, did you mean 'b'?"),
    (taking(Annotated[int, Field(ge=3)]), (2,), {}, "take(): parameter 'x' must be ≥ 3, got 2 (int)"),
    (
        taking(Annotated[str, Field(pattern="^[a-z]+$")]),
        ("A",),
        {},
        "take(): parameter 'x' must match the pattern '^[a-z]+$', got 'A' (str)",
    ),
    (
        taking(Annotated[list[int], Field(min_length=1)]),
        ([],),
        {},
        "take(): parameter 'x' must have at least 1 item(s), got [] (list)",
    ),
    (taking(dict[str, int]), ({"a b": "c"},), {}, "take(): parameter \"x['a b']\" must be an integer, got 'c' (str)"),
    (
        taking(dt.date),
        ("2024-13-01",),
        {},
        "take(): parameter 'x' must be a date (or its ISO text), got '2024-13-01' (str)",
    ),
    (taking(uuid.UUID), ("zz",), {}, "take(): parameter 'x' must be a UUID (or its text), got 'zz' (str)"),
    (
        taking(Decimal),
        (1.5,),
        {},
        "take(): parameter 'x' must be a Decimal (or an integer, or decimal text), got 1.5 (float)",
    ),
    (taking(bytes), ("text",), {}, "take(): parameter 'x' must be bytes, got 'text' (str)"),
]


@pytest.mark.parametrize(("made", "args", "kwargs", "message"), MESSAGES, ids=range(len(MESSAGES)))
def test_refusals_say_what_is_wrong_and_what_is_valid(
    made: Tool, args: tuple[Any, ...], kwargs: dict[str, Any], message: str
):
    assert refusal(made, *args, **kwargs) == message


def test_at_most_five_problems_are_told():
    told = refusal(taking(list[int]), list("abcdefgh")).splitlines()
    assert told[0] == "take(): 5 problems"
    assert told[1:] == [f"- parameter 'x[{n}]' must be an integer, got '{c}' (str)" for n, c in enumerate("abcde")]


COERCIONS: list[tuple[Any, list[Any]]] = [
    (int, ["1", 1.0, True, None, Decimal(1), b"1", [1]]),
    (float, ["1.5", True, None, b"1"]),
    (str, [1, b"x", None, dt.date(2024, 1, 1), Decimal(1), ["x"]]),
    (bool, [1, 0, "true", None]),
    (bytes, ["x", [1], 1, bytearray]),
    (dt.date, [1, 1.5, "1700000000", dt.datetime(2024, 1, 1), None]),
    (dt.datetime, [1, 1700000000.5, "1700000000", "soon"]),
    (dt.timedelta, [1, 1.5, "60"]),
    (uuid.UUID, [1, b"x" * 16, "x"]),
    (Decimal, [1.5, True, "one", None]),
    (Unit, ["C", "CELSIUS", 1, None]),
    (Level, ["1", True, 1.0, 3]),
    (Literal[1, 2], [True, 1.0, "1"]),
    (Literal[True], [1]),
    (list[int], [{"a": 1}, "12", 1, ["1"], None]),
    (set[int], [{"a": 1}, "12", ["1"], [1, 1]]),
    (tuple[int, str], [[1], [1, "a", 2], ["a", 1], "1a"]),
    (dict[str, int], [[("a", 1)], {"a": "1"}, {1: 1}]),
    (Stop, [["x"], "x", {"city": 1}, {"city": "x", "nights": "1"}]),
    (Path, [1, b"x"]),
    (Sequence[str], ["abc", 1, [1]]),
]


@pytest.mark.parametrize(("annotation", "values"), COERCIONS, ids=range(len(COERCIONS)))
def test_nothing_is_coerced(annotation: Any, values: list[Any]):
    made = taking(annotation)
    for value in values:
        refusal(made, value)
        refusal(made, x=value)


A_UUID = uuid.UUID("12345678-1234-5678-1234-567812345678")
CONVERSIONS: list[tuple[Any, Any, Any]] = [
    (float, 1, 1.0),
    (int, 10**6000, 10**6000),
    (float, float("inf"), float("inf")),
    (Stop, {"city": "x", "then": [{"city": "y"}]}, Stop("x", 1, [Stop("y")])),
    (dict[int, Stop], {1: {"city": "x"}}, {1: Stop("x")}),
    (Dog, {"kind": "dog", "name": "Rex"}, Dog.model_construct(kind="dog", name="Rex")),
    (Cat | Dog, {"kind": "dog", "name": "Rex"}, Dog.model_construct(kind="dog", name="Rex")),
    (Old, {"v": 1, "kids": [{"v": 2}]}, {"v": 1, "kids": [{"v": 2}]}),
    (list[Old], [{"v": 1}], [{"v": 1}]),
    (New, {"a": 1}, {"a": 1}),
    (Point, [1, 2], Point(1, 2)),
    (tuple[int, ...], [1, 2], (1, 2)),
    (tuple[int, str], (1, "a"), (1, "a")),
    (list[int], (1, 2), [1, 2]),
    (list[int], {1}, [1]),
    (set[int], [1, 2], {1, 2}),
    (frozenset[int], {1, 2}, frozenset({1, 2})),
    (Sequence[int], (1, 2), (1, 2)),
    (Iterable[int], [1, 2], [1, 2]),
    (Mapping[str, int], {"a": 1}, {"a": 1}),
    (dt.date, "2024-05-06", dt.date(2024, 5, 6)),
    (dt.date, dt.date(2024, 5, 6), dt.date(2024, 5, 6)),
    (dt.datetime, "2024-05-06T07:08:09+00:00", dt.datetime(2024, 5, 6, 7, 8, 9, tzinfo=dt.UTC)),
    (dt.time, "07:08", dt.time(7, 8)),
    (dt.timedelta, "PT1M", dt.timedelta(minutes=1)),
    (dt.timedelta, dt.timedelta(1), dt.timedelta(1)),
    (dt.date | None, None, None),
    (str | dt.date, "2024-05-06", "2024-05-06"),
    (dt.date | str, "2024-05-06", "2024-05-06"),
    (uuid.UUID, str(A_UUID), A_UUID),
    (uuid.UUID, A_UUID, A_UUID),
    (Decimal, Decimal("1.50"), Decimal("1.50")),
    (Decimal, "1.50", Decimal("1.50")),
    (Decimal, 2, Decimal(2)),
    (Unit, "f", Unit.FAHRENHEIT),
    (Level, 2, Level.HIGH),
    (Literal[1, "a"], 1, 1),
    (Literal[Unit.CELSIUS], "c", Unit.CELSIUS),
    (bytes, b"\x00\xff", b"\x00\xff"),
    (Path, "/a/b", Path("/a/b")),
    (Any, {"a": {1, 2}}, {"a": {1, 2}}),
    (typing.NewType("Id", int), 3, 3),
]


@pytest.mark.parametrize(("annotation", "value", "expected"), CONVERSIONS, ids=range(len(CONVERSIONS)))
def test_structures_become_what_the_function_takes(annotation: Any, value: Any, expected: Any):
    result = converted(annotation, value)
    assert result == expected
    assert type(result) is type(expected)


def test_nan_crosses_and_breaks_every_bound():
    assert math.isnan(converted(float, float("nan")))
    assert refusal(taking(Annotated[float, Field(ge=0)]), float("nan")) == (
        "take(): parameter 'x' must be ≥ 0, got nan (float)"
    )


def test_none_for_a_default_of_none():
    def old_style(x: int = None) -> Any:  # noqa: RUF013  # pyright: ignore[reportArgumentType]
        return x

    made = tool(old_style)
    assert made.bind((None,), {}) == {"x": None}
    assert str(made.signature().parameters) == "(x: 'int | None' = None) -> 'Any'"


def test_a_validator_that_fails_is_a_tool_that_fails():
    class Fragile(BaseModel):
        x: int

        @field_validator("x")
        @classmethod
        def look_up(cls, x: int) -> int:
            return {1: 1}[x]

    made = taking(Fragile)
    assert refusal(made, {"x": 2}) == "take(): the arguments could not be checked: KeyError: 2"
    with pytest.raises(ToolError, match=r"^take\(\): the arguments could not be checked: KeyError: 2$"):
        made.prepare({"x": {"x": 2}})


def test_star_parameters():
    @tool
    def gather(first: int, /, second: int = 0, *rest: float, key: str = "", **more: Stop) -> Any:
        return first, second, rest, key, more

    bound = gather.bind((1, 2, 3, 4.5), {"home": {"city": "Bonn"}})
    assert bound == {"first": 1, "second": 2, "rest": [3, 4.5], "home": {"city": "Bonn"}}
    assert gather.func(**gather.prepare(bound)) == (1, 2, (3.0, 4.5), "", {"home": Stop("Bonn")})
    assert gather.func(**gather.prepare(gather.bind((1,), {"rest": [7]}))) == (1, 0, (7.0,), "", {})
    assert refusal(gather, 1, 2, 3, "4") == "gather(): parameter 'rest[1]' must be a number, got '4' (str)"
    assert refusal(gather, 1, home={"city": 1}) == "gather(): parameter 'home.city' must be a string, got 1 (int)"
    assert gather.parameters["additionalProperties"] == {"$ref": "#/$defs/Stop"}
