"""Frozen values that are made often: their fields are filled at once."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, TypeVar

T = TypeVar("T")


def filled_at_once(cls: type[T]) -> type[T]:
    """Give a frozen dataclass an `__init__` that fills `__dict__` directly.

    Three events tell of every call, and the setter a frozen class goes through for each field is half their cost.
    """
    before, after, lines = ["self"], ["*"], list[str]()
    names: dict[str, Any] = {}
    for each in fields(cls):  # pyright: ignore[reportArgumentType]  # only dataclasses come here
        names[f"_{each.name}"] = each.default_factory if each.default is MISSING else each.default
        is_made = each.default_factory is not MISSING
        is_required = each.default is MISSING and not is_made
        (after if each.kw_only else before).append(each.name if is_required else f"{each.name}=_{each.name}")
        value = f"_{each.name}() if {each.name} is _{each.name} else {each.name}" if is_made else each.name
        lines.append(f"    filled[{each.name!r}] = {value}")
    head = ", ".join([*before, *(after if len(after) > 1 else ())])
    exec(f"def __init__({head}):\n    filled = self.__dict__\n" + "\n".join(lines), names)  # names of our own fields
    cls.__init__ = names["__init__"]
    return cls
