"""Values on their way into Monty: copied, turned into types it takes, or refused with their path."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, cast
from uuid import UUID

from hatchway.core import codec
from hatchway.core.codec import NotPortable
from hatchway.core.errors import ValueNotPortable
from hatchway.core.values import not_portable
from hatchway.sandboxes.monty.values import SMALL, TooLarge, as_set, hashable, is_simple, shown

_PLAIN = frozenset({bool, type(None), float, dt.date, dt.timedelta, Decimal})
_PLAIN_ZONES = frozenset({type(None), dt.timezone})


def into_guest(value: Any, *, root: str, limit: int) -> Any:
    """A copy in types Monty takes: dataclasses, models and enums as builtins, a UUID as text.

    Raises:
        ValueNotPortable: It, or a part of it, cannot cross or is too large; the message names the path from `root`.
    """
    if is_simple(value):
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
            return self._count(SMALL + value.bit_length() // 8, value)
        if kind in _PLAIN:
            return self._count(SMALL, value)
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
            return as_set(kind, self._items(value, depth))
        if (kind is dt.datetime or kind is dt.time) and type(value.tzinfo) in _PLAIN_ZONES:
            if (offset := value.utcoffset()) is not None and offset.microseconds:
                raise NotPortable("is in a time zone whose offset is no whole number of seconds")
            return self._count(SMALL, value)
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
        self._count(SMALL, None)
        copies: list[Any] = []
        try:
            for item in items:
                copies.append(self.copy(item, depth + 1))
        except NotPortable as e:
            e.keys.append(str(len(copies)))
            raise
        return copies

    def _dict(self, value: dict[Any, Any], depth: int) -> dict[Any, Any]:
        self._count(SMALL, None)
        copies: dict[Any, Any] = {}
        key = None
        try:
            for key, item in value.items():
                copies[hashable([self.copy(key, depth + 1)])[0]] = self.copy(item, depth + 1)
        except NotPortable as e:
            e.keys.append(shown(key))
            raise
        return copies

    def _count(self, size: int, value: Any) -> Any:
        self._left -= size
        if self._left < 0:
            raise TooLarge
        return value
