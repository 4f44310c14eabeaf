"""A kept micro-VM, seen from the host: the keeper's process, its folders, and the lines it speaks."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from hatchway.core import codec
from hatchway.core.errors import SandboxUnavailable
from hatchway.sandboxes.output_folder import OutputFolder

LINE_BYTES = 96 << 20
"""The longest line that is read: one value at its limit, as JSON."""
START_SECONDS = 60.0


class KeptVm:
    """One keeper and the micro-VM it owns; used by one action at a time."""

    def __init__(self, process: asyncio.subprocess.Process, folder: tempfile.TemporaryDirectory[str]) -> None:
        self._process, self._folder = process, folder
        self.output = OutputFolder(os.open(folder.name, os.O_RDONLY | os.O_DIRECTORY))

    @classmethod
    async def start(cls, make: Mapping[str, Any], domains: list[tuple[str, list[str] | None]]) -> KeptVm:
        """A micro-VM that is ready for an action.

        Raises:
            SandboxUnavailable: It does not start here.
        """
        folder = tempfile.TemporaryDirectory(prefix="hatchway-hyperlight-")
        known = {name: os.environ[name] for name in ("PYTHONPATH", "LD_LIBRARY_PATH") if name in os.environ}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "hatchway.sandboxes.hyperlight.inside.keeper",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            env=known, limit=LINE_BYTES, start_new_session=True,
        )  # fmt: skip
        kept = cls(process, folder)
        settings = {"make": {**make, "output_dir": folder.name}, "domains": domains}
        try:
            await asyncio.wait_for(kept._ready(settings), START_SECONDS)
        except BaseException:
            await kept.close()
            raise
        return kept

    def send(self, message: bytes) -> None:
        """Send a line; to a keeper that is gone nothing is sent."""
        assert self._process.stdin is not None
        if not self._process.stdin.is_closing():
            self._process.stdin.write(message.rstrip(b"\n") + b"\n")

    async def heard(self) -> dict[str, Any] | None:
        """The next line; None when the keeper is gone, or says what it never would."""
        assert self._process.stdout is not None
        try:
            line = await self._process.stdout.readline()
            told = codec.loads(line) if line else None
        except (ValueError, codec.Malformed):
            return None
        return cast(dict[str, Any], told) if isinstance(told, dict) else None

    def clear_output(self) -> None:
        """Empty `/output` for the next action."""
        for path in sorted(Path(self._folder.name).rglob("*"), reverse=True):
            with suppress(OSError):
                path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()

    def kill(self) -> None:
        """End the micro-VM now."""
        with suppress(ProcessLookupError):
            self._process.kill()

    async def close(self) -> None:
        """End it and remove its folders. Legal twice."""
        self.kill()
        await self._process.wait()
        self.output.close()
        with suppress(OSError):
            self._folder.cleanup()

    async def _ready(self, settings: Mapping[str, Any]) -> None:
        self.send(json.dumps(settings).encode())
        if await self.heard() != {"type": "ready"}:
            self.kill()
            assert self._process.stderr is not None
            said = (await self._process.stderr.read(10_000)).decode("utf-8", "replace").strip().splitlines()
            raise SandboxUnavailable(
                f"Hyperlight does not start: {said[-1] if said else 'it said nothing'}", hint="hatchway doctor"
            )
