"""Arguments a Python signature describes, checked and converted by pydantic.

A value is taken if pydantic takes it strictly, or if it fits the JSON schema (which allows no coercion: text is no
number) and pydantic can then build from it what the function wants: a dataclass from a dict, a set from a list,
a date from its ISO text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import typing_extensions
from pydantic import ConfigDict, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError, ValidationError, core_schema, to_jsonable_python

from hatchway.core.errors import InvalidTool, ToolError
from hatchway.tools.ambiguity import ambiguity, is_too_much
from hatchway.tools.annotations import for_pydantic
from hatchway.tools.arguments import Arguments
from hatchway.tools.parameters import REQUIRED, Hint, Kind, Parameter
from hatchway.tools.problems import MAX_PROBLEMS, Problem, unknown
from hatchway.tools.schema import Check, compile_schema

_MORE = "**"
"""Where the members of `**kwargs` stand while pydantic sees them; no parameter has this name."""


class FunctionArguments(Arguments):
    """Arguments a Python signature describes; names are those of parameters and fields, never aliases."""

    def __init__(self, tool: str, takes: tuple[Parameter, ...], *, hidden: frozenset[str] = frozenset()) -> None:
        """`hidden` are parameters the function has and the code may not give."""
        adapter, schema, takes = _described(tool, takes)
        super().__init__(tool, takes)
        self.parameters = _completed(schema, takes)
        self._validate = adapter.validator.validate_python
        self._own = frozenset(each.name for each in takes if each.kind is not Kind.VAR_KEYWORD)
        self._open = len(self._own) < len(takes)
        self._hidden = hidden
        self._deceptive = _has_numeric_choice(self.parameters)
        self._ambiguity = ambiguity(self.parameters)
        self._compiled: Check | None = None

    def check(self, arguments: dict[str, Any]) -> dict[str, Any] | None:
        """Raise ToolError unless they fit; the values the function takes, where nothing had to be looked at twice."""
        if self._ambiguity and is_too_much(arguments, self._ambiguity):
            raise ToolError(f"{self.tool}(): the arguments are nested too deeply to tell which type each part is")
        if not self._deceptive and self._hidden.isdisjoint(arguments):
            try:
                return self._flat(self._validate(self._packed(arguments), strict=True, by_alias=False, by_name=True))
            except ValidationError:
                pass
        self._check_closely(arguments)
        return None

    def convert(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The values the function takes: instances of its dataclasses, models and enums."""
        packed = self._packed(arguments)
        try:
            values = self._validate(packed, strict=True, by_alias=False, by_name=True)
        except ValidationError:
            values = self._built(packed)
        return self._flat(values)

    def _flat(self, values: dict[str, Any]) -> dict[str, Any]:
        return values | values.pop(_MORE) if self._open else values

    def _packed(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if not self._open:
            return arguments
        named = {name: value for name, value in arguments.items() if name in self._own}
        return {**named, _MORE: {name: value for name, value in arguments.items() if name not in self._own}}

    def _check_closely(self, arguments: dict[str, Any]) -> None:
        self._compiled = self._compiled or compile_schema(self.parameters, python=True)
        hidden = [unknown(name, ()) for name in arguments if name in self._hidden] if self._open else []
        if problems := hidden + self._compiled(arguments):
            raise self.refuse(problems)
        self._built(self._packed(arguments))

    def _built(self, packed: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return self._validate(packed, strict=False, by_alias=False, by_name=True)
        except ValidationError as e:
            found = e.errors(include_url=False, include_context=False, include_input=False)[:MAX_PROBLEMS]
            raise self.refuse([_problem(each, packed) for each in found]) from None


def result_schema(gives: Hint) -> dict[str, Any] | None:
    """The JSON schema of a result; None when its annotation says nothing JSON could say."""
    if gives.annotation in (Any, REQUIRED):
        return None
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(for_pydantic(gives.annotation))
        return adapter.json_schema(by_alias=False, mode="serialization", schema_generator=_SchemaWriter)
    except Exception:
        return None


def _problem(error: Mapping[str, Any], packed: Mapping[str, Any]) -> Problem:
    """pydantic's own words for what only its validators know; its location also names types: those are left out."""
    path: list[Any] = []
    value: Any = packed
    for key in error["loc"]:
        try:
            value = value[key]
        except (LookupError, TypeError):
            continue
        if key != _MORE:
            path.append(key)
    return Problem(says=f"is not valid: {error['msg'].removeprefix('Value error, ')}", path=tuple(path))


def _described(
    tool: str, takes: tuple[Parameter, ...]
) -> tuple[TypeAdapter[Any], dict[str, Any], tuple[Parameter, ...]]:
    """pydantic's adapter and JSON schema for the arguments, and the parameters with the types it could take."""
    try:
        return *_build(tool, takes), takes
    except Exception:
        # One parameter is to blame; the error must name it.
        usable = tuple(_usable(tool, parameter) for parameter in takes)
    try:
        return *_build(tool, usable), usable
    except Exception as e:
        raise InvalidTool(f"the parameters of {tool}() cannot be described: {e}") from e


def _build(tool: str, takes: tuple[Parameter, ...]) -> tuple[TypeAdapter[Any], dict[str, Any]]:
    members = {_MORE if each.kind is Kind.VAR_KEYWORD else each.name: _member(each) for each in takes}
    container: Any = cast(Any, typing_extensions.TypedDict)(tool, members)
    container.__pydantic_config__ = ConfigDict(extra="forbid")
    adapter: TypeAdapter[Any] = TypeAdapter(container)
    return adapter, adapter.json_schema(by_alias=False, schema_generator=_SchemaWriter)


def _member(parameter: Parameter) -> Any:
    hint = for_pydantic(cast(Hint, parameter.type).annotation)
    match parameter.kind:
        case Kind.VAR_POSITIONAL:
            return typing_extensions.NotRequired[list[hint]]
        case Kind.VAR_KEYWORD:
            return typing_extensions.NotRequired[dict[str, hint]]
        case _:
            return hint if parameter.default is REQUIRED else typing_extensions.NotRequired[hint]


def _usable(tool: str, parameter: Parameter) -> Parameter:
    try:
        _build(tool, (parameter,))
        return parameter
    except Exception as e:
        if isinstance(e, NameError) or getattr(e, "code", "") == "class-not-fully-defined":
            return replace(parameter, type=Hint(Any))
        reason = str(e).partition("\n")[0].partition(". Set ")[0]
        raise InvalidTool(
            f"parameter {parameter.name!r} of {tool}() cannot be given by code: {reason}",
            hint="use a type whose values cross the wall, or bind the parameter with functools.partial",
        ) from None


def _completed(schema: dict[str, Any], takes: tuple[Parameter, ...]) -> dict[str, Any]:
    """The JSON schema with what the signature and the docstring know: defaults, descriptions, `**kwargs`."""
    schema.pop("title", None)
    properties: dict[str, Any] = schema.setdefault("properties", {})
    if (more := properties.pop(_MORE, None)) is not None:
        schema["additionalProperties"] = more.get("additionalProperties", True)
    for parameter in takes:
        if parameter.kind is Kind.VAR_KEYWORD:
            continue
        said = properties[parameter.name]
        if parameter.description and "description" not in said:
            said["description"] = parameter.description
        if "default" not in said and (shown := _json_default(parameter.default)) is not REQUIRED:
            said["default"] = shown
    return schema


def _json_default(default: Any) -> Any:
    if default is REQUIRED or default is ...:
        return REQUIRED
    try:
        value = to_jsonable_python(default)
        json.dumps(value, allow_nan=False)
    except (PydanticSerializationError, ValueError, TypeError, RecursionError):
        return REQUIRED
    return value


class _SchemaWriter(GenerateJsonSchema):
    """JSON schemas without titles that only repeat the name, and with a format for Decimal."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012  # as pydantic declares it

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> dict[str, Any]:
        bounds = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
        numbers = {word: float(cast(Any, schema)[key]) for key, word in bounds.items() if key in schema}
        return {"type": ["integer", "string"], "format": "decimal", **numbers}


def _has_numeric_choice(schema: Any) -> bool:
    """Whether a literal number or boolean is among the choices: pydantic takes True for `Literal[1]` even strictly."""
    if isinstance(schema, list):
        return any(map(_has_numeric_choice, cast(list[Any], schema)))
    if not isinstance(schema, dict):
        return False
    node = cast(dict[str, Any], schema)
    choices = [*cast(list[Any], node.get("enum", [])), node.get("const")] if _is_choice(node) else []
    return any(isinstance(each, (int, float)) for each in choices) or any(map(_has_numeric_choice, node.values()))


def _is_choice(node: dict[str, Any]) -> bool:
    return isinstance(node.get("enum", []), list)
