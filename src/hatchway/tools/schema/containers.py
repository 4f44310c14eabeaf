"""What the keywords for arrays and objects demand."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, cast

from hatchway.tools.problems import MAX_PROBLEMS, Problem, below, shown, unknown, violation
from hatchway.tools.schema.compiler import Check, Node, fits
from hatchway.tools.schema.patterns import matcher


def identity(value: Any, *, exact: bool = False) -> Any:
    """A hashable stand-in, equal where JSON values are: 1 and 1.0 are equal unless `exact`, 1 and True are not."""
    if isinstance(value, dict):
        items = cast(dict[Any, Any], value).items()
        return ("object", frozenset((identity(key, exact=exact), identity(item, exact=exact)) for key, item in items))
    if isinstance(value, (list, tuple)):
        return ("array", *(identity(item, exact=exact) for item in cast(list[Any], value)))
    if isinstance(value, (set, frozenset)):
        return ("set", frozenset(identity(item, exact=exact) for item in cast(set[Any], value)))
    return (type(value), value) if exact or isinstance(value, bool) else value


def array(node: Node) -> Check | None:
    """`items`, `prefixItems`, `additionalItems`, `contains`, `uniqueItems` and the two counts."""
    parts = [_items(node), _item_count(node), _contains(node), _unique(node)]
    checks = [check for check in parts if check is not None]
    if not checks:
        return None

    def run(value: Any) -> list[Problem]:
        if not isinstance(value, (list, tuple, set, frozenset)):
            return []
        return [problem for check in checks for problem in check(value)]

    return run


def _items(node: Node) -> Check | None:
    # Before 2020-12, a list under `items` is what `prefixItems` is now, and `additionalItems` the rest.
    first, others = (
        ("items", "additionalItems") if isinstance(node.schema.get("items"), list) else ("prefixItems", "items")
    )
    prefix, rest = node.listed(first), node.inner(others)
    if not prefix and rest is None:
        return None

    def run(value: Any) -> list[Problem]:
        problems: list[Problem] = []
        for index, item in enumerate(value):
            check = prefix[index] if index < len(prefix) else rest or fits
            if found := check(item):
                problems += below(index, found)
                if len(problems) >= MAX_PROBLEMS:
                    break
        return problems

    return run


def _item_count(node: Node) -> Check | None:
    return _count(node.count("minItems"), node.count("maxItems"), "item(s)")


def _count(least: int | None, most: int | None, things: str) -> Check | None:
    if least is None and most is None:
        return None

    def run(value: Collection[Any]) -> list[Problem]:
        if least is not None and len(value) < least:
            return [violation(f"have at least {least} {things}", value)]
        if most is not None and len(value) > most:
            return [violation(f"have at most {most} {things}", value)]
        return []

    return run


def _contains(node: Node) -> Check | None:
    check = node.inner("contains")
    if check is None:
        return None
    least, most = node.count("minContains"), node.count("maxContains")
    least = 1 if least is None else least

    def run(value: Any) -> list[Problem]:
        fitting = sum(not check(item) for item in value)
        if fitting < least or (most is not None and fitting > most):
            bounds = f"at least {least}" if fitting < least else f"at most {most}"
            return [violation(f"contain {bounds} item(s) of a form that {fitting} of its items have", value)]
        return []

    return run


def _unique(node: Node) -> Check | None:
    if not node.get("uniqueItems", bool, "a boolean"):
        return None
    return lambda value: (
        [] if len({identity(item) for item in value}) == len(value) else [violation("have no item twice", value)]
    )


def object_(node: Node) -> Check | None:
    """`properties` and everything else that is said about the keys and members of an object."""
    parts = [_required(node), _members(node), _keys(node), _dependencies(node)]
    parts.append(_count(node.count("minProperties"), node.count("maxProperties"), "key(s)"))
    checks = [check for check in parts if check is not None]
    if not checks:
        return None

    def run(value: Any) -> list[Problem]:
        if not isinstance(value, dict):
            return []
        return [problem for check in checks for problem in check(value)]

    return run


def _required(node: Node) -> Check | None:
    # Draft 3 wrote `required: true` on the member itself; some generators still do.
    required = [] if isinstance(node.schema.get("required"), bool) else node.names("required")
    if not required:
        return None
    return lambda value: [
        Problem(kind="missing", says="is missing", path=(name,)) for name in required if name not in value
    ]


def _members(node: Node) -> Check | None:
    members, additional = node.members("properties"), node.schema.get("additionalProperties")
    patterns = [
        (matcher(node, "patternProperties", pattern), check)
        for pattern, check in node.members("patternProperties").items()
    ]
    # A pattern nobody can match in linear time might allow any key.
    closed = additional is False and all(matches for matches, _ in patterns)
    others = fits if additional is False else node.inner("additionalProperties") or fits
    if not members and not patterns and not closed and others is fits:
        return None

    def run(value: dict[Any, Any]) -> list[Problem]:
        problems: list[Problem] = []
        for key, item in value.items():
            member = members.get(key)
            matching = [check for matches, check in patterns if matches and matches(key)] if patterns else ()
            if member is None and not matching and closed:
                problems.append(unknown(key, members, value))
            for check in (member or (fits if matching else others), *matching):
                if found := check(item):
                    problems += below(key, found)
            if len(problems) >= MAX_PROBLEMS:
                break
        return problems

    return run


def _keys(node: Node) -> Check | None:
    check, python = node.inner("propertyNames"), node.compiler.python

    def run(value: dict[Any, Any]) -> list[Problem]:
        for key in value:
            if not isinstance(key, str) and not python:
                return [Problem(says=f"must have texts as keys, got the key {shown(key)}")]
            if check is not None and (found := check(key)):
                return [Problem(says=f"has a key that {found[0].says}")]
        return []

    return run


def _dependencies(node: Node) -> Check | None:
    needs, checks = _dependent_names(node), _dependent_checks(node)
    if not needs and not checks:
        return None

    def run(value: dict[Any, Any]) -> list[Problem]:
        absent = [(name, key) for key, names in needs.items() if key in value for name in names if name not in value]
        problems = [Problem(says=f"is missing: {key!r} is given", path=(name,)) for name, key in absent]
        return problems + [problem for key, check in checks if key in value for problem in check(value)]

    return run


def _dependent_names(node: Node) -> dict[str, list[str]]:
    needs: dict[str, list[str]] = {}
    for keyword in ("dependentRequired", "dependencies"):
        for key, names in cast(dict[str, Any], node.get(keyword, dict, "an object of names") or {}).items():
            if isinstance(names, list):
                needs[key] = cast(list[str], names)
    return needs


def _dependent_checks(node: Node) -> list[tuple[str, Check]]:
    checks: list[tuple[str, Check]] = []
    for keyword in ("dependentSchemas", "dependencies"):
        for key, schema in cast(dict[str, Any], node.get(keyword, dict, "an object of schemas") or {}).items():
            if not isinstance(schema, list) and (check := node.same(keyword, key)):
                checks.append((key, check))
    return checks
