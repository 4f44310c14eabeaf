"""A JSON schema as a Python type expression."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from hatchway.tools.namespace import Member, Namespace, text_literal
from hatchway.tools.schema.compiler import resolve

_MAX_DEPTH = 30
_MAX_TEXT = 2000
"""Characters of one type expression: references that multiply make texts nobody reads."""
_WORDS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def shape_text(schema: Any, root: Any, names: Namespace, wish: str) -> str:
    """The type expression for a schema; `wish` names the class should it need one. What says nothing is Any."""
    return _Writer(root, names).text(schema, wish)


def literal_text(values: list[Any], names: Namespace) -> str:
    """`Literal[...]` of the values, or their types where a literal cannot be written."""
    if all(value is None or isinstance(value, (str, int, bytes)) for value in values) and values:
        nulls = ["None"] if any(value is None for value in values) else []
        shown = [text_literal(v) if isinstance(v, str) else repr(v) for v in values if v is not None]
        return names.union(
            [*([f"{names.type('Literal')}[{', '.join(dict.fromkeys(shown))}]"] if shown else []), *nulls]
        )
    return names.union(_type_of(value, names) for value in values)


def _type_of(value: Any, names: Namespace) -> str:
    if value is None or isinstance(value, (bool, int, float, str)):
        return "None" if value is None else names.type(type(value).__name__)
    if isinstance(value, dict):
        return f"{names.type('dict')}[{names.type('str')}, {names.type('Any')}]"
    return f"{names.type('list')}[{names.type('Any')}]" if isinstance(value, list) else names.type("Any")


class _Writer:
    def __init__(self, root: Any, names: Namespace) -> None:
        self._root = root
        self._names = names
        self._entered: list[str] = []
        self._known: dict[str, tuple[str, bool]] = {}
        self._depth = 0

    def text(self, schema: Any, wish: str) -> str:
        if not isinstance(schema, dict) or not schema or self._depth > _MAX_DEPTH:
            return self._names.type("Any")
        node = cast(dict[str, Any], schema)
        self._depth += 1
        try:
            text = self._kind(node, wish)
        finally:
            self._depth -= 1
        if len(text) > _MAX_TEXT:
            return self._names.type("Any")
        return self._names.union([text, "None"]) if node.get("nullable") is True else text

    def _kind(self, node: Mapping[str, Any], wish: str) -> str:
        if isinstance(node.get("$ref"), str):
            return self._reference(node["$ref"])
        if "const" in node:
            return literal_text([node["const"]], self._names)
        if isinstance(node.get("enum"), list):
            return literal_text(node["enum"], self._names)
        if isinstance(node.get("properties"), dict) or "type" in node:
            return self._typed(node, wish)
        for word in ("anyOf", "oneOf"):
            if isinstance(options := node.get(word), list):
                numbered = enumerate(cast(list[Any], options), 1)
                return self._names.union(
                    self.text(option, f"{wish}{number if number > 1 else ''}") for number, option in numbered
                )
        return self._merged(node, wish)

    def _reference(self, reference: str) -> str:
        if reference in self._known:
            text, forward = self._known[reference]
            return self._names.repeated(text, forward=forward)
        target = self._target(reference)
        if reference in self._entered and not _is_record(target):
            return self._names.type("Any")  # only a class can refer to itself
        self._entered.append(reference)
        text, forward = self._names.traced(lambda: self.text(target, reference.rpartition("/")[2] or "Root"))
        self._entered.pop()
        self._known[reference] = text, forward
        return text

    def _merged(self, node: Mapping[str, Any], wish: str) -> str:
        """`allOf`: one class if all parts are objects, else the first part that says something."""
        listed: Any = node.get("allOf")
        parts = [self._followed(part) for part in cast(list[Any], listed)] if isinstance(listed, list) else []
        if parts and all(_is_record(part) for part in parts):
            properties = {name: sub for part in parts for name, sub in part["properties"].items()}
            required = [name for part in parts for name in part.get("required", ())]
            return self._record({"properties": properties, "required": required, **_said(node)}, wish)
        said = [text for part in parts if not self._names.is_any(text := self.text(part, wish))]
        return said[0] if said else self._names.type("Any")

    def _followed(self, part: Any) -> Any:
        seen: set[str] = set()
        while isinstance(part, dict) and isinstance(reference := cast(Any, part).get("$ref"), str):
            if reference in seen:
                return {}
            seen.add(reference)
            part = self._target(reference)
        return cast(Any, part)

    def _target(self, reference: str) -> Any:
        try:
            return resolve(self._root, reference)
        except LookupError:
            return True

    def _typed(self, node: Mapping[str, Any], wish: str) -> str:
        words: Any = node.get("type", "object")
        options = cast(list[Any], words) if isinstance(words, list) else [words]
        return self._names.union(self._word(word, node, wish) for word in options)

    def _word(self, word: Any, node: Mapping[str, Any], wish: str) -> str:
        if word == "null":
            return "None"
        if word == "array":
            return f"{self._names.type('list')}[{self._item(node, wish)}]"
        if word == "object":
            return self._record(node, wish) if _is_record(node) else self._mapping(node, wish)
        return self._names.type(_WORDS[word]) if word in _WORDS else self._names.type("Any")

    def _item(self, node: Mapping[str, Any], wish: str) -> str:
        items: Any = node.get("items", True)
        prefix: Any = cast(Any, items) if isinstance(items, list) else node.get("prefixItems")
        parts = [*cast(list[Any], prefix)] if isinstance(prefix, list) else []
        if isinstance(items, dict) or not parts:
            parts.append(cast(Any, items))
        return self._names.union(self.text(part, f"{wish}Item") for part in parts)

    def _mapping(self, node: Mapping[str, Any], wish: str) -> str:
        value = self.text(node.get("additionalProperties", True), f"{wish}Value")
        return f"{self._names.type('dict')}[{self._names.type('str')}, {value}]"

    def _record(self, node: Mapping[str, Any], wish: str) -> str:
        title = node.get("title")
        wish = title if isinstance(title, str) and title.isascii() and title.strip() else wish
        return self._names.declare(self._key(node, wish), wish, lambda: self._members(node, wish))

    def _members(self, node: Mapping[str, Any], wish: str) -> tuple[str, list[Member]]:
        required = node.get("required")
        needed = cast(list[Any], required) if isinstance(required, list) else []
        members = [
            Member(
                name=name,
                text=self._names.member(lambda sub=sub, name=name: self.text(sub, f"{wish} {name}")),
                required=name in needed,
                description=_text(sub, "description"),
            )
            for name, sub in node["properties"].items()
        ]
        return _text(node, "description"), members

    def _key(self, node: Mapping[str, Any], wish: str) -> tuple[str, ...]:
        """Equal for schemas that say the same, also in two tools: the text of the schema and of all it refers to."""
        reached: dict[str, Any] = {}
        self._reach(node, reached)
        return (wish, _canonical(node), _canonical(reached))

    def _reach(self, part: Any, reached: dict[str, Any]) -> None:
        if isinstance(part, list):
            for item in cast(list[Any], part):
                self._reach(item, reached)
        elif isinstance(part, dict):
            reference = cast(Any, part).get("$ref")
            if isinstance(reference, str) and reference not in reached:
                reached[reference] = self._target(reference)
                self._reach(reached[reference], reached)
            for item in cast(dict[str, Any], part).values():
                self._reach(item, reached)


def _is_record(schema: Any) -> bool:
    """Whether an object lists its keys and means them all: only that is a class."""
    if not isinstance(schema, dict) or not isinstance(cast(Any, schema).get("properties"), dict):
        return False
    node = cast(dict[str, Any], schema)
    return bool(node["properties"]) and not isinstance(node.get("additionalProperties"), dict)


def _said(node: Mapping[str, Any]) -> dict[str, Any]:
    return {word: node[word] for word in ("title", "description") if word in node}


def _text(schema: Any, word: str) -> str:
    said = cast(Any, schema).get(word) if isinstance(schema, dict) else None
    return said if isinstance(said, str) else ""


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=repr)
