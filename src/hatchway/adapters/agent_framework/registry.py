"""The registry: what a provider's code may call and reach, changed under a lock and taken as a snapshot per run."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from agent_framework import FunctionTool

from hatchway.adapters.agent_framework.forms import ToolServer, as_domains, as_mounts, as_tools, domain_key
from hatchway.core.errors import InvalidSetting, InvalidTool
from hatchway.core.grants import INPUT_ROOT, AllowedDomain, FileMount, as_workspace

EXECUTE_CODE = "execute_code"
"""What the model's tool is named, unless it is given another name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What holds for one run, whatever is changed meanwhile."""

    tools: tuple[FunctionTool, ...]
    mounts: tuple[FileMount, ...]
    domains: tuple[AllowedDomain, ...]
    key: tuple[Any, ...] = field(init=False)
    """Two snapshots with the same key can share an environment."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", (self.mounts, self.domains, tuple(map(_signature, self.tools))))

    @property
    def needs_approval(self) -> bool:
        """Whether one of the tools does."""
        return any(tool.approval_mode == "always_require" for tool in self.tools)


class Registry:
    """Tools, mounts and domains by their keys; adding over a key replaces, removing a missing one raises KeyError.

    Args:
        tool_name: The model's own tool, which is never offered to the code.
    """

    def __init__(
        self,
        tools: Any = None,
        mounts: Any = (),
        domains: Any = (),
        workspace_root: str | Path | None = None,
        *,
        tool_name: str = EXECUTE_CODE,
    ) -> None:
        self._lock = threading.RLock()
        self._tools: dict[str, FunctionTool | ToolServer] = {}
        self._mounts: dict[str, FileMount] = {}
        self._domains: dict[str, AllowedDomain] = {}
        root = as_workspace(workspace_root)
        self._workspace = () if root is None else (FileMount(root, str(INPUT_ROOT)),)
        self._tool_name = tool_name
        self._snapshot: Snapshot | None = None
        self.add_tools(tools if tools is not None else ())
        self.add_mounts(mounts)
        self.add_domains(domains)

    def snapshot(self) -> Snapshot:
        """What holds now; the same object until something changes. Servers nobody connected have no tools.

        Raises:
            InvalidTool: Two tools have one name.
        """
        with self._lock:
            tools = self._callable()
            if self._snapshot is None or self._snapshot.tools != tools:
                self._snapshot = Snapshot(
                    tools=tools,
                    mounts=(*self._workspace, *self._mounts.values()),
                    domains=tuple(self._domains.values()),
                )
            return self._snapshot

    def _callable(self) -> tuple[FunctionTool, ...]:
        """The tools, and those of servers; a server may have others than the last time."""
        found: dict[str, FunctionTool] = {}
        for entry in self._tools.values():
            for tool in [entry] if isinstance(entry, FunctionTool) else entry.functions:
                if tool.name in found:
                    raise InvalidTool(f"two tools are named {tool.name!r}", hint="give the server a tool_name_prefix=")
                found[tool.name] = tool
        return tuple(tool for name, tool in found.items() if name != self._tool_name)

    def servers(self) -> list[ToolServer]:
        """The servers among the tools."""
        with self._lock:
            # not by the protocol, which looks for each of its names: every run asks
            return [each for each in self._tools.values() if not isinstance(each, FunctionTool)]

    def add_tools(self, tools: Any) -> None:
        """Add tools, or replace those of the same name; the model's own tool is left out."""
        self._put(self._tools, [(tool.name, tool) for tool in as_tools(tools) if tool.name != self._tool_name])

    def add_mounts(self, mounts: Any) -> None:
        """Add mounts, or replace those at the same path."""
        made = as_mounts(mounts)
        if self._workspace and any(mount.mount_path == str(INPUT_ROOT) for mount in made):
            raise InvalidSetting(f"{INPUT_ROOT} is the workspace_root", hint="mount it below, or leave the root out")
        self._put(self._mounts, [(mount.mount_path, mount) for mount in made])

    def add_domains(self, domains: Any) -> None:
        """Add domains, or replace those of the same target."""
        self._put(self._domains, [(domain.target, domain) for domain in as_domains(domains)])

    def tools(self) -> list[FunctionTool | ToolServer]:
        """Every tool, as it was given."""
        with self._lock:
            return list(self._tools.values())

    def mounts(self) -> list[FileMount]:
        """Every mount, with absolute paths."""
        with self._lock:
            return list(self._mounts.values())

    def domains(self) -> list[AllowedDomain]:
        """Every domain."""
        with self._lock:
            return list(self._domains.values())

    def remove_tool(self, name: str) -> None:
        """Raises KeyError when there is none."""
        self._drop(self._tools, name)

    def remove_mount(self, mount_path: str) -> None:
        """Raises KeyError when there is none."""
        path = PurePosixPath(mount_path)
        self._drop(self._mounts, str(path if path.is_absolute() else INPUT_ROOT / path))

    def remove_domain(self, domain: str) -> None:
        """Raises KeyError when there is none."""
        self._drop(self._domains, domain_key(domain))

    def clear_tools(self) -> None:
        """Remove all tools."""
        self._drop_all(self._tools)

    def clear_mounts(self) -> None:
        """Remove all mounts; the workspace stays."""
        self._drop_all(self._mounts)

    def clear_domains(self) -> None:
        """Remove all domains."""
        self._drop_all(self._domains)

    def _put(self, entries: dict[str, Any], pairs: Sequence[tuple[str, Any]]) -> None:
        with self._lock:
            entries.update(pairs)
            self._snapshot = None

    def _drop(self, entries: dict[str, Any], key: str) -> None:
        with self._lock:
            del entries[key]
            self._snapshot = None

    def _drop_all(self, entries: dict[str, Any]) -> None:
        with self._lock:
            entries.clear()
            self._snapshot = None


def _signature(tool: FunctionTool) -> tuple[Any, ...]:
    return (id(tool), tool.name, tool.description, tool.approval_mode, json.dumps(tool.parameters(), sort_keys=True))
