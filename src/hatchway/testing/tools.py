"""Fake tools for tests and examples: plain functions that succeed, wait, fail and keep a log of their effects."""

from __future__ import annotations

import asyncio
from typing import Any


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def echo(value: Any) -> Any:
    """Give the value back."""
    return value


async def slow(seconds: float, value: Any = None) -> Any:
    """Give the value back after a while."""
    await asyncio.sleep(seconds)
    return value


def fail(message: str = "the tool failed") -> None:
    """Raise ValueError with this message."""
    raise ValueError(message)


class Counter:
    """A tool with a side effect, and the log that tells how often it happened.

    Offer its method: `tools=[counter.increment]`.
    """

    def __init__(self) -> None:
        self.effects: list[int] = []
        """Every amount that was added, in order: an effect done twice is here twice."""

    @property
    def total(self) -> int:
        """The sum of all effects."""
        return sum(self.effects)

    def increment(self, amount: int = 1) -> int:
        """Add to the counter and give its new total."""
        self.effects.append(amount)
        return self.total
