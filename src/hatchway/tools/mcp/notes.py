"""What is kept of a server from one process to the next: its tools, so that it need not be started to be offered, and
what they were seen to give. One file per server, signed: what anybody else writes there is not read."""

from __future__ import annotations

import hmac
import json
import logging
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from hatchway.core.errors import CheckpointRefused, InvalidSetting
from hatchway.core.signing import load_key, seal, unseal
from hatchway.tools.mcp.naming import as_identifier
from hatchway.tools.mcp.settings import ServerSettings

FOLDER = Path(".hatchway/mcp")
"""Where commands keep them, in the working directory."""
_KEPT_SECONDS = 7 * 24 * 3600.0
"""How long a list is believed that nobody looked at."""
_MAX_BYTES = 64 << 20
_KIND = "notes of an MCP server"
_log = logging.getLogger("hatchway")


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """About one server."""

    listed: Sequence[Mapping[str, Any]] | None = None
    """Its tools, by the names on the wire; None where they are not known, or not believed any more."""
    seen: Mapping[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """What its tools gave, by tool."""


class NotesFolder:
    """The notes of all servers of a host.

    Args:
        folder: Made when something is written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, name: str, settings: ServerSettings) -> Notes:
        """What is known of a server with these settings; nothing where the file is gone, old, or not ours."""
        try:
            path = self._path(name, settings)
            if path.stat().st_size > _MAX_BYTES:
                return Notes()
            payload, _ = unseal(path.read_bytes(), {"kind": _KIND, "file": path.name})
            told: Any = json.loads(payload)
        except FileNotFoundError:
            return Notes()
        except (OSError, ValueError, InvalidSetting, CheckpointRefused) as e:
            _log.warning("the notes about MCP server %s are not used: %s", name, e)
            return Notes()
        held = cast(dict[str, Any], told)
        is_fresh = 0 <= time.time() - held["at"] < _KEPT_SECONDS
        return Notes(listed=held["listed"] if is_fresh else None, seen=held["seen"])

    def write(self, name: str, settings: ServerSettings, notes: Notes) -> None:
        """Keep these; a folder that cannot be written to is told once per write and does no other harm."""
        told = {"at": time.time(), "listed": notes.listed, "seen": notes.seen}
        try:
            path = self._path(name, settings)
            beside = path.with_name(f".{path.name}.{os.getpid()}")
            sealed = seal(json.dumps(told).encode(), {"kind": _KIND, "file": path.name})
            self._folder.mkdir(parents=True, exist_ok=True)
            beside.write_bytes(sealed)
            beside.replace(path)
        except (OSError, InvalidSetting) as e:
            _log.warning("what is known of MCP server %s cannot be kept: %s", name, e)

    def _path(self, name: str, settings: ServerSettings) -> Path:
        """One file for each server and what it is started with; its name tells nothing of the secrets among that."""
        told = settings.model_dump_json(include={"command", "args", "env", "cwd", "url", "headers"})
        digest = hmac.new(load_key(), told.encode(), "sha256").hexdigest()[:16]
        return self._folder / f"{as_identifier(name)[:60]}-{digest}.json"
