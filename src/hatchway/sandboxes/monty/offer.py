"""The functions offered to an action: their names and namespaces inside Monty, and which call is for which."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

import pydantic_monty as pm


class Namespace:
    """What a namespace is to Monty: an object of which nothing is known but its id."""


class Offer:
    """What the code may call.

    A plain name needs no binding: Monty stops at an unknown name and asks. Namespaces are bound before the code
    starts, and so are tools that have the name of a builtin, which Monty would find first.

    Args:
        styles: Each name, and whether it is called with `await`.
    """

    def __init__(self, styles: Mapping[str, bool]) -> None:
        self.styles = dict(styles)
        self._spaces = {_space_id(path): path for path in _paths(styles)}

    def bindings(self) -> dict[str, Any]:
        """The global names to bind before the code starts."""
        hidden = {name: _reference(name) for name in self.styles if hasattr(builtins, name)}
        return hidden | {path: _space(path) for path in self._spaces.values() if "." not in path}

    def name_of(self, stop: pm.FunctionSnapshot) -> str:
        """The full name of what the code called, such as `server.tool`."""
        return str(stop.function_name) if (space := stop.object_id) is None else self._member(space, stop.function_name)

    def value_of(self, stop: pm.NameLookupSnapshot) -> Any:
        """What a name the code reads stands for: a tool to pass around, a namespace, or None."""
        name = stop.variable_name if (space := stop.object_id) is None else self._member(space, stop.variable_name)
        if name in self.styles:
            return _reference(name)
        return _space(name) if _space_id(name) in self._spaces else None

    def unknown(self, name: str) -> pm.ExternalSettledResult:
        """The error a call of this name raises inside the code."""
        space, _, member = name.rpartition(".")
        close = get_close_matches(name, self.styles, n=3)
        meant = f"; did you mean {' or '.join(close)}?" if close else ""
        if not space:
            return {"exc_type": "NameError", "message": f"name {name!r} is not defined{meant}"}
        return {"exc_type": "AttributeError", "message": f"{space} has no tool {member!r}{meant}"}

    def _member(self, space: UUID, name: str) -> str:
        return f"{self._spaces.get(space, '?')}.{name}"


def _paths(names: Iterable[str]) -> set[str]:
    return {".".join(parts[:n]) for parts in (name.split(".") for name in names) for n in range(1, len(parts))}


@cache
def _space_id(path: str) -> UUID:
    """The same in every process, so that a restored execution still finds its namespaces."""
    return uuid5(NAMESPACE_URL, f"hatchway:namespace:{path}")


@cache
def _space(path: str) -> pm.ClassInstance:
    """One object per id: Monty refuses a second one under the same."""
    return pm.ClassInstance(Namespace(), id=_space_id(path))


def _reference(name: str) -> Any:
    def tool(*_args: Any, **_kwargs: Any) -> None:
        """Never called: Monty takes the name, and a call of it is a stop like any other."""

    tool.__name__ = name
    return tool
