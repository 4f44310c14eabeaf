"""What the demo's code may call: a slow async tool that can fail, one that asks first, one that a rule denies."""

from __future__ import annotations

import asyncio
from difflib import get_close_matches
from typing import TypedDict

from hatchway.gate.rules import Rule
from hatchway.tools.functions import tool


class Forecast(TypedDict):
    """Saturday's weather in one city."""

    city: str
    celsius: int
    rain: bool


_WEATHER = {"Oslo": (9, True), "Lisbon": (24, False), "Kyoto": (21, True), "Quito": (18, False)}
_SERVICE_SECONDS = 0.4


@tool
async def forecast(city: str) -> Forecast:
    """Saturday's weather in a city."""
    await asyncio.sleep(_SERVICE_SECONDS)
    if city not in _WEATHER:
        close = get_close_matches(city, _WEATHER, n=1, cutoff=0.5)
        raise LookupError(f"no weather for {city!r}" + (f", did you mean {close[0]}?" if close else ""))
    celsius, rain = _WEATHER[city]
    return {"city": city, "celsius": celsius, "rain": rain}


@tool(approval="ask")
def book_table(city: str, seats: int, note: str = "") -> str:
    """Book a picnic table. It cannot be unbooked, so it asks first."""
    return f"booked: {seats} seats in {city} on Saturday"


@tool
def pay_deposit(euros: int) -> str:
    """Pay a deposit for the table."""
    return f"paid {euros} euros"


TOOLS = [forecast, book_table, pay_deposit]
RULES = [Rule("deny", "pay_*", reason="money stays with people")]
