"""What values have in common on both ways through Monty's wall."""

from __future__ import annotations

from typing import Any, cast

from hatchway.core.codec import NotPortable

SMALL = 8
"""Bytes counted for a number, a date, a bracket."""
_SHORT, _LARGE = 200, 1 << 64
_IMMUTABLE = frozenset({bool, type(None), float})
_SUSPECT_ENDS = frozenset({">", ")", "]", "}"})
"""How the text ends that stands for an object or a cycle."""


class TooLarge(Exception):
    """A value takes more than `Limits.value_bytes`."""


def is_simple(value: Any) -> bool:
    """Whether a value needs no look: a number or a short plain text that is nobody's repr."""
    kind = cast("type[Any]", type(value))
    if kind is str:
        return len(value) < _SHORT and value.isascii() and value[-1:] not in _SUSPECT_ENDS
    return (kind is int and -_LARGE < value < _LARGE) or kind in _IMMUTABLE


def as_set(kind: type[Any], items: list[Any]) -> set[Any] | frozenset[Any]:
    """A set or frozenset of the items, if they can be in one."""
    return set(hashable(items)) if kind is set else frozenset(hashable(items))


def hashable(items: list[Any]) -> list[Any]:
    """The items, if each can be in a set or a key of a dict.

    Raises:
        NotPortable: One has become what cannot.
    """
    for index, item in enumerate(items):
        try:
            hash(item)
        except TypeError:
            error = NotPortable(f"is a {type(item).__name__} inside a set or as a key, where it cannot be")
            error.keys.append(str(index))
            raise error from None
    return items


def shown(key: Any) -> str:
    """A key as a path shows it."""
    return repr(key) if type(key) in (str, int, float, bool, type(None)) else f"<key of type {type(key).__name__}>"
