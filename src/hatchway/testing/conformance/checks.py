"""A check: one named sentence of the contract, as a function that a sandbox passes or fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from hatchway.core.constraints import CodeConstraints
from hatchway.core.sandbox import CodeSandbox

CheckFunction = Callable[[CodeSandbox], Awaitable[None]]
"""Raises AssertionError when the sandbox breaks the contract."""

FULL_LIBRARY = "the whole standard library"
"""A need: `CodeConstraints.modules` is None, hence real CPython."""


class NotOffered(Exception):
    """Raised inside a check: this sandbox does not offer what the check is about, and need not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One sentence of the contract that can be tried on a sandbox."""

    id: str
    """`topic.name`; stays the same over versions."""
    description: str
    """What a sandbox that passes does, in one line."""
    function: CheckFunction
    """Tries it; raises AssertionError or `NotOffered`."""
    needs: tuple[str, ...] = ()
    """Flags of `CodeConstraints`, `"import NAME"`, or `FULL_LIBRARY`: without one of them the check is skipped."""
    fresh: bool = False
    """True: the check closes its sandbox, so it gets one of its own."""
    seconds: float = 20.0
    """Time limit: a sandbox that hangs fails the check, not the suite."""

    @property
    def topic(self) -> str:
        """The group it belongs to: the first part of its id."""
        return self.id.partition(".")[0]

    def unmet(self, constraints: CodeConstraints) -> str:
        """Why a sandbox of these constraints skips this check; empty when it does not."""
        missing = [need for need in self.needs if not _met(need, constraints)]
        return f"the sandbox does not claim {', '.join(missing)}" if missing else ""


def _met(need: str, constraints: CodeConstraints) -> bool:
    if need == FULL_LIBRARY:
        return constraints.modules is None
    if need.startswith("import "):
        return constraints.modules is None or need.removeprefix("import ") in constraints.modules
    return bool(getattr(constraints, need))


_registered: dict[str, Check] = {}


def check(
    description: str, *, name: str = "", needs: tuple[str, ...] = (), fresh: bool = False, seconds: float = 20.0
) -> Callable[[CheckFunction], CheckFunction]:
    """Register a function `check_NAME` of a topic's module as the check `topic.NAME`."""

    def register(function: CheckFunction) -> CheckFunction:
        topic = function.__module__.rpartition(".")[2]
        own_name = name or function.__name__.removeprefix("check_")
        made = Check(
            id=f"{topic}.{own_name}",
            description=description,
            function=function,
            needs=needs,
            fresh=fresh,
            seconds=seconds,
        )
        if made.id in _registered:
            raise ValueError(f"two checks are named {made.id}")
        _registered[made.id] = made
        return function

    return register


def registered() -> tuple[Check, ...]:
    """Every check of the modules imported so far, in the order they were read."""
    return tuple(_registered.values())
