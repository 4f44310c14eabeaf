"""A Python annotation as a type expression of the stub: what the code inside gives and gets, not what the host has.

Dataclasses, models and TypedDicts are TypedDicts inside, enums are their values, a UUID may be its text.
"""

from __future__ import annotations

import collections
import collections.abc as abc
import dataclasses
import enum
import types
import typing
from collections.abc import Mapping
from typing import Any, cast, get_args, get_origin

import typing_extensions
from pydantic import BaseModel, RootModel, TypeAdapter

from hatchway.tools.namespace import Member, Namespace
from hatchway.tools.parameters import Hint, Shape
from hatchway.tools.shapes import literal_text, shape_text

_PLAIN = {
    "builtins": frozenset({"int", "float", "str", "bool", "bytes", "complex"}),
    "datetime": frozenset({"date", "datetime", "time", "timedelta"}),
    "decimal": frozenset({"Decimal"}),
}
_CONTAINERS: dict[Any, str] = {
    list: "list", set: "set", frozenset: "frozenset", dict: "dict", tuple: "tuple",
    abc.MutableSequence: "list", abc.MutableSet: "set", abc.MutableMapping: "dict",
    abc.Sequence: "Sequence", abc.Set: "set", abc.Mapping: "Mapping",
    abc.Collection: "Iterable", abc.Iterator: "Iterable", abc.Iterable: "Iterable",
}  # fmt: skip
_Variables = Mapping[Any, Any]


def type_text(source: Hint | Shape, names: Namespace, wish: str) -> str:
    """The type expression for what a parameter takes or a tool gives; `wish` names a class that has no name."""
    match source:
        case Hint(annotation):
            return _Writer(names, wish).text(annotation)
        case Shape(schema, root):
            return shape_text(schema, root, names, wish)


class _Writer:
    def __init__(self, names: Namespace, wish: str) -> None:
        self._names = names
        self._wish = wish
        self._aliases: list[Any] = []

    def text(self, annotation: Any) -> str:
        if annotation is None or annotation is type(None):
            return "None"
        if annotation is Any or annotation is object or isinstance(annotation, (str, typing.ForwardRef)):
            return self._names.type("Any")
        if isinstance(annotation, typing.TypeVar):
            return self._variable(annotation)
        if isinstance(annotation, typing.NewType):
            return self.text(annotation.__supertype__)
        if isinstance(annotation, typing_extensions.TypeAliasType):
            return self._alias(annotation)
        origin = get_origin(annotation)
        if origin is not None:
            return self._generic(annotation, origin, get_args(annotation))
        return self._class(annotation) if isinstance(annotation, type) else self._described(annotation)

    def _alias(self, alias: typing_extensions.TypeAliasType) -> str:
        if alias in self._aliases:
            return self._names.type("Any")  # only a class can refer to itself
        self._aliases.append(alias)
        try:
            return self.text(alias.__value__)
        finally:
            self._aliases.pop()

    def _variable(self, variable: Any) -> str:
        if variable.__constraints__:
            return self._names.union(self.text(each) for each in variable.__constraints__)
        return self.text(variable.__bound__ if variable.__bound__ is not None else Any)

    def _generic(self, annotation: Any, origin: Any, arguments: tuple[Any, ...]) -> str:
        if origin in (typing.Annotated, typing.Required, typing.NotRequired, typing.ClassVar, typing.Final):
            return self.text(arguments[0])
        if origin in (typing_extensions.Required, typing_extensions.NotRequired, typing_extensions.ReadOnly):
            return self.text(arguments[0])
        if origin in (typing.Union, types.UnionType):
            return self._names.union(self.text(each) for each in arguments)
        if origin in (typing.Literal, typing_extensions.Literal):
            return literal_text(
                [each.value if isinstance(each, enum.Enum) else each for each in arguments], self._names
            )
        if origin is collections.Counter:
            return self._container(dict, (*arguments, int))
        if origin in (abc.Awaitable, abc.Coroutine):
            return self.text(arguments[-1])
        if origin is tuple and not arguments and annotation is not tuple:
            return f"{self._names.type('tuple')}[()]"
        if origin in _CONTAINERS or _is_container(origin):
            return self._container(origin, arguments)
        if _is_record(origin):
            variables = dict(zip(getattr(origin, "__parameters__", ()), arguments, strict=False))
            return self._record((origin, repr(annotation)), origin, variables)
        return self._described(annotation)

    def _container(self, origin: Any, arguments: tuple[Any, ...]) -> str:
        base = next(name for kind, name in _CONTAINERS.items() if origin is kind or issubclass(origin, kind))
        filled = arguments or {"dict": (str, Any), "Mapping": (str, Any), "tuple": (Any, ...)}.get(base, (Any,))
        return f"{self._names.type(base)}[{', '.join('...' if each is ... else self.text(each) for each in filled)}]"

    def _class(self, cls: type[Any]) -> str:
        if cls.__name__ in _PLAIN.get(cls.__module__, ()):
            return self._names.type(cls.__name__)
        if (cls.__module__, cls.__name__) == ("uuid", "UUID"):
            return self._names.union([self._names.type("UUID"), self._names.type("str")])
        if issubclass(cls, enum.Enum):
            return literal_text([each.value for each in cls], self._names)
        if issubclass(cls, RootModel):
            return self.text(cast(Any, cls).model_fields["root"].annotation)
        if _is_record(cls):
            return self._record(cls, cls, {})
        if issubclass(cls, tuple) and hasattr(cast(Any, cls), "_fields"):
            return self._container(tuple, tuple(_hints(cls).values()))
        if cls in _CONTAINERS or _is_container(cls):
            return self._container(cls, ())
        return self._described(cls)

    def _record(self, key: Any, cls: Any, variables: _Variables) -> str:
        return self._names.declare(key, cls.__name__, lambda: self._members(cls, variables))

    def _members(self, cls: Any, variables: _Variables) -> tuple[str, list[Member]]:
        found = [
            Member(
                name=name,
                text=self._names.member(lambda hint=hint: self.text(_filled(hint, variables))),
                required=required,
                description=description,
            )
            for name, hint, required, description in _fields(cls)
        ]
        return _own_doc(cls), found

    def _described(self, annotation: Any) -> str:
        """Types only pydantic knows (URLs, addresses, paths): as their JSON schema."""
        try:
            schema = TypeAdapter(annotation).json_schema(by_alias=False)
        except Exception:
            return self._names.type("Any")
        return shape_text(schema, schema, self._names, self._wish)


