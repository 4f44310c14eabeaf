"""The formats pydantic writes for types JSON lacks, read back as tests on Python values."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID


def _parses(parse: Callable[[str], Any]) -> Callable[[Any], bool]:
    def test(text: Any) -> bool:
        try:
            parse(text)
        except (ValueError, ArithmeticError):
            return False
        return True

    return test


_is_date, _is_datetime, _is_time = map(_parses, (date.fromisoformat, datetime.fromisoformat, time.fromisoformat))
_is_uuid, _is_decimal = _parses(UUID), _parses(Decimal)


def _is_duration(text: str) -> bool:
    return text.lstrip("+-").startswith("P") or ":" in text


def _or_text(kind: type, reads: Callable[[str], bool]) -> Callable[[Any], bool]:
    return lambda value: reads(value) if isinstance(value, str) else isinstance(value, kind)


PYTHON_FORMATS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "binary": (lambda value: isinstance(value, bytes), "bytes"),
    "base64url": (lambda value: isinstance(value, bytes), "bytes"),
    "date": (
        lambda value: _is_date(value) if isinstance(value, str) else type(value) is date,
        "a date (or its ISO text)",
    ),
    "date-time": (_or_text(datetime, _is_datetime), "a datetime (or its ISO text)"),
    "time": (_or_text(time, _is_time), "a time (or its ISO text)"),
    "duration": (_or_text(timedelta, _is_duration), "a timedelta (or its ISO text)"),
    "uuid": (_or_text(UUID, _is_uuid), "a UUID (or its text)"),
    "decimal": (
        lambda value: _is_decimal(value) if isinstance(value, str) else _exact(value),
        "a Decimal (or an integer, or decimal text)",
    ),
}
"""Format → test and noun phrase. Texts are taken as well as real values: not every guest has every type."""


def _exact(value: Any) -> bool:
    return isinstance(value, (int, Decimal)) and not isinstance(value, bool)
