"""The walk over a schema: subschemas, references, and typed access to keywords."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast
from urllib.parse import unquote

from hatchway.core.errors import InvalidTool
from hatchway.tools.problems import Problem

Check = Callable[[Any], list[Problem]]
"""Gives the problems of a value; none when it fits."""


def fits(value: Any) -> list[Problem]:
    """The check that accepts everything."""
    return []


def refuses(value: Any) -> list[Problem]:
    """The check that accepts nothing."""
    return [Problem(says="must be left out")]


def resolve(root: Any, reference: str) -> Any:
    """What a reference such as `#/$defs/City` points at inside `root`; LookupError when that is nothing."""
    if reference != "#" and not reference.startswith("#/"):
        raise LookupError(reference)
    found = root
    for part in reference.split("/")[1:]:
        key = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and key.isdecimal() and len(key) < 8:
            found = cast(list[Any], found)[int(key)]
        elif isinstance(found, dict):
            found = cast(dict[str, Any], found)[key]
        else:
            raise LookupError(reference)
    return found


@dataclass(slots=True, kw_only=True)
class Compiler:
    """One schema on its way to a check."""

    root: Any
    """The whole schema: references start here."""
    python: bool
    """Values are Python's, not those of JSON text."""
    keywords: Sequence[Callable[[Node], Check | None]]
    """What makes a check of each group of keywords; None where the group is absent."""
    references: dict[str, Check | None] = field(default_factory=dict[str, "Check | None"])
    """Compiled targets; None while a target is being compiled."""
    memory: Memory = field(default_factory=lambda: Memory())
    """Keeps the work polynomial where references multiply it."""

    def check(self, schema: Any, where: str = "#", entered: frozenset[str] = frozenset()) -> Check:
        """The check for one subschema. `entered` are the references followed without going into the value."""
        if isinstance(schema, bool):
            return fits if schema else refuses
        if not isinstance(schema, dict):
            raise InvalidTool(f"the schema at {where} must be an object or a boolean, it is {_named(schema)}")
        node = Node(compiler=self, schema=cast(dict[str, Any], schema), where=where, entered=entered)
        return first_of([check for build in self.keywords if (check := build(node)) is not None])

    def reference(self, reference: str, entered: frozenset[str]) -> Check:
        """The check for the target of a `$ref`, compiled once."""
        if reference in entered:
            raise InvalidTool(f"the schema's $ref {reference!r} leads back to itself")
        if reference not in self.references:
            self.references[reference] = None
            self.references[reference] = self.check(self._target(reference), reference, entered | {reference})
        return partial(self._referred, reference)

    def whole(self) -> Check:
        """The check for the whole schema."""
        check = self.check(self.root)
        return partial(self.memory.fresh, check) if self.references else check

    def _referred(self, reference: str, value: Any) -> list[Problem]:
        known, key = self.memory.found, (reference, id(value))
        if key not in known:
            known[key] = cast(Check, self.references[reference])(value)
        return known[key]

    def _target(self, reference: str) -> Any:
        try:
            return resolve(self.root, reference)
        except LookupError:
            raise InvalidTool(f"the schema's $ref {reference!r} leads nowhere inside the schema") from None


class Memory(threading.local):
    """What is known of the parts of one value while it is checked.

    A schema that refers twice to the next, n times over, or to itself in two alternatives, would take 2ⁿ checks.
    """

    def __init__(self) -> None:
        self.found: dict[tuple[str, int], list[Problem]] = {}

    def fresh(self, check: Check, value: Any) -> list[Problem]:
        """The problems of a value; nothing is kept beyond it, since ids are only unique while it lives."""
        self.found = {}
        try:
            return check(value)
        finally:
            self.found = {}


def first_of(checks: list[Check]) -> Check:
    """One check of several: the problems of the first that has any."""
    if len(checks) <= 1:
        return checks[0] if checks else fits

    def run(value: Any) -> list[Problem]:
        for check in checks:
            if problems := check(value):
                return problems
        return []

    return run


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One subschema being compiled. Every accessor raises InvalidTool for a keyword of the wrong type."""

    compiler: Compiler
    schema: dict[str, Any]
    where: str
    """Its place in the whole, as a reference."""
    entered: frozenset[str]

    def get(self, keyword: str, kind: type | tuple[type, ...], expected: str) -> Any:
        """The keyword's value, None when absent."""
        value = self.schema.get(keyword)
        if keyword in self.schema and (not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)):
            raise InvalidTool(f"the schema's {keyword!r} at {self.where} must be {expected}, it is {_named(value)}")
        return value

    def number(self, keyword: str) -> Any:
        """A keyword that holds a number."""
        return self.get(keyword, (int, float), "a number")

    def count(self, keyword: str) -> int | None:
        """A keyword that holds a number of things."""
        value = self.number(keyword)
        if value is not None and not (0 <= value < float("inf") and value == int(value)):
            raise InvalidTool(f"the schema's {keyword!r} at {self.where} must be a whole number ≥ 0, it is {value}")
        return None if value is None else int(value)

    def names(self, keyword: str) -> list[str]:
        """A keyword that holds a list of property names."""
        value: list[Any] = self.get(keyword, list, "a list of names") or []
        if not all(isinstance(name, str) for name in value):
            raise InvalidTool(f"the schema's {keyword!r} at {self.where} must be a list of names")
        return value

    def inner(self, *keys: str | int) -> Check | None:
        """The check of a subschema that applies to a part of the value; None when absent."""
        return self._sub(keys, frozenset()) if keys[0] in self.schema else None

    def same(self, *keys: str | int) -> Check | None:
        """The check of a subschema that applies to the value itself; None when absent."""
        return self._sub(keys, self.entered) if keys[0] in self.schema else None

    def alternatives(self, keyword: str) -> list[Check]:
        """The checks of a keyword that lists subschemas for the value itself."""
        listed: list[Any] | None = self.get(keyword, list, "a list of schemas")
        if listed is not None and not listed:
            raise InvalidTool(f"the schema's {keyword!r} at {self.where} must not be empty")
        return [self._sub((keyword, index), self.entered) for index in range(len(listed or ()))]

    def listed(self, keyword: str) -> list[Check]:
        """The checks of a keyword that lists subschemas for the value's items."""
        schemas: list[Any] = self.get(keyword, list, "a list of schemas") or []
        return [self._sub((keyword, index), frozenset()) for index in range(len(schemas))]

    def members(self, keyword: str) -> dict[str, Check]:
        """The checks of a keyword that maps names to subschemas for the value's parts."""
        named: dict[str, Any] = self.get(keyword, dict, "an object of schemas") or {}
        return {name: self._sub((keyword, name), frozenset()) for name in named}

    def invalid(self, keyword: str, reason: str) -> InvalidTool:
        """The error for a keyword whose value makes no sense."""
        return InvalidTool(f"the schema's {keyword!r} at {self.where} {reason}")

    def _sub(self, keys: tuple[str | int, ...], entered: frozenset[str]) -> Check:
        schema: Any = self.schema
        for key in keys:
            schema = schema[key]
        return self.compiler.check(schema, "/".join((self.where, *map(str, keys))), entered)


def _named(value: Any) -> str:
    return f"{type(value).__name__} {value!r:.60}"
