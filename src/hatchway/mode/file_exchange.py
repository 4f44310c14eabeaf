"""Files of a session's working directory, handed in and out by actions of our own. What comes out may be hostile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, cast

from hatchway.core.errors import CodeExecutionError, InvalidSetting
from hatchway.core.limits import Limits
from hatchway.core.results import ExecFile
from hatchway.mode.session import ModeSession

SOURCE = Path(__file__).with_name("exchange_files.py")
GIVEN = "_hatchway_files"
MOST_ENTRIES = 5_000
"""A working directory with more is somebody's project: it is not searched for what the code made."""
ACTION = f"{{source}}\nglobals().pop('exchange_files')(globals().pop('{GIVEN}'))"


class FileExchange:
    """What lies in the working directory of one session.

    Args:
        session: Where the code runs.
        limits: How many files come out, and how many bytes.
    """

    def __init__(self, session: ModeSession, limits: Limits) -> None:
        self._session, self._limits = session, limits
        self._seen: Mapping[str, Any] | None = None
        self._staged: dict[str, bytes] = {}
        self._is_too_much = False

    async def stage(self, files: Sequence[ExecFile]) -> None:
        """Write input files, before the code runs. One that was given before as it is stays as the code left it.

        Raises:
            InvalidSetting: They cannot be written.
        """
        if self._is_too_much and not files:
            return
        digests = {file.name: sha256(file.content).digest() for file in files}
        fresh = {file.name: file.content for file in files if self._staged.get(file.name) != digests[file.name]}
        try:
            told = await self._run(fresh, seen=self._seen)
        except CodeExecutionError as e:
            raise InvalidSetting(f"the input files cannot be staged: {e.message.splitlines()[-1]}") from e
        self._is_too_much = bool(told.get("is_too_much"))
        self._seen = _as_dict(told.get("seen")) or {}
        self._staged.update(digests)

    async def collect(self) -> tuple[tuple[ExecFile, ...], str]:
        """The files that are new or changed since the last time, and a line about those left out."""
        if self._is_too_much:
            return (), ""
        try:
            told = await self._run({}, seen=self._seen or {})
        except CodeExecutionError as e:
            return (), f"the files cannot be collected: {e.message.splitlines()[-1]}\n"
        files, seen = _as_dict(told.get("files")), _as_dict(told.get("seen"))
        if files is None or seen is None or not all(_is_file(*item) for item in files.items()):
            return (), "the files cannot be collected: the code changed how they are read\n"
        if told.get("is_too_much"):
            return (), f"the files are not collected: there are more than {MOST_ENTRIES} in the working directory\n"
        self._seen = seen
        left_out = told.get("left_out")
        names = ", ".join(map(str, cast("list[Any]", left_out))) if isinstance(left_out, list) else ""
        note = f"left out, by name or size: {names[:1000]}\n" if names else ""
        return tuple(ExecFile(name=name, content=files[name]) for name in sorted(files)), note

    async def _run(self, files: Mapping[str, bytes], *, seen: Mapping[str, Any] | None) -> Mapping[str, Any]:
        limits = self._limits
        most_bytes = min(limits.file_bytes, limits.value_bytes // 2)  # they cross as one value, bytes as base64
        most = {"most_bytes": most_bytes, "most_files": limits.output_files, "most_entries": MOST_ENTRIES}
        given = {"files": files, "seen": seen, **most}
        result = await self._session.run(ACTION.format(source=SOURCE.read_text()), inputs={GIVEN: given})
        return _as_dict(result.output) or {}


def _as_dict(value: Any) -> dict[str, Any] | None:
    """What came out of the sandbox, if it is a dict at all; its keys and values may be anything."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _is_file(name: Any, content: Any) -> bool:
    if not isinstance(name, str) or not isinstance(content, bytes) or not name.isprintable():
        return False
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts
