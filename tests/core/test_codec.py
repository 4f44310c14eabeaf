"""Values at the wall: every kind crosses both ways unchanged, everything else is refused by its path."""

import datetime as dt
import decimal
import enum
import json
import math
import uuid
from collections import Counter, OrderedDict, namedtuple
from dataclasses import dataclass
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchway.core import codec
from hatchway.core.errors import ValueNotPortable
from hatchway.core.values import copied, from_wire, to_wire

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=())),
    st.binary(),
    st.datetimes(timezones=st.none() | st.just(dt.UTC)),
    st.dates(),
    st.times(),
    st.timedeltas(),
    st.decimals(allow_nan=False),
    st.uuids(),
)
HASHABLE = st.recursive(SCALARS, lambda inner: st.tuples(inner, inner) | st.frozensets(inner), max_leaves=5)
VALUES: Any = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner),
        st.tuples(inner, inner),
        st.dictionaries(st.text(), inner),
        st.dictionaries(HASHABLE, inner),
        st.sets(HASHABLE),
    ),
    max_leaves=20,
)


def same(a: Any, b: Any) -> bool:
    """Equal in value and in type, all the way down."""
    return repr(_typed(a)) == repr(_typed(b))


def _typed(value: Any) -> Any:
    match value:
        case dict():
            return ("dict", [(_typed(k), _typed(v)) for k, v in value.items()])
        case list() | tuple():
            return (type(value).__name__, [_typed(v) for v in value])
        case set() | frozenset():
            return (type(value).__name__, sorted(repr(_typed(v)) for v in value))
        case dt.datetime() | dt.time():
            return (type(value).__name__, value.isoformat())  # `fold` does not travel
        case _:
            return (type(value).__name__, value)


@given(VALUES)
def test_every_value_comes_back_as_it_was(value: Any) -> None:
    assert same(from_wire(to_wire(value)), value)


@given(VALUES)
def test_the_wire_form_is_one_line_of_ascii(value: Any) -> None:
    wire = to_wire(value)
    assert wire.isascii()
    assert b"\n" not in wire


@given(st.binary())
def test_rubbish_is_malformed_and_nothing_else(data: bytes) -> None:
    try:
        codec.loads(data)
    except codec.Malformed:
        pass


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=6),
        lambda c: st.lists(c) | st.dictionaries(st.sampled_from(["$", "v", "x"]), c),
    )
)
def test_forged_tags_are_malformed_or_plain(value: Any) -> None:
    try:
        came = codec.loads(json.dumps(value).encode())
    except codec.Malformed:
        return
    assert same(codec.loads(codec.dumps(came)), came)


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: Any = None


class Model(pydantic.BaseModel):
    name: str
    at: dt.date


Pair = namedtuple("Pair", "a b")


@pytest.mark.parametrize(
    ("given_value", "arrives"),
    [
        (Point(1, Point(2)), {"x": 1, "y": {"x": 2, "y": None}}),
        (Model(name="n", at=dt.date(2026, 1, 2)), {"name": "n", "at": dt.date(2026, 1, 2)}),
        (Colour.RED, "red"),
        (Pair(1, 2), (1, 2)),
        (Counter("aab"), {"a": 2, "b": 1}),
        (OrderedDict(z=1, a=2), {"z": 1, "a": 2}),
        (bytearray(b"ab"), b"ab"),
        ("\ud800", "\ud800"),
        ({"$": "tuple", "v": [1]}, {"$": "tuple", "v": [1]}),
    ],
)
def test_what_has_a_builtin_form_arrives_in_it(given_value: Any, arrives: Any) -> None:
    got = copied(given_value)
    assert got == arrives
    assert type(got) is type(arrives)


def test_huge_ints_cross() -> None:
    assert copied([10**6000, -(10**6000)]) == [10**6000, -(10**6000)]


def test_nan_and_infinity_cross() -> None:
    assert math.isnan(copied(float("nan")))
    assert copied([float("inf"), float("-inf")]) == [float("inf"), float("-inf")]


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (object(), "value"),
        ({"rows": [1, {"f": print}]}, "value['rows'][1]['f']"),
        ([(1, {2, 3j})], "value[0][1][0]"),
        ({1: object()}, "value"),
    ],
)
def test_what_cannot_cross_is_named_by_its_path(value: Any, path: str) -> None:
    with pytest.raises(ValueNotPortable) as refused:
        to_wire(value)
    assert refused.value.path.startswith(path)
    assert "cannot cross the wall" in str(refused.value)


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ValueNotPortable, match="nested deeper than 200 levels, or contains itself"):
        to_wire(loop)


def test_depth_is_bounded_on_both_sides() -> None:
    deep: Any = 0
    for _ in range(codec.MAX_DEPTH):
        deep = [deep]
    assert from_wire(to_wire(deep)) == deep
    with pytest.raises(ValueNotPortable):
        to_wire([[deep]])
    with pytest.raises(codec.Malformed):
        codec.loads(b"[" * 300 + b"]" * 300)
    with pytest.raises(codec.Malformed):
        codec.loads(b"[" * 100_000 + b"]" * 100_000)


@pytest.mark.parametrize(
    ("item", "most"), [(b"[],", codec.MAX_CONTAINERS), (b"{},", codec.MAX_CONTAINERS), (b"1,", codec.MAX_ITEMS)]
)
def test_how_many_parts_a_message_has_is_bounded(item: bytes, most: int) -> None:
    assert not codec.is_crowded(b"[" + item * (most - 1) + b"0]")
    assert codec.is_crowded(b"[" + item * (most + 1) + b"0]")
    with pytest.raises(codec.NotPortable, match="has more than 500000 lists and dicts, or 2000000 items"):
        codec.uncrowded(b"[" + item * (most + 1) + b"0]")


@pytest.mark.parametrize("text", ["[{,", '"[,', "\\[,", '\\"[,'])
def test_texts_are_not_counted_as_parts(text: str) -> None:
    assert not codec.is_crowded(codec.dumps([text * codec.MAX_ITEMS]))
    assert codec.is_crowded(codec.dumps([text]) + b"[]," * codec.MAX_CONTAINERS)


def test_a_lying_class_is_seen_through() -> None:
    class Liar:
        __class__ = dict  # type: ignore[assignment]

    with pytest.raises(ValueNotPortable):
        to_wire(Liar())


def test_decimal_and_uuid_keep_their_type() -> None:
    assert copied(decimal.Decimal("1.10")) == decimal.Decimal("1.10")
    assert str(copied(decimal.Decimal("1.10"))) == "1.10"
    u = uuid.uuid4()
    assert copied(u) == u
