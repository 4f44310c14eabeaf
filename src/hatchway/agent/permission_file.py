"""`permissions.json`: read with the line of a mistake, written whole, shared by processes."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from hatchway.agent.json_places import JsonFile, Mistake, checked, read_json, refused
from hatchway.core.errors import InvalidSetting
from hatchway.gate.call_rules import CallRule, call_rule
from hatchway.gate.patterns import parse_pattern


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    pattern: Annotated[str, Field(min_length=1)]
    """The calls it is about."""
    reason: str = ""
    """Told to the model when it denies."""


class _Permissions(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    allowed_tools: tuple[str, ...] = ()
    """Tools, or patterns of calls, that run without asking."""
    denied_tools: tuple[str | _Entry, ...] = ()
    """Tools, or patterns of calls, that never run."""


class PermissionFile:
    """What is allowed and denied for good.

    Args:
        path: The file; nothing is allowed and nothing denied while it is not there.
        root: The working directory, where paths in patterns begin.
    """

    def __init__(self, path: Path, root: Path) -> None:
        self.path = path
        self._root = root
        self._stored = _Permissions()
        self._added: list[str] = []
        self.rules: list[CallRule] = []
        """All of it as rules of the gate."""

    def load(self) -> None:
        """Read the file.

        Raises:
            InvalidSetting: It has mistakes; each is told with line and column.
        """
        self._stored = self._read()
        self._make_rules()

    def allow(self, pattern: str) -> None:
        """Allow calls; stored by the next `save`.

        Raises:
            InvalidSetting: It is no pattern.
        """
        parse_pattern(pattern)
        if pattern not in self._added:
            self._added.append(pattern)
        self._make_rules()

    def save(self) -> None:
        """Add what was allowed here to what the file says now, which other processes may have changed.

        Raises:
            InvalidSetting: It cannot be written, or has mistakes, and then nothing is written over them.
        """
        try:
            with self._alone():
                stored = self._read()
                allowed = tuple(dict.fromkeys([*stored.allowed_tools, *self._added]))
                self._stored = stored.model_copy(update={"allowed_tools": allowed})
                _write(self.path, json.dumps(self._stored.model_dump(mode="json"), indent=2) + "\n")
        except OSError as e:
            raise InvalidSetting(f"{self.path} cannot be written: {e.strerror}") from None
        self._added.clear()
        self._make_rules()

    def _make_rules(self) -> None:
        allowed = (*self._stored.allowed_tools, *self._added)
        denied = [each if isinstance(each, _Entry) else _Entry(pattern=each) for each in self._stored.denied_tools]
        self.rules = [
            *(call_rule("allow", each, self._root) for each in allowed),
            *(call_rule("deny", each.pattern, self._root, each.reason) for each in denied),
        ]

    def _read(self) -> _Permissions:
        if not self.path.exists():
            return _Permissions()
        file = read_json(self.path)
        found = checked(file, _Permissions)
        mistakes = [
            *_mistakes(file, "allowed_tools", found.allowed_tools),
            *_mistakes(file, "denied_tools", found.denied_tools),
        ]
        if mistakes:
            raise refused(mistakes)
        return found

    @contextmanager
    def _alone(self) -> Generator[None]:
        """One process at a time; the lock is a file beside, for this one is replaced."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(
            self.path.with_name(f".{self.path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _mistakes(file: JsonFile, key: str, entries: tuple[str | _Entry, ...]) -> Iterator[Mistake]:
    for n, entry in enumerate(entries):
        try:
            parse_pattern(entry if isinstance(entry, str) else entry.pattern)
        except InvalidSetting as e:
            yield file.mistake((key, n), e.message)


def _write(path: Path, text: str) -> None:
    """Whole or not at all, also if this process is killed; what the file may be read by stays."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path.resolve())
    finally:
        fresh.unlink(missing_ok=True)
