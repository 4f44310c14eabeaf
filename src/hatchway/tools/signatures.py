"""Reading a Python callable: its parameters, its result, and how to call it by names."""

from __future__ import annotations

import functools
import inspect
import re
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, cast

from pydantic.fields import FieldInfo

from hatchway.core.calls import CallContext
from hatchway.core.errors import InvalidTool
from hatchway.tools.docstrings import parameter_descriptions
from hatchway.tools.parameters import REQUIRED, Hint, Kind, Parameter

_CONTEXT = re.compile(rf"\b{CallContext.__name__}\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a callable says about itself."""

    name: str
    """Empty when it has none."""
    description: str
    """Its docstring."""
    takes: tuple[Parameter, ...]
    """Without the parameter that takes the context, and without what a partial already binds."""
    gives: Hint
    """Its result; Any when it does not say."""
    context: str | None
    """The name of the parameter that takes the `CallContext`."""
    hidden: frozenset[str]
    """The parameters it has that are not in `takes`."""
    call: Callable[..., Any]
    """Takes every argument by its name."""


def read_callable(function: Callable[..., Any]) -> Reading:
    """All a tool needs to know of a function, method, partial or callable object.

    Raises:
        InvalidTool: Its signature cannot be read, or it is a generator.
    """
    body = _body(function)
    name = getattr(_unpartial(function), "__name__", "")
    if inspect.isgeneratorfunction(body) or inspect.isasyncgenfunction(body):
        raise InvalidTool(f"{name}() is a generator; a tool returns its value", hint="return a list")
    signature, hints = _signature(function, name), _hints(body)
    context = next((each.name for each in signature.parameters.values() if _is_context(each, hints)), None)
    description = inspect.getdoc(function if isinstance(function, type) else body) or ""
    described = parameter_descriptions(description)
    hidden = frozenset(_bound_names(function, signature) | ({context} if context else set()))
    offered = [each for each in signature.parameters.values() if each.name not in hidden]
    return Reading(
        name=name,
        description=description,
        takes=_in_order([_parameter(each, hints, described.get(each.name, "")) for each in offered]),
        gives=Hint(function if isinstance(function, type) else hints.get("return", Any)),
        context=context,
        hidden=hidden,
        call=_by_name(function, signature),
    )


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it gives a coroutine: `async def`, a partial of one, an object whose `__call__` is one."""
    inner = _unpartial(function)
    return inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(cast(Any, type(inner)).__call__)


def _unpartial(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = cast(Any, function).func
    return function


def _bound_names(function: Any, signature: inspect.Signature) -> set[str]:
    """What a partial fixes is fixed: the code may neither see nor change it, not even through `**kwargs`."""
    names: set[str] = set()
    while isinstance(function, functools.partial):
        names |= set(function.keywords)
        function = cast(Any, function).func
    return names | (set(inspect.signature(function).parameters) - set(signature.parameters))


def _body(function: Any) -> Any:
    """The function whose annotations and docstring count."""
    function = inspect.unwrap(_unpartial(function))
    if isinstance(function, type):
        return cast(Any, function).__init__
    if isinstance(function, types.MethodType):
        return inspect.unwrap(function.__func__)
    return function if hasattr(function, "__name__") else inspect.unwrap(cast(Any, type(function)).__call__)


def _signature(function: Callable[..., Any], name: str) -> inspect.Signature:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as e:
        raise InvalidTool(f"the signature of {name or repr(function)} cannot be read: {e}") from None
    first = next(iter(signature.parameters.values()), None)
    if first is not None and first.name == "self" and first.annotation is REQUIRED:
        raise InvalidTool(
            f"{name}() is a method without its object", hint=f"make the tool from a bound one: tool(thing.{name})"
        )
    return signature


def _hints(body: Any) -> dict[str, Any]:
    """The annotations as types; one that cannot be resolved is left out, as if it were not there."""
    try:
        return typing.get_type_hints(body, include_extras=True)
    except Exception:
        pass  # one bad annotation spoils them all: take them one by one
    hints: dict[str, Any] = {}
    for name, annotation in getattr(body, "__annotations__", {}).items():
        alone = types.SimpleNamespace(__annotations__={name: annotation})
        try:
            hints |= typing.get_type_hints(alone, getattr(body, "__globals__", {}), _closure(body), include_extras=True)
        except Exception:
            continue
    return hints


def _closure(body: Any) -> dict[str, Any]:
    names = getattr(getattr(body, "__code__", None), "co_freevars", ())
    found: dict[str, Any] = {}
    for name, cell in zip(names, getattr(body, "__closure__", None) or (), strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue  # not assigned yet
    return found


def _is_context(parameter: inspect.Parameter, hints: dict[str, Any]) -> bool:
    hint = hints.get(parameter.name)
    if hint is None and isinstance(parameter.annotation, str):
        # The name may exist for type checkers only.
        return _CONTEXT.search(parameter.annotation) is not None
    if typing.get_origin(hint) is Annotated:
        hint = typing.get_args(hint)[0]
    members = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    return any(isinstance(member, type) and issubclass(member, CallContext) for member in members)


def _parameter(parameter: inspect.Parameter, hints: dict[str, Any], description: str) -> Parameter:
    hint, default = hints.get(parameter.name, Any), parameter.default
    if isinstance(default, FieldInfo):
        hint = Annotated[hint, default]
    elif default is None and hint is not Any:
        hint = typing.Optional[hint]  # noqa: UP045  # `x: int = None` means this, and `|` does not take every hint
    field = _field(hint)
    if field is not None and (default is REQUIRED or default is field):
        default = REQUIRED if field.is_required() else field.default if field.default_factory is None else ...
    return Parameter(
        name=parameter.name,
        type=Hint(hint),
        kind=parameter.kind,
        default=default,
        description=(field.description if field else None) or description,
    )


def _in_order(takes: list[Parameter]) -> tuple[Parameter, ...]:
    """The parameters in an order Python allows: with fields as defaults, a required one may follow one that is not."""
    optional = False
    ordered: list[Parameter] = []
    for each in takes:
        positional = each.kind in (Kind.POSITIONAL_ONLY, Kind.POSITIONAL_OR_KEYWORD)
        if positional and optional and (each.default is REQUIRED or ordered[-1].kind is Kind.KEYWORD_ONLY):
            each = replace(each, kind=Kind.KEYWORD_ONLY)
        optional = optional or (positional and each.default is not REQUIRED)
        ordered.append(each)
    return tuple(sorted(ordered, key=lambda each: each.kind))


def _field(hint: Any) -> FieldInfo | None:
    """The pydantic field an annotation carries; pydantic fills in its default, the function could not."""
    carried = getattr(hint, "__metadata__", ())
    return next((each for each in carried if isinstance(each, FieldInfo)), None)


def _by_name(function: Callable[..., Any], signature: inspect.Signature) -> Callable[..., Any]:
    """The function itself, or a way to give it by name what it only takes by position."""
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    if not kinds & {Kind.POSITIONAL_ONLY, Kind.VAR_POSITIONAL}:
        return function

    def positional(named: dict[str, Any]) -> list[Any]:
        given: list[Any] = []
        for name, parameter in signature.parameters.items():
            if parameter.kind is Kind.VAR_POSITIONAL:
                given += named.pop(name, ())
            elif parameter.kind in (Kind.POSITIONAL_ONLY, Kind.POSITIONAL_OR_KEYWORD):
                given.append(named.pop(name, parameter.default))
        return given

    if is_async(function):

        async def call_async(**named: Any) -> Any:
            return await function(*positional(named), **named)

        return functools.wraps(function)(call_async)

    def call(**named: Any) -> Any:
        return function(*positional(named), **named)

    return functools.wraps(function)(call)