def _filled(hint: Any, variables: _Variables) -> Any:
    """The annotation with the type variables of its class replaced."""
    if isinstance(hint, typing.TypeVar):
        return variables.get(hint, hint)
    unfilled = () if isinstance(hint, type) else getattr(hint, "__parameters__", ())
    return cast(Any, hint)[tuple(variables.get(each, each) for each in unfilled)] if unfilled else hint


def _is_container(cls: Any) -> bool:
    return isinstance(cls, type) and issubclass(cls, (list, set, frozenset, dict, abc.MutableSequence))


def _is_record(cls: Any) -> bool:
    is_class = isinstance(cls, type)
    if is_class and typing_extensions.is_typeddict(cls):
        return True
    return is_class and (dataclasses.is_dataclass(cls) or issubclass(cls, BaseModel))


def _fields(cls: Any) -> list[tuple[str, Any, bool, str]]:
    """Name, annotation, whether it must be given, and description of each key."""
    if typing_extensions.is_typeddict(cls):
        told = cls.__required_keys__
        return [(name, hint, _is_required(hint, name in told), _said(hint)) for name, hint in _hints(cls).items()]
    if issubclass(cls, BaseModel):
        fields = cls.model_fields.items()
        return [(name, each.annotation, each.is_required(), each.description or "") for name, each in fields]
    hints, missing = _hints(cls), dataclasses.MISSING
    return [
        (each.name, hint, each.default is missing and each.default_factory is missing, _said(hint))
        for each in dataclasses.fields(cls)
        for hint in [hints.get(each.name, Any)]
    ]


def _is_required(hint: Any, otherwise: bool) -> bool:
    """Whether a key must be given; the class itself does not know where its module postpones annotations."""
    match typing_extensions.get_origin(hint):
        case typing.Required | typing_extensions.Required:
            return True
        case typing.NotRequired | typing_extensions.NotRequired:
            return False
        case typing.Annotated | typing_extensions.ReadOnly:
            return _is_required(typing.get_args(hint)[0], otherwise)
        case _:
            return otherwise


def _hints(cls: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except Exception:
        return dict.fromkeys(getattr(cls, "__annotations__", {}), Any)


def _said(hint: Any) -> str:
    """The description an `Annotated[..., Field(description=...)]` carries."""
    if typing_extensions.get_origin(hint) in (typing_extensions.Required, typing_extensions.NotRequired):
        hint = typing.get_args(hint)[0]
    found = [getattr(each, "description", None) for each in getattr(hint, "__metadata__", ())]
    return next((each for each in found if isinstance(each, str)), "")


def _own_doc(cls: Any) -> str:
    doc = cls.__dict__.get("__doc__") or ""
    return "" if doc.startswith(f"{cls.__name__}(") else doc.strip()
