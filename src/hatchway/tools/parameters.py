"""What a tool takes and gives, in one form for functions and for JSON schemas."""

from __future__ import annotations

import inspect
import keyword
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from hatchway.tools.schema.compiler import resolve

REQUIRED: Any = inspect.Parameter.empty
"""The default of a parameter that has none."""
Kind = inspect._ParameterKind  # pyright: ignore[reportPrivateUsage]
"""How a parameter can be given."""


@dataclass(frozen=True, slots=True)
class Hint:
    """A type told by a Python annotation."""

    annotation: Any


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """A type told by a JSON schema."""

    schema: Any
    root: Any
    """The whole schema it is part of: references start there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a tool, as the code sees it."""

    name: str
    type: Hint | Shape
    """Of a star parameter: the type of one item."""
    kind: Kind = Kind.POSITIONAL_OR_KEYWORD
    default: Any = REQUIRED
    """`...` where there is a default that no text can show."""
    description: str = ""


def parameters_of(schema: Mapping[str, Any]) -> tuple[tuple[Parameter, ...], tuple[Parameter, ...]]:
    """The parameters a JSON schema describes, and those that can be given by `**` only.

    Required ones come first, each group in the schema's order. A name Python cannot give a parameter (`from`, `x-y`),
    and names the schema leaves open, make the tool take `**kwargs`.
    """
    body = _body(schema)
    found = [_parameter(name, body, schema) for name in cast(dict[str, Any], body.get("properties", {}))]
    found.sort(key=lambda parameter: parameter.default is not REQUIRED)
    takes = tuple(each for each in found if is_parameter_name(each.name))
    by_key = tuple(each for each in found if not is_parameter_name(each.name))
    if by_key or takes_more(schema):
        more = "kwargs" if all(each.name != "kwargs" for each in takes) else "more_kwargs"
        takes += (Parameter(name=more, type=Hint(Any), kind=Kind.VAR_KEYWORD),)
    return takes, by_key


def takes_more(schema: Mapping[str, Any]) -> bool:
    """Whether the schema leaves open which names may be given beside `properties`.

    JSON Schema's own answer is always yes; a tool that lists its parameters means them all, unless it says otherwise.
    """
    body = _body(schema)
    if "additionalProperties" in body:
        return body["additionalProperties"] is not False or bool(body.get("patternProperties"))
    open_words = ("patternProperties", "anyOf", "oneOf", "allOf", "if", "dependentSchemas", "unevaluatedProperties")
    return "properties" not in body or any(word in body for word in open_words)


def is_parameter_name(name: str) -> bool:
    """Whether Python can have a parameter of this name. Names that normalise to another would collide with it."""
    usable = name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("__")
    return usable and unicodedata.normalize("NFKC", name) == name


def _body(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema itself, or what its `$ref` leads to when it has nothing else to say."""
    seen: set[str] = set()
    body = schema
    while "properties" not in body and isinstance(reference := body.get("$ref"), str) and reference not in seen:
        seen.add(reference)
        target = resolve(schema, reference)
        if not isinstance(target, dict):
            break
        body = cast(dict[str, Any], target)
    return body


def _parameter(name: str, body: Mapping[str, Any], root: Mapping[str, Any]) -> Parameter:
    part = body["properties"][name]
    said: Mapping[str, Any] = cast(dict[str, Any], part) if isinstance(part, dict) else {}
    required = name in body.get("required", ())
    description = said.get("description")
    return Parameter(
        name=name,
        type=Shape(part, root),
        default=REQUIRED if required else said.get("default", ...),
        description=description if isinstance(description, str) else "",
    )
