"""What a tool was seen to give, as a JSON schema: for readers, where the server says nothing about its results.

Values are looked at and not kept: what remains are types and the names of keys, few and short, whatever came.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

Schema = dict[str, Any]
_MAX_DEPTH = 6
_MAX_NODES = 200
"""Values of one result that are looked at."""
_MAX_ITEMS = 20
"""Items of a list that are looked at."""
_MAX_KEYS = 40
"""Keys of a record; what has more is a table by keys that are data."""
_MAX_KEY = 60
_MAX_CHOICES = 4
_ENOUGH = 30
"""Results in a row that told nothing new; later ones are looked at no more."""
_WORDS: dict[type, str] = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}


class Seen:
    """The results of a server's tools so far.

    Args:
        known: What was seen before, by tool.
    """

    def __init__(self, known: Mapping[str, Schema] | None = None) -> None:
        self._schemas: dict[str, Schema] = dict(known or {})
        self._idle: dict[str, int] = {}

    def look(self, tool: str, value: Any) -> bool:
        """Look at a result; whether it told something new."""
        before, idle = self._schemas.get(tool), self._idle.get(tool, 0)
        if idle >= _ENOUGH:
            return False
        found = shape(value)
        after = found if before is None else merged(before, found)
        self._idle[tool] = idle + 1 if after == before else 0
        self._schemas[tool] = after
        return after != before

    def schema(self, tool: str) -> Schema | None:
        """What it gives, as far as that was seen; None where that says nothing."""
        return self._schemas.get(tool) or None

    def told(self) -> dict[str, Schema]:
        """All of it, to be kept."""
        return dict(self._schemas)


def shape(value: Any) -> Schema:
    """The schema of one value; `{}` past the limits, and for what JSON has no word for."""
    return _shape(value, _MAX_DEPTH, [_MAX_NODES])


def merged(one: Schema, other: Schema) -> Schema:
    """What fits both; `{}` where they have too little in common."""
    if one == other or not one or not other:
        return one if one == other else {}
    choices = [*_choices(one)]
    for each in _choices(other):
        number = next((n for n, known in enumerate(choices) if _is_alike(known, each)), None)
        if number is None:
            choices.append(each)
        else:
            choices[number] = _united(choices[number], each)
    if len(choices) > _MAX_CHOICES:
        return {}
    return choices[0] if len(choices) == 1 else {"anyOf": sorted(choices, key=lambda each: str(each["type"]))}


def _shape(value: Any, depth: int, left: list[int]) -> Schema:
    left[0] -= 1
    kind = cast(type[Any], type(value))
    if kind in _WORDS:
        return {"type": _WORDS[kind]}
    if depth == 0 or left[0] < 0 or kind not in (dict, list, tuple):
        return {}
    if kind is not dict:
        shapes = [_shape(item, depth - 1, left) for item in value[:_MAX_ITEMS]]
        return {"type": "array", "items": _all(shapes)} if shapes else {"type": "array"}
    held = cast(dict[Any, Any], value)
    if not _is_record(held):
        inside = [_shape(item, depth - 1, left) for item in [*held.values()][:_MAX_ITEMS]]
        return {"type": "object", "additionalProperties": _all(inside) if inside else {}}
    properties = {key: _shape(item, depth - 1, left) for key, item in sorted(held.items())}
    return {"type": "object", "properties": properties, "required": sorted(held)}


def _is_record(held: Mapping[Any, Any]) -> bool:
    """Whether the keys are names; where they are data, they would make a type of every result."""
    named = (isinstance(key, str) and key.isidentifier() and len(key) <= _MAX_KEY for key in held)
    return 0 < len(held) <= _MAX_KEYS and all(named)


def _choices(schema: Schema) -> Iterable[Schema]:
    return cast(list[Schema], schema["anyOf"]) if "anyOf" in schema else [schema]


def _is_alike(one: Schema, other: Schema) -> bool:
    return one["type"] == other["type"] or {one["type"], other["type"]} == {"integer", "number"}


def _united(one: Schema, other: Schema) -> Schema:
    """Two schemas of one type as one."""
    match one["type"]:
        case "integer" | "number":
            return one if one["type"] == other["type"] else {"type": "number"}
        case "array":
            items = [each["items"] for each in (one, other) if "items" in each]
            return {"type": "array", "items": _all(items)} if items else {"type": "array"}
        case "object":
            return _united_objects(one, other)
        case _:
            return one


def _united_objects(one: Schema, other: Schema) -> Schema:
    if "properties" not in one or "properties" not in other:
        return {"type": "object", "additionalProperties": _all([*_inside(one), *_inside(other)])}
    first, second = one["properties"], other["properties"]
    properties = {
        key: _all([part[key] for part in (first, second) if key in part]) for key in sorted({*first, *second})
    }
    if len(properties) > _MAX_KEYS:
        return {"type": "object", "additionalProperties": _all(properties.values())}
    return {
        "type": "object",
        "properties": properties,
        "required": sorted({*one["required"]} & {*other["required"]}),
    }


def _inside(schema: Schema) -> list[Schema]:
    return [*schema["properties"].values()] if "properties" in schema else [schema["additionalProperties"]]


def _all(schemas: Iterable[Schema]) -> Schema:
    rest = iter(schemas)
    found: Schema = next(rest, Schema())
    for each in rest:
        found = merged(found, each)
    return found
