"""Types that contain themselves in several alternatives: each level multiplies the work of telling them apart.

`And(args: list[And | Or])` takes 2ⁿ attempts at a value n levels deep, and the guest chooses n. A discriminator
(`Field(discriminator=...)`) makes it one attempt; without one, depth is limited so that the host does not hang.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from hatchway.tools.schema.compiler import resolve

_BUDGET = 20_000
"""Attempts for the arguments of one call: a fraction of a second."""


def ambiguity(schema: dict[str, Any]) -> Mapping[str, int]:
    """By kind of value (`object`, `array`): how many alternatives of one union lead back to it, where several do."""
    found: dict[str, int] = {}
    for node in _nodes(schema, schema):
        if "discriminator" in node:
            continue
        for alternatives in (node.get("anyOf"), node.get("oneOf")):
            kinds = [
                _kind(each, schema) for each in cast(list[Any], alternatives or []) if _reaches(each, node, schema)
            ]
            for kind in ("object", "array"):
                found[kind] = max(found.get(kind, 1), kinds.count(kind))
    return {kind: times for kind, times in found.items() if times > 1}


def is_too_much(arguments: Mapping[str, Any], times: Mapping[str, int]) -> bool:
    """Whether telling the alternatives of these values apart would take more attempts than the budget."""
    attempts = 0
    waiting = [(value, 1) for value in arguments.values()]
    while waiting and attempts <= _BUDGET:
        part, weight = waiting.pop()
        if isinstance(part, dict):
            kind, items = "object", list(cast(dict[Any, Any], part).values())
        elif isinstance(part, (list, tuple)):
            kind, items = "array", list(cast(list[Any], part))
        else:
            continue
        if kind in times:
            weight *= times[kind]
            attempts += weight
        waiting += [(item, weight) for item in items]
    return attempts > _BUDGET


def _nodes(start: Any, root: Any) -> Iterator[dict[str, Any]]:
    """Every subschema that can be reached from one, also through references, once."""
    seen: set[int] = set()
    waiting: list[Any] = [start]
    while waiting:
        part = waiting.pop()
        if id(part) in seen or not isinstance(part, (dict, list)):
            continue
        seen.add(id(cast(Any, part)))
        if isinstance(part, list):
            waiting += cast(list[Any], part)
            continue
        node = cast(dict[str, Any], part)
        yield node
        waiting += [each for word, each in node.items() if word not in ("$defs", "definitions")]
        if isinstance(reference := node.get("$ref"), str):
            waiting.append(resolve(root, reference))


def _reaches(start: Any, goal: dict[str, Any], root: Any) -> bool:
    return any(node is goal for node in _nodes(start, root))


def _kind(schema: Any, root: Any) -> str:
    followed = 0
    while isinstance(schema, dict) and isinstance(reference := cast(Any, schema).get("$ref"), str) and followed < 100:
        schema, followed = resolve(root, reference), followed + 1
    word = cast(Any, schema).get("type") if isinstance(schema, dict) else None
    return word if isinstance(word, str) else "object"
