"""Values on their way into Monty and out of it: copied, turned into builtins, or refused with their path."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, cast
from uuid import UUID

import pydantic_monty as pm

from hatchway.core import codec
from hatchway.core.codec import NotPortable
from hatchway.core.errors import ValueNotPortable
from hatchway.core.values import not_portable
from hatchway.sandboxes.monty.source import not_awaited

_PLAIN = frozenset({bool, type(None), float, dt.date, dt.timedelta, Decimal})
_IMMUTABLE = frozenset({bool, type(None), float})
_SHORT, _LARGE = 200, 1 << 64
_SUSPECT_ENDS = frozenset({">", ")", "]", "}"})
"""How the text ends that stands for an object or a cycle."""
_PLAIN_ZONES = frozenset({type(None), dt.timezone})
_SMALL = 8
"""Bytes counted for a number, a date, a bracket."""
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


class TooLarge(Exception):
    """A value takes more than `Limits.value_bytes`."""


def into_guest(value: Any, *, root: str, limit: int) -> Any:
    """A copy in types Monty takes: dataclasses, models and enums as builtins, a UUID as text.

    Raises:
        ValueNotPortable: It, or a part of it, cannot cross or is too large; the message names the path from `root`.
    """
    if _is_simple(value):
        return value
    try:
        return _Inward(limit).copy(value, 0)
    except NotPortable as e:
        raise not_portable(e, root) from None
    except TooLarge:
        raise ValueNotPortable(f"{root} takes more than {limit} bytes (Limits.value_bytes)", path=root) from None


class _Inward:
    def __init__(self, limit: int) -> None:
        self._left = limit

    def copy(self, value: Any, depth: int) -> Any:
        kind = cast("type[Any]", type(value))
        if kind is str:
            return self._text(value)
        if kind is int:
            return self._count(_SMALL + value.bit_length() // 8, value)
        if kind in _PLAIN:
            return self._count(_SMALL, value)
        if depth > codec.MAX_DEPTH:
            raise NotPortable(f"is nested deeper than {codec.MAX_DEPTH} levels, or contains itself")
        if kind is list or kind is tuple:
            items = self._items(value, depth)
            return items if kind is list else tuple(items)
        if kind is dict:
            return self._dict(value, depth)
        return self._other(value, kind, depth)

    def _other(self, value: Any, kind: type[Any], depth: int) -> Any:
        if kind is bytes:
            return self._count(len(value), value)
        if kind is set or kind is frozenset:
            return _set(kind, self._items(value, depth))
        if (kind is dt.datetime or kind is dt.time) and type(value.tzinfo) in _PLAIN_ZONES:
            if (offset := value.utcoffset()) is not None and offset.microseconds:
                raise NotPortable("is in a time zone whose offset is no whole number of seconds")
            return self._count(_SMALL, value)
        if issubclass(kind, UUID):
            return self._text(str(value))
        return self.copy(codec.unpack(codec.pack(value, depth)), depth + 1)  # the codec knows every other kind

    def _text(self, value: str) -> str:
        if value.isascii():
            return self._count(len(value), value)
        try:
            return self._count(len(value.encode()), value)
        except UnicodeEncodeError:
            raise NotPortable("holds a lone surrogate, which is not text here: remove or escape it") from None

    def _items(self, items: Iterable[Any], depth: int) -> list[Any]:
        self._count(_SMALL, None)
        copies: list[Any] = []
        try:
            for item in items:
                copies.append(self.copy(item, depth + 1))
        except NotPortable as e:
            e.keys.append(str(len(copies)))
            raise
        return copies

    def _dict(self, value: dict[Any, Any], depth: int) -> dict[Any, Any]:
        self._count(_SMALL, None)
        copies: dict[Any, Any] = {}
        key = None
        try:
            for key, item in value.items():
                copies[_hashable([self.copy(key, depth + 1)])[0]] = self.copy(item, depth + 1)
        except NotPortable as e:
            e.keys.append(_shown(key))
            raise
        return copies

    def _count(self, size: int, value: Any) -> Any:
        self._left -= size
        if self._left < 0:
            raise TooLarge
        return value


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
    if _is_simple(value):
        return value
    return _Outward(limit, tool_of).copy(value, 0)[0]


def arguments_from_guest(values: tuple[Any, ...], *, limit: int, tool_of: Callable[[int], str | None]) -> Any:
    """As `from_guest`, quickly for the arguments most calls have."""
    for value in values:
        if not _is_simple(value):
            return from_guest(values, limit=limit, tool_of=tool_of)
    return values


def _is_simple(value: Any) -> bool:
    """Whether a value needs no look: a number or a short plain text that is nobody's repr."""
    kind = cast("type[Any]", type(value))
    if kind is str:
        return len(value) < _SHORT and value.isascii() and value[-1:] not in _SUSPECT_ENDS
    return (kind is int and -_LARGE < value < _LARGE) or kind in _IMMUTABLE


class _Outward:
    def __init__(self, limit: int, tool_of: Callable[[int], str | None]) -> None:
        self._limit = limit
        self._tool_of = tool_of
        self._done: dict[int, tuple[Any, int]] = {}

    def copy(self, value: Any, depth: int) -> tuple[Any, int]:
        """The copy and its size. Sizes are added up, not walked: `x = [x, x]` 64 times has 2**64 parts."""
        kind = cast("type[Any]", type(value))
        if kind is str:
            return self._checked(self._text(value, depth))
        if kind is int:
            return self._checked((value, _SMALL + value.bit_length() // 8))
        if kind in _PLAIN or kind is dt.datetime or kind is dt.time:
            return value, _SMALL
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
            return _set(kind, items), size
        if kind is pm.MontyClassProxy and value.is_dataclass:
            return self._dict(value.attributes, depth)
        raise NotPortable(f"is {_described(value, kind)}, which cannot cross the wall: {_ADVICE}")

    def _items(self, items: Iterable[Any], depth: int) -> tuple[list[Any], int]:
        copies: list[Any] = []
        total = _SMALL
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
        total, key = _SMALL, None
        try:
            for key, item in value.items():
                copied_key, key_size = self.copy(key, depth + 1)
                copies[_hashable([copied_key])[0]], size = self.copy(item, depth + 1)
                total += key_size + size
        except NotPortable as e:
            e.keys.append(_shown(key))
            raise
        return copies, total

    def _text(self, value: str, depth: int) -> tuple[str, int]:
        if value[-1:] in (">", ")") and (found := _REPR.fullmatch(value)):
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


def _set(kind: type[Any], items: list[Any]) -> set[Any] | frozenset[Any]:
    return set(_hashable(items)) if kind is set else frozenset(_hashable(items))


def _hashable(items: list[Any]) -> list[Any]:
    for index, item in enumerate(items):
        try:
            hash(item)
        except TypeError:
            error = NotPortable(f"is a {type(item).__name__} inside a set or as a key, where it cannot be")
            error.keys.append(str(index))
            raise error from None
    return items


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


def _shown(key: Any) -> str:
    return repr(key) if type(key) in (str, int, float, bool, type(None)) else f"<key of type {type(key).__name__}>"
