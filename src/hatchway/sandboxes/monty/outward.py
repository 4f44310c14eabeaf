"""Values on their way out of Monty: what is data is copied, everything else refused."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, cast

import pydantic_monty as pm

from hatchway.core import codec
from hatchway.core.codec import NotPortable
from hatchway.sandboxes.monty.source import not_awaited
from hatchway.sandboxes.monty.values import SMALL, TooLarge, as_set, hashable, is_simple, shown

_PLAIN = frozenset({bool, type(None), float, dt.date, dt.datetime, dt.time, dt.timedelta, Decimal})
_ADVICE = "use plain data (str(), int(), list(), dict() make it)"
_REPR = re.compile(
    r"<(?P<object>function .+ at 0x[0-9a-f]+|module '.+'|bound method|coroutine object .+|gather\(\d+\)"
    r"|[\w.]+ object( at 0x[0-9a-f]+)?|re\.Match object; .+|\w+ _hashlib\.HASH object .+)>"
    r"|(?P<view>dict_(keys|values|items)\(.*\)|range\(-?\d+, -?\d+(, -?\d+)?\))",
    re.DOTALL,
)
"""What Monty sends, as text and without a word, in place of values it cannot send."""
_CYCLES = frozenset({"[...]", "{...}", "(...)"})
_FUTURE = re.compile(r"<coroutine external_future\((\d+)\)>")


def from_guest(value: Any, *, limit: int, tool_of: Callable[[int], str | None]) -> Any:
    """A copy in builtins of what Monty sent; shared parts stay shared, but count each time they appear.

    Args:
        value: As Monty gives it.
        limit: `Limits.value_bytes`.
        tool_of: The name of the async tool whose call, by its number, nobody has awaited yet.

    Raises:
        NotPortable: It, or a part of it, is no data.
        TooLarge: Written out it takes more than the limit.
    """
    if is_simple(value):
        return value
    return _Outward(limit, tool_of).copy(value, 0)[0]


def arguments_from_guest(values: tuple[Any, ...], *, limit: int, tool_of: Callable[[int], str | None]) -> Any:
    """As `from_guest`, quickly for the arguments most calls have."""
    for value in values:
        if not is_simple(value):
            return from_guest(values, limit=limit, tool_of=tool_of)
    return values


class _Outward:
    def __init__(self, limit: int, tool_of: Callable[[int], str | None]) -> None:
        self._limit = limit
        self._tool_of = tool_of
        self._done: dict[int, tuple[Any, int]] = {}
        self._made: list[Any] = []  # made on the way, and kept so that no id in `_done` is given to another object

    def copy(self, value: Any, depth: int) -> tuple[Any, int]:
        """The copy and its size. Sizes are added up, not walked: `x = [x, x]` 64 times has 2**64 parts."""
        kind = cast("type[Any]", type(value))
        if kind is str:
            return self._checked(self._text(value, depth))
        if kind is int:
            return self._checked((value, SMALL + value.bit_length() // 8))
        if kind in _PLAIN:
            return value, SMALL
        if kind is bytes:
            return self._checked((value, len(value)))
        if (done := self._done.get(id(value))) is not None:
            return done
        if depth > codec.MAX_DEPTH:
            raise NotPortable(f"is nested deeper than {codec.MAX_DEPTH} levels")
        copied = self._done[id(value)] = self._checked(self._container(value, kind, depth))
        return copied

    def _container(self, value: Any, kind: type[Any], depth: int) -> tuple[Any, int]:
        if kind is dict:
            return self._dict(value, depth)
        if kind is list:
            return self._items(value, depth)
        if issubclass(kind, tuple):  # also the code's named tuples
            items, size = self._items(value, depth)
            return tuple(items), size
        if kind is set or kind is frozenset:
            items, size = self._items(value, depth)
            return as_set(kind, items), size
        if kind is pm.MontyClassProxy and value.is_dataclass:
            self._made.append(attributes := value.attributes)
            return self._dict(attributes, depth)
        raise NotPortable(f"is {_described(value, kind)}, which cannot cross the wall: {_ADVICE}")

    def _items(self, items: Iterable[Any], depth: int) -> tuple[list[Any], int]:
        copies: list[Any] = []
        total = SMALL
        try:
            for item in items:
                copied, size = self.copy(item, depth + 1)
                copies.append(copied)
                total += size
        except NotPortable as e:
            e.keys.append(str(len(copies)))
            raise
        return copies, total

    def _dict(self, value: dict[Any, Any], depth: int) -> tuple[dict[Any, Any], int]:
        copies: dict[Any, Any] = {}
        total, key = SMALL, None
        try:
            for key, item in value.items():
                copied_key, key_size = self.copy(key, depth + 1)
                copies[hashable([copied_key])[0]], size = self.copy(item, depth + 1)
                total += key_size + size
        except NotPortable as e:
            e.keys.append(shown(key))
            raise
        return copies, total

    def _text(self, value: str, depth: int) -> tuple[str, int]:
        if value[-1:] in (">", ")") and (found := _REPR.fullmatch(value)):
            if found["object"] and found["object"].startswith("coroutine "):
                raise NotPortable("is a coroutine that was not awaited: write await before it")
            what = (
                f"the view or range {value:.60}" if found["view"] else f"a {found['object'].split()[0]} ({value:.60})"
            )
            raise NotPortable(f"is {what}, which cannot cross the wall: {_ADVICE}")
        if depth and value in _CYCLES:
            raise NotPortable("contains itself")
        if future := _FUTURE.fullmatch(value):
            tool = self._tool_of(int(future[1]))
            raise NotPortable(
                f"is a call that was not awaited: {not_awaited(tool) if tool else 'write await before it'}"
            )
        return value, len(value) if value.isascii() else len(value.encode("utf-8", "replace"))

    def _checked(self, copied: tuple[Any, int]) -> tuple[Any, int]:
        if copied[1] > self._limit:
            raise TooLarge
        return copied


def _described(value: Any, kind: type[Any]) -> str:
    if kind is pm.MontyClassProxy:
        return f"an object of the class {value.name}"
    if kind is pm.MontyStdTypeProxy:
        return f"the builtin {value.name}"
    if issubclass(kind, type):
        return f"the class {value.__name__}"
    if issubclass(kind, BaseException):
        return f"the exception {kind.__name__}"
    return f"of the type {kind.__name__}"
