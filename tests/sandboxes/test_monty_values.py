"""Values across Monty's wall, by the thousand: what goes in comes out equal, or is refused."""

from __future__ import annotations

import asyncio
import datetime as dt
import enum
from collections import OrderedDict, namedtuple
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hatchway.core.errors import ValueNotPortable
from hatchway.sandboxes.monty import MontySandbox
from hatchway.testing.conformance.drive import run
from hatchway.testing.conformance.expect import same

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(10**400), max_value=10**400)
    | st.floats()
    | st.text()
    | st.binary()
    | st.dates()
    | st.datetimes(timezones=st.none() | st.just(dt.UTC) | st.just(dt.timezone(dt.timedelta(hours=5, minutes=30))))
    | st.times()
    | st.timedeltas()
    | st.decimals(allow_nan=False)
)
KEYS = st.integers() | st.text() | st.binary() | st.dates() | st.tuples(st.integers(), st.text())
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=5)
        | st.sets(KEYS, max_size=5)
        | st.frozensets(KEYS, max_size=5)
    ),
    max_leaves=20,
)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[MontySandbox]:
    sandbox = MontySandbox()
    yield sandbox
    asyncio.run(sandbox.aclose())


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=VALUES)
def test_any_value_crosses_equal_or_is_refused(sandbox: MontySandbox, value: Any) -> None:
    seen: list[Any] = []

    async def there_and_back() -> Any:
        return (await run(sandbox, "send(given)\nfetch()", tools, inputs={"given": value})).output

    tools = {"send": seen.append, "fetch": lambda: value}
    output = asyncio.run(there_and_back())
    assert same(output, value), f"{value!r} as result and output became {output!r}"
    assert same(seen[0], value), f"{value!r} as input and argument became {seen[0]!r}"


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


@dataclass
class Point:
    x: int
    inner: Any


class Text(str):
    pass


Pair = namedtuple("Pair", "a b")
ID = UUID("12345678-1234-5678-1234-567812345678")
SUMMER = dt.datetime(2024, 7, 1, 12, tzinfo=ZoneInfo("Europe/Berlin"))


@pytest.mark.parametrize(
    ("value", "arrives"),
    [
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        (Point(1, Point(2, {ID})), {"x": 1, "inner": {"x": 2, "inner": {str(ID)}}}),
        (Text("t"), "t"),
        (Pair(1, [2]), (1, [2])),
        (OrderedDict(a=1), {"a": 1}),
        (bytearray(b"ab"), b"ab"),
        (memoryview(b"ab"), b"ab"),
        (ID, str(ID)),
        ({ID: [ID]}, {str(ID): [str(ID)]}),
        (SUMMER, dt.datetime(2024, 7, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2)))),
        (dt.time(1, 2, tzinfo=dt.UTC), dt.time(1, 2, tzinfo=dt.UTC)),
        (Decimal("Infinity"), Decimal("Infinity")),
        (True, True),
    ],
)
def test_kinds_the_guest_does_not_have_arrive_as_builtins(sandbox: MontySandbox, value: Any, arrives: Any) -> None:
    async def there_and_back() -> Any:
        return (await run(sandbox, "[given, fetch()]", {"fetch": lambda: value}, inputs={"given": value})).output

    output = asyncio.run(there_and_back())
    assert same(output, [arrives, arrives]), output


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (1j, "inputs['v'] is complex"),
        ([{"a": lambda: 1}], "inputs['v'][0]['a'] is function"),
        ((1, {2: object()}), "inputs['v'][1][2] is object"),
        (Point(1, [print]), "inputs['v']['inner'][0] is builtin_function_or_method"),
        (range(3), "inputs['v'] is range"),
        (["x" * 1000, "\udcff"], "inputs['v'][1] holds a lone surrogate"),
        ({"\udcff": 1}, "inputs['v']['\\udcff'] holds a lone surrogate"),
        (dt.time(1, tzinfo=dt.timezone(dt.timedelta(microseconds=5))), "inputs['v'] is in a time zone whose offset"),
    ],
)
def test_what_cannot_cross_is_named_by_its_path(sandbox: MontySandbox, value: Any, told: str) -> None:
    with pytest.raises(ValueNotPortable) as refused:
        asyncio.run(run(sandbox, "v", inputs={"v": value}))
    assert str(refused.value).startswith(told)
