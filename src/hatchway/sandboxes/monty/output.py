"""`/output` in Monty: a private folder of the host, written by Monty's own mount, read when the action has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

import pydantic_monty as pm

from hatchway.core.errors import SandboxUnavailable
from hatchway.core.limits import Limits
from hatchway.core.results import ExecFile
from hatchway.sandboxes.held_folder import HeldFolder
from hatchway.sandboxes.monty.failures import NO_SPACE
from hatchway.sandboxes.output_folder import OutputFolder

PLACE = "/output"
_MAKING = ("open", "Path.write_text", "Path.write_bytes", "Path.append_text", "Path.append_bytes", "Path.mkdir")
FULL: pm.ExternalResult = {"exc_type": "OSError", "message": NO_SPACE}


class MontyOutput:
    """The folder of one execution or session. It is owned: `close` it.

    Args:
        on_close: Told, with what tells when it is removed.

    Raises:
        SandboxUnavailable: It cannot be made.
    """

    def __init__(self, on_close: Callable[[MontyOutput, asyncio.Future[None]], None]) -> None:
        self._on_close = on_close
        try:
            self._held = HeldFolder("output")
            self._output = OutputFolder(self._held.opened())
        except OSError as e:
            raise SandboxUnavailable(f"no folder for {PLACE} can be made: {e}", hint="see `df` and TMPDIR") from None
        self._folder = self._held.path
        self._mounts: list[pm.MountDir] = []
        self._made = 0

    def mount(self, limits: Limits) -> pm.MountDir:
        """The folder as an action sees it, which may fill what is left of it."""
        left = max(0, limits.disk_bytes - sum(f.stat().st_size for f in self._files()))
        mount = pm.MountDir(host_path=self._folder, virtual_path=PLACE, mode="read-write", write_bytes_limit=left)
        self._mounts.append(mount)
        return mount

    def refusal(self, function_name: str, limits: Limits) -> pm.ExternalResult | None:
        """Why the code cannot make another file or folder, if it wants to and there are too many."""
        if function_name not in _MAKING:
            return None
        self._made += 1
        if self._made <= limits.disk_files:
            return None
        self._made = sum(1 for _ in Path(self._folder).rglob("*"))  # most calls made nothing new: count what is there
        return FULL if self._made >= limits.disk_files else None

    async def collected(self, limits: Limits) -> tuple[ExecFile, ...]:
        """As `GuestOutput` says."""
        return await self._output.collected(limits)

    def kept(self) -> dict[str, bytes]:
        """What is in it now, for a checkpoint."""
        return {str(file.relative_to(self._folder)): file.read_bytes() for file in self._files()}

    def put(self, kept: Mapping[str, bytes], *, is_given: bool) -> None:
        """Fill it as it was; what was given already is given again only if the code changes it."""
        for name, content in kept.items():
            file = Path(self._folder, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            if is_given:
                self._output.staged(name, file.stat())

    def close(self) -> None:
        """Remove it, in a thread. Legal twice."""
        while self._mounts:
            self._mounts.pop().close()
        if self._output.fd >= 0:
            self._output.close()
            self._on_close(self, asyncio.get_running_loop().run_in_executor(None, self._held.remove))

    def _files(self) -> list[Path]:
        """Monty makes no links, and nobody else writes here."""
        return [file for file in Path(self._folder).rglob("*") if file.is_file()]
