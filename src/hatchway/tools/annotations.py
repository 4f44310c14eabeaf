"""Annotations as pydantic takes them: what it refuses or reads lazily is replaced by what means the same here."""

from __future__ import annotations

import enum
import sys
import types
import typing
from collections.abc import Collection, Iterable, Iterator
from typing import Annotated, Any, Union, cast, get_args, get_origin

import typing_extensions
from pydantic import BeforeValidator

_LAZY: dict[Any, Any] = {Iterable: list, Iterator: list, Collection: list}
"""Values that crossed the wall are whole; pydantic would check an iterable only while the tool reads it."""
_Twins = dict[Any, Any]


def for_pydantic(annotation: Any, twins: _Twins | None = None) -> Any:
    """The annotation with its lazy containers and its `typing.TypedDict`s replaced, at any depth."""
    twins = {} if twins is None else twins
    if isinstance(annotation, list):  # the parameters of a Callable
        return cast(Any, annotation)
    if isinstance(annotation, type) and annotation in _LAZY:
        return list[Any]
    if typing_extensions.is_typeddict(annotation):
        return _twin(annotation, twins)
    origin: Any = get_origin(annotation)
    parts: tuple[Any, ...] = get_args(annotation)
    if origin is typing.Literal:
        return _literal(annotation, parts)
    if origin is None:
        return annotation
    if origin is Annotated:
        return Annotated[(for_pydantic(parts[0], twins), *annotation.__metadata__)]
    replaced = tuple(for_pydantic(part, twins) for part in parts)
    if origin not in _LAZY and all(new is old for new, old in zip(replaced, parts, strict=True)):
        return annotation
    if origin in (Union, types.UnionType):
        return Union[replaced]  # noqa: UP007  # built from a tuple
    return _LAZY.get(origin, origin)[replaced if len(replaced) != 1 else replaced[0]]


def _literal(annotation: Any, choices: tuple[Any, ...]) -> Any:
    """Members of an enum cross as their values, which pydantic does not take for a literal of them."""
    members = [each for each in choices if isinstance(each, enum.Enum)]
    if not members:
        return annotation

    def member(value: Any) -> Any:
        same = (each for each in members if type(each.value) is type(value) and each.value == value)
        return next(same, value)

    return Annotated[annotation, BeforeValidator(member)]


def _twin(cls: Any, twins: _Twins) -> Any:
    """The same TypedDict made by typing_extensions: before Python 3.12 pydantic refuses typing's own."""
    if sys.version_info >= (3, 12) or type(cls).__module__ != "typing":
        return cls
    if cls not in twins:
        twin: Any = cast(Any, typing_extensions.TypedDict)(cls.__name__, {})
        twins[cls] = twin  # before its members, which may refer to it
        members = typing.get_type_hints(cls, include_extras=True)
        twin.__annotations__ = {name: for_pydantic(hint, twins) for name, hint in members.items()}
        twin.__required_keys__, twin.__optional_keys__ = cls.__required_keys__, cls.__optional_keys__
        twin.__doc__, twin.__module__, twin.__qualname__ = cls.__doc__, cls.__module__, cls.__qualname__
    return twins[cls]
