"""What checks assert with: strict comparison, and messages that say what was expected and what came."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, cast
from uuid import UUID

SLACK_SECONDS = 5.0
"""How late a limit may strike here: the suite runs on busy machines; exact numbers belong to a benchmark."""


def shown(value: Any) -> str:
    """The value's repr, short enough for one line of a table."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):
        text = f"<a {type(value).__name__} that cannot be shown>"
    return text if len(text) <= 200 else f"{text[:120]} … ({len(text)} characters) … {text[-40:]}"


def fail(message: str) -> NoReturn:
    """End the check as failed."""
    raise AssertionError(message)


def equal(what: str, got: Any, expected: Any) -> None:
    """Same type and same value, all the way down."""
    if not same(got, expected):
        fail(f"{what}: expected {shown(expected)}, got {shown(got)}")


def contains(what: str, text: str, *parts: str) -> None:
    """Every part is in the text."""
    for part in parts:
        if part not in text:
            fail(f"{what}: expected {part!r} in it, got {shown(text)}")


def same(got: Any, expected: Any) -> bool:
    """Equal in type and value; a UUID may have become its text, a frozenset a set."""
    if isinstance(expected, UUID):
        return got == expected or got == str(expected)
    if isinstance(expected, frozenset):
        return isinstance(got, set | frozenset) and frozenset(cast("set[Any]", got)) == expected
    if type(got) is not type(expected):
        return False
    if isinstance(expected, float):
        return repr(got) == repr(expected)  # tells -0.0 from 0.0, and NaN is itself
    if isinstance(expected, list | tuple):
        return _same_items(got, cast("Sequence[Any]", expected))
    if isinstance(expected, dict):
        pairs = cast("dict[Any, Any]", expected)
        return _same_items(list(got), list(pairs)) and _same_items(list(got.values()), list(pairs.values()))
    return bool(got == expected)


def _same_items(got: Sequence[Any], expected: Sequence[Any]) -> bool:
    return len(got) == len(expected) and all(same(g, e) for g, e in zip(got, expected, strict=True))


@contextmanager
def raises(kind: type[BaseException] | tuple[type[BaseException], ...], what: str, *parts: str) -> Generator[None]:
    """The block raises one of these classes, with each part in its text."""
    kinds = kind if isinstance(kind, tuple) else (kind,)
    wanted = " or ".join(k.__name__ for k in kinds)
    try:
        yield
    except kinds as e:
        contains(f"the {type(e).__name__} of {what}", str(e), *parts)
    except Exception as e:
        fail(f"{what}: expected {wanted}, got {type(e).__name__}: {shown(str(e))}")
    else:
        fail(f"{what}: expected {wanted}, and nothing was raised")
