"""Typed Python APIs of MCP servers as files: `mcptools/<server>/<tool>.py`, importable inside sandboxes with files."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from hatchway.core.errors import HatchwayError, InvalidSetting
from hatchway.tools.functions import Tool
from hatchway.tools.mcp.servers import McpServers
from hatchway.tools.module_text import MARK, module_text

PACKAGE = "mcptools"
"""The folder of generated APIs, and the package the code imports."""
_log = logging.getLogger("hatchway")


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What generating changed on disk."""

    written: tuple[Path, ...]
    """Files that are new or different."""
    unchanged: int
    """Files that were right already, and were not touched."""
    removed: tuple[Path, ...]
    """Files of tools that are gone."""


async def generate_mcp_sources(
    config: Mapping[str, Any] | McpServers, root: str | Path = ".", *, follow: bool = False
) -> Written:
    """Write the typed API of each server to `<root>/mcptools/<server>/<tool>.py`.

    Each module has `Params`, `Result` where the server tells what it gives or that was seen, `run(params)` and
    `arun(params)`. Files that are right already are not touched; those of tools that are gone are removed.

    Args:
        config: Servers by name, as in `mcpServers` of a settings file.
        root: The folder `mcptools` lies in.
        follow: Do it again whenever a server's tools change or give something new, until these `McpServers` close.

    Raises:
        InvalidSetting: An entry is not valid, or there is nothing to follow: entries are connected for this call only.
        ServerUnavailable: A server cannot be had.
    """
    if isinstance(config, McpServers):
        if follow:
            config.on_changed.append(_Following(config, Path(root)).changed)
        return write_sources(await config.tools(), config.spaces.values(), root)
    if follow:
        raise InvalidSetting("follow=True needs McpServers, which stay connected", hint="McpServers({…})")
    async with McpServers(config) as servers:
        return write_sources(await servers.tools(), servers.spaces.values(), root)


class _Following:
    """Writes the sources again, once for however many changes come meanwhile."""

    def __init__(self, servers: McpServers, root: Path) -> None:
        self._servers, self._root = servers, root
        self._is_writing = self._is_wanted = False

    def changed(self) -> None:
        self._is_wanted = True
        if not self._is_writing:
            self._is_writing = True
            self._servers.beside(self._write())

    async def _write(self) -> None:
        try:
            while self._is_wanted:
                self._is_wanted = False
                tools = await self._servers.tools()
                await asyncio.to_thread(write_sources, tools, self._servers.spaces.values(), self._root)
        except HatchwayError as e:
            _log.warning("the sources in %s are not what the servers offer: %s", self._root / PACKAGE, e)
        finally:
            self._is_writing = False


def write_sources(tools: Iterable[Tool], spaces: Iterable[str], root: str | Path = ".") -> Written:
    """Write the modules of these tools, all there are of these servers.

    Raises:
        InvalidSetting: A file that was not generated is in the way.
    """
    package = Path(root) / PACKAGE
    host = files("hatchway.tools").joinpath("host_module.py").read_text(encoding="utf-8")
    texts = {package / "__init__.py": f"{MARK}\n", package / "_host.py": host}
    folders = {package / space: space for space in spaces}
    texts |= {folder / "__init__.py": f"{MARK}\n" for folder in folders}
    for tool in tools:
        space, _, name = tool.name.rpartition(".")
        texts[package / space / f"{name}.py"] = module_text(tool.as_seen())
    changed = [path for path, text in texts.items() if _write(path, text)]
    gone = [path for folder in folders for path in folder.glob("*.py") if path not in texts and _is_ours(path)]
    for path in gone:
        path.unlink()
    return Written(written=tuple(changed), unchanged=len(texts) - len(changed), removed=tuple(gone))


def _write(path: Path, text: str) -> bool:
    """Whether the file had to be written; a reader sees the old file or the new one, never a part."""
    if path.exists():
        if path.read_text(encoding="utf-8", errors="replace") == text:
            return False
        if not _is_ours(path):
            raise InvalidSetting(f"{path} was not made by Hatchway", hint="move it away, and generate again")
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)
    return True


def _is_ours(path: Path) -> bool:
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.readline().startswith("# Made by Hatchway")
