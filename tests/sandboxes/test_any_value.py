"""Whatever value hypothesis thinks of crosses every sandbox's wall unchanged, in both directions."""

from __future__ import annotations

import asyncio
import datetime as dt
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hatchway.core.sandbox import CodeSandbox
from hatchway.sandboxes.registry import ROWS, availability, make_sandbox
from hatchway.testing.conformance.drive import run
from hatchway.testing.conformance.expect import equal

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
offsets = st.integers(-23 * 60, 23 * 60).map(lambda minutes: dt.timezone(dt.timedelta(minutes=minutes)))
hashable = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | text
    | st.binary(max_size=20)
    | st.dates()
    | st.datetimes(timezones=st.none() | offsets)
    | st.times()
    | st.timedeltas()
    | st.decimals(allow_nan=False)
)
values = st.recursive(
    hashable,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(hashable, inner, max_size=4)
        | st.sets(hashable, max_size=4)
    ),
    max_leaves=12,
)


async def crossed(sandbox: CodeSandbox, value: Any) -> None:
    sent: list[Any] = []
    tools = {"fetch": lambda: value, "send": sent.append}
    result = await run(sandbox, "send(value)\nsend(fetch())\nvalue", tools, inputs={"value": value})
    equal("input as argument, result as argument, input as output", [*sent, result.output], [value] * 3)


@pytest.mark.parametrize("name", ROWS)
def test_any_value_crosses_unchanged(name: str) -> None:
    if (found := availability(name)).state != "usable":
        pytest.skip(found.reason)
    sandbox = make_sandbox(name)

    with asyncio.Runner() as runner:

        @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None)
        @given(values)
        def crosses(value: Any) -> None:
            runner.run(crossed(sandbox, value))

        try:
            crosses()
        finally:
            runner.run(sandbox.aclose())
