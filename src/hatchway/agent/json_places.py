"""JSON files people write by hand: read with the place of everything in them, so that a mistake has a line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast, get_args

from pydantic import BaseModel, ValidationError

from hatchway.core.errors import InvalidSetting

Model = TypeVar("Model", bound=BaseModel)
Keys = tuple[str | int, ...]
_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()
_MAX_BYTES = 4 * 1024**2
_SHOWN = (str, int, float)
_IN_JSON = {"tuple_type": "Input should be a list"}
"""What pydantic calls by another word than JSON does."""


class Mistake(NamedTuple):
    """What is wrong, and where."""

    offset: int
    """Characters from the beginning of the file."""
    line: str
    """For the person who wrote the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonFile:
    """A JSON object and where its parts stand."""

    path: Path
    value: Mapping[str, Any]
    text: str
    offsets: Mapping[Keys, int]
    """Where each key, and each item of a list, begins."""

    def mistake(self, keys: Sequence[str | int], told: str) -> Mistake:
        """One mistake as a line: file, line, column, setting and what is wrong with it."""
        at = tuple(keys)
        while at not in self.offsets:
            at = at[:-1]
        shown = ".".join(str(key) for key in keys)
        offset = self.offsets[at]
        line = f"{self.path}:{_line_column(self.text, offset)}: {shown + ': ' if shown else ''}{told}"
        return Mistake(offset, line)


def refused(mistakes: Iterable[Mistake]) -> InvalidSetting:
    """The error that tells all mistakes, in the order in which they stand."""
    return InvalidSetting("\n".join(dict.fromkeys(mistake.line for mistake in sorted(mistakes))))


def read_json(path: Path) -> JsonFile:
    """The JSON object in a file.

    Raises:
        InvalidSetting: The file cannot be read, is no JSON, no object, or has a key twice; with line and column.
    """
    text = _read(path)
    offsets: dict[Keys, int] = {}
    try:
        value: Any = json.loads(text, parse_constant=_refuse_constant)
        _walk(text, 0, (), offsets)
    except json.JSONDecodeError as e:
        raise InvalidSetting(f"{path}:{e.lineno}:{e.colno}: {e.msg}", hint="mend the JSON there") from None
    except _Twice as e:
        raise InvalidSetting(f"{path}:{_line_column(text, e.at)}: the key {e.key!r} stands there twice") from None
    except (RecursionError, ValueError) as e:
        told = "too deep" if isinstance(e, RecursionError) else str(e)
        raise InvalidSetting(f"{path}: {told}") from None
    if not isinstance(value, dict):
        raise InvalidSetting(f"{path}:1:1: a JSON object is expected", hint="begin with { and end with }")
    return JsonFile(path=path, value=cast(dict[str, Any], value), text=text, offsets=offsets)


def checked(file: JsonFile, kind: type[Model]) -> Model:
    """The object as settings of a kind.

    Raises:
        InvalidSetting: All mistakes, a line each; close matches of unknown keys are named.
    """
    try:
        return kind.model_validate(file.value)
    except ValidationError as e:
        raise refused(told(file, (), error, kind) for error in e.errors()) from None


def told(file: JsonFile, above: Keys, error: Mapping[str, Any], kind: type[BaseModel]) -> Mistake:
    """One mistake in words for the person who wrote the file.

    Args:
        file: Where it is.
        above: The keys under which settings of this kind stand.
        error: What pydantic says.
        kind: What the settings should be.
    """
    loc: Keys = tuple(error["loc"])
    keys = above
    for key in loc:  # pydantic also names the members of unions it tried
        if (*keys, key) in file.offsets or (key == loc[-1] and error["type"] == "missing"):
            keys = (*keys, key)
    if error["type"] != "extra_forbidden":
        given = error["input"]
        said = _IN_JSON.get(error["type"]) or str(error["msg"])
        return file.mistake(keys, said + (f", not {given!r}" if isinstance(given, _SHOWN) else ""))
    known = _names(kind, loc[:-1])
    close = get_close_matches(str(loc[-1]), known, n=1, cutoff=0.5)
    meant = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known)}"
    return file.mistake(keys, f"no such setting; {meant}")


def _names(kind: type[BaseModel], where: Sequence[str | int]) -> list[str]:
    """The settings a place of the file may have."""
    for key in where:
        inner = next((f.annotation for n, f in kind.model_fields.items() if key in (n, f.alias)), None)
        models = [each for each in (inner, *get_args(inner)) if isinstance(each, type) and issubclass(each, BaseModel)]
        kind = models[0] if models else kind
    return [field.alias or name for name, field in kind.model_fields.items()]


class _Twice(Exception):
    def __init__(self, key: str, at: int) -> None:
        super().__init__(key)
        self.key, self.at = key, at


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise InvalidSetting(f"{path} is larger than {_MAX_BYTES >> 20} MiB: no settings file is")
        return path.read_text(encoding="utf-8-sig")
    except OSError as e:
        raise InvalidSetting(f"{path} cannot be read: {e.strerror}") from None
    except UnicodeDecodeError as e:
        raise InvalidSetting(f"{path} is not UTF-8 text: byte {e.start}") from None


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is no number of JSON")


def _walk(text: str, at: int, keys: Keys, offsets: dict[Keys, int]) -> int:
    """Note where the value begins and what is in it; where it ends. The text is known to be JSON."""
    at = _skip(text, at)
    offsets.setdefault(keys, at)
    if text[at] == "{":
        return _walk_object(text, at, keys, offsets)
    if text[at] == "[":
        end, n = _skip(text, at + 1), 0
        while text[end] != "]":
            end = _skip(text, _walk(text, end, (*keys, n), offsets))
            end, n = (_skip(text, end + 1) if text[end] == "," else end), n + 1
        return end + 1
    return _DECODER.raw_decode(text, at)[1]


def _walk_object(text: str, at: int, keys: Keys, offsets: dict[Keys, int]) -> int:
    at = _skip(text, at + 1)
    while text[at] != "}":
        key, end = _DECODER.raw_decode(text, at)
        if (*keys, key) in offsets:
            raise _Twice(key, at)
        offsets[*keys, key] = at
        at = _skip(text, _walk(text, _skip(text, end) + 1, (*keys, key), offsets))
        at = _skip(text, at + 1) if text[at] == "," else at
    return at + 1


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _line_column(text: str, at: int) -> str:
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at)
    return f"{line}:{column}"
