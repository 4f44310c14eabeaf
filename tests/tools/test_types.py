"""Python annotations as type expressions."""

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
from pydantic import Field, HttpUrl, RootModel

from hatchway.tools.functions import tool
from hatchway.tools.stubs import render_stubs


class Unit(enum.Enum):
    CELSIUS = "c"
    FAHRENHEIT = "f"


class Weather(typing.TypedDict):
    """What it is like outside."""

    degrees: float
    wind: typing.NotRequired[str]


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
