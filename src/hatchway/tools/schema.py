"""A JSON schema compiled into one function that tells what is wrong with a value, without coercing anything.

Understood: drafts 4 to 2020-12 with references inside the schema. Not enforced: `format`, `content*`,
`unevaluated*`, `$dynamicRef`. A reference out of the schema is refused: nothing is fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NoReturn, cast
from urllib.parse import unquote

from hatchway.core.errors import InvalidTool
from hatchway.tools.problems import Problem

Check = Callable[[Any], list[Problem]]
"""Gives the problems of a value; none when it fits."""


def compile_schema(schema: Any, *, python: bool = False) -> Check:
    """The check for a schema.

    Args:
        schema: The JSON schema: an object, or a boolean.
        python: Values are Python's: an integral float is no integer, keys of any type are left to whoever
            converts, and the formats pydantic writes (`date`, `binary`, `decimal` …) stand for Python types.

    Raises:
        InvalidTool: It is not a valid schema; the message says where.
    """
    try:
        return Compiler(root=schema, python=python).check(schema)
    except RecursionError:
        raise InvalidTool("the schema is nested too deeply") from None


def fits(value: Any) -> list[Problem]:
    """The check that accepts everything."""
    return []


def resolve(root: Any, reference: str) -> Any:
    """What a reference such as `#/$defs/City` points at; LookupError when that is nothing inside `root`."""
    if reference != "#" and not reference.startswith("#/"):
        raise LookupError(reference)
    found = root
    for part in reference[2:].split("/") if len(reference) > 1 else ():
        key = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(found, list):
            items = cast(list[Any], found)
            found = items[int(key)] if key.isdecimal() and int(key) < len(items) else _nothing(reference)
        else:
            found = cast(dict[str, Any], found)[key] if isinstance(found, dict) and key in found else _nothing(reference)
    return found


def _nothing(reference: str) -> NoReturn:
    raise LookupError(reference)


@dataclass(slots=True, kw_only=True)
class Compiler:
    """One schema on its way to a check."""

    root: Any
    python: bool
    references: dict[str, Check | None] = field(default_factory=dict[str, "Check | None"])
    """Compiled targets; None while a target is being compiled."""

    def check(self, schema: Any, where: str = "#", entered: frozenset[str] = frozenset()) -> Check:
        """The check for one subschema. `entered` are the references followed without going into the value."""
        if schema is True:
            return fits
        if schema is False:
            return _refuse
        if not isinstance(schema, dict):
            raise InvalidTool(f"the schema at {where} must be an object or a boolean, it is {_named(schema)}")
        from hatchway.tools.keywords import KEYWORDS  # the table needs this class

        node = Node(compiler=self, schema=cast(dict[str, Any], schema), where=where, entered=entered)
        built = [build(node) for build in KEYWORDS]
        return _all([check for check in built if check is not None])

    def reference(self, reference: str, entered: frozenset[str]) -> Check:
        """The check for the target of a `$ref`, compiled once."""
        if reference in entered:
            raise InvalidTool(f"the schema's $ref {reference!r} leads back to itself")
        if reference not in self.references:
            self.references[reference] = None
            self.references[reference] = self.check(self._target(reference), reference, entered | {reference})
        return self.references[reference] or (lambda value: cast(Check, self.references[reference])(value))

    def _target(self, reference: str) -> Any:
        try:
            return resolve(self.root, reference)
        except LookupError:
            raise InvalidTool(f"the schema's $ref {reference!r} leads nowhere inside the schema") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One subschema being compiled, with typed access to its keywords."""

    compiler: Compiler
    schema: dict[str, Any]
    where: str
    entered: frozenset[str]

    def get(self, keyword: str, kind: type | tuple[type, ...], expected: str) -> Any:
        """The keyword's value, None when absent.

        Raises:
            InvalidTool: It is of another type.
        """
        if keyword not in self.schema:
            return None
        value = self.schema[keyword]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise InvalidTool(f"the schema's {keyword!r} at {self.where} must be {expected}, it is {_named(value)}")
        return value

    def number(self, keyword: str) -> Any:
        """A keyword that holds a number."""
        return self.get(keyword, (int, float), "a number")

    def count(self, keyword: str) -> int | None:
        """A keyword that holds a number of things."""
        value = self.number(keyword)
        if value is not None and (value < 0 or value != int(value)):
            raise InvalidTool(f"the schema's {keyword!r} at {self.where} must be a whole number ≥ 0, it is {value}")
        return None if value is None else int(value)

    def names(self, keyword: str) -> list[str]:
        """A keyword that holds a list of property names."""
        value = self.get(keyword, list, "a list of names") or []
        if not all(isinstance(name, str) for name in value):
            raise InvalidTool(f"the schema's {keyword!r} at {self.where} must be a list of names")
        return value

    def inner(self, *keys: str | int) -> Check:
        """The check of a subschema that applies to a part of the value."""
        return self._sub(keys, frozenset())

    def same(self, *keys: str | int) -> Check:
        """The check of a subschema that applies to the value itself."""
        return self._sub(keys, self.entered)

    def alternatives(self, keyword: str) -> list[Check]:
        """The checks of a keyword that lists subschemas for the value itself."""
        listed = self.get(keyword, list, "a list of schemas")
        if listed is not None and not listed:
            raise InvalidTool(f"the schema's {keyword!r} at {self.where} must not be empty")
        return [self.same(keyword, index) for index in range(len(listed or ()))]

    def members(self, keyword: str) -> dict[str, Check]:
        """The checks of a keyword that maps names to subschemas of the value's parts."""
        named = self.get(keyword, dict, "an object of schemas") or {}
        return {name: self.inner(keyword, name) for name in named}

    def _sub(self, keys: tuple[str | int, ...], entered: frozenset[str]) -> Check:
        schema: Any = self.schema
        for key in keys:
            schema = schema[key]
        return self.compiler.check(schema, "/".join((self.where, *map(str, keys))), entered)


def _all(checks: list[Check]) -> Check:
    if len(checks) <= 1:
        return checks[0] if checks else fits

    def run(value: Any) -> list[Problem]:
        for check in checks:
            if problems := check(value):
                return problems
        return []

    return run


def _refuse(value: Any) -> list[Problem]:
    return [Problem(says="must be left out")]


def _named(value: Any) -> str:
    return f"{type(value).__name__} {value!r:.60}"


def merged(problems: Iterable[list[Problem]]) -> list[Problem]:
    """All problems of several checks in one list."""
    return [problem for found in problems for problem in found]
