"""Reading JSON somebody else wrote: a field of another type than expected counts as missing."""

from __future__ import annotations

from typing import Any, cast

from hatchway.hosted.code import Item


def text_of(item: Item, name: str) -> str:
    """A text field; empty where there is none."""
    value = item.get(name)
    return value if isinstance(value, str) else ""


def number_of(item: Item, name: str) -> int | None:
    """A whole number; None where there is none."""
    value = item.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def item_of(item: Item, name: str) -> Item:
    """An object; empty where there is none."""
    return as_item(item.get(name))


def items_of(item: Item, name: str) -> list[Item]:
    """The objects of a list; empty where there is none."""
    value = item.get(name)
    every = cast("list[object]", value) if isinstance(value, list) else []
    return [found for each in every if (found := as_item(each))]


def as_item(value: object) -> Item:
    """An object; empty where it is none."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
