"""Annotations as text: this module has `from __future__ import annotations`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hatchway.tools.functions import tool

if TYPE_CHECKING:
    from hatchway.core.calls import CallContext
    from hatchway.core.calls import CallContext as Context  # noqa: F401


@dataclass
class City:
    name: str
    sister: City | None = None


def visit(city: City, days: int = 1) -> City:
    return city


def test_annotations_are_resolved_where_the_function_lives():
    made = tool(visit)
    assert made.prepare(made.bind(({"name": "Bonn", "sister": {"name": "Oxford"}},), {})) == {
        "city": City("Bonn", City("Oxford"))
    }
    assert str(made.signature().parameters) == "(city: 'City', days: 'int' = 1) -> 'City'"


def test_names_that_exist_for_type_checkers_only():
    def charge(amount: int, ctx: CallContext, note: str = "") -> str:
        return note

    def maybe(amount: int, ctx: CallContext | None = None) -> None: ...

    assert tool(charge).takes_context == "ctx"
    assert tool(maybe).takes_context == "ctx"
    assert str(tool(charge).signature().parameters) == "(amount: 'int', note: 'str' = '') -> 'str'"


def test_what_cannot_be_resolved_counts_as_any():
    class Local:
        pass

    def odd(a: Local, b: list[Nowhere], c: int) -> Local:  # noqa: F821  # pyright: ignore[reportUndefinedVariable]
        return a

    made = tool(odd)
    assert str(made.signature().parameters) == "(a: 'Any', b: 'Any', c: 'int') -> 'Any'"
    assert made.bind(({"any": "thing"}, 1, 2), {}) == {"a": {"any": "thing"}, "b": 1, "c": 2}


def test_a_local_class_the_function_itself_uses_is_found():
    @dataclass
    class Local:
        x: int

    def make(local: Local, unknown: Nowhere) -> int:  # noqa: F821  # pyright: ignore[reportUndefinedVariable]
        return Local(local.x).x

    assert tool(make).prepare({"local": {"x": 1}, "unknown": 0}) == {"local": Local(1), "unknown": 0}


def test_a_field_that_cannot_be_resolved_makes_its_parameter_any():
    @dataclass
    class Broken:
        x: Nowhere  # noqa: F821  # pyright: ignore[reportUndefinedVariable]

    def use(broken: Broken, fine: int) -> int:
        return fine

    use.__annotations__["broken"] = Broken
    made: Any = tool(use)
    assert str(made.signature().parameters) == "(broken: 'Any', fine: 'int') -> 'int'"


def test_wrapped_functions_are_read_through():
    from functools import wraps

    def logged(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return call

    made = tool(logged(visit))
    assert made.name == "visit"
    assert made.func(**made.prepare(made.bind((), {"city": {"name": "Bonn"}}))) == City("Bonn")
