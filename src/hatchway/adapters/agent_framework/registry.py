"""The registry: what a provider's code may call and reach, changed under a lock and taken as a snapshot per run."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, cast
from urllib.parse import urlsplit

from agent_framework import FunctionTool

from hatchway.core.errors import InvalidTool
from hatchway.core.grants import (
    INPUT_ROOT,
    AllowedDomain,
    AllowedDomainInput,
    FileMount,
    FileMountInput,
    as_allowed_domains,
    as_file_mounts,
)

EXECUTE_CODE = "execute_code"
ToolInput = FunctionTool | Callable[..., Any]
"""A tool of the framework, or a function to be made one."""
_METHODS = frozenset(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])


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
    """Tools, mounts and domains by their keys; adding over a key replaces, removing a missing one raises KeyError."""

    def __init__(
        self, tools: Any = None, mounts: Any = (), domains: Any = (), workspace_root: str | Path | None = None
    ) -> None:
        self._lock = threading.RLock()
        self._tools: dict[str, FunctionTool] = {}
        self._mounts: dict[str, FileMount] = {}
        self._domains: dict[str, AllowedDomain] = {}
        self._workspace = as_file_mounts([(Path(workspace_root), str(INPUT_ROOT))]) if workspace_root else ()
        self._snapshot: Snapshot | None = None
        self.add_tools(tools if tools is not None else ())
        self.add_mounts(mounts)
        self.add_domains(domains)

    def snapshot(self) -> Snapshot:
        """What holds now; the same object until something changes."""
        with self._lock:
            if self._snapshot is None:
                self._snapshot = Snapshot(
                    tools=tuple(self._tools.values()),
                    mounts=(*self._workspace, *self._mounts.values()),
                    domains=tuple(self._domains.values()),
                )
            return self._snapshot

    def add_tools(self, tools: Any) -> None:
        """Add tools, or replace those of the same name; the model's own tool is left out."""
        made = [_function_tool(each) for each in _several(tools, lambda one: callable(one) or hasattr(one, "name"))]
        self._put(self._tools, [(tool.name, tool) for tool in made if tool.name != EXECUTE_CODE])

    def add_mounts(self, mounts: Any) -> None:
        """Add mounts, or replace those at the same path."""
        made = as_file_mounts(cast(Iterable[FileMountInput], _several(mounts, _is_mount)))
        self._put(self._mounts, [(mount.mount_path, mount) for mount in made])

    def add_domains(self, domains: Any) -> None:
        """Add domains, or replace those of the same target."""
        entries = cast(Iterable[AllowedDomainInput], _several(domains, _is_domain))
        made = as_allowed_domains([_without_scheme(each) for each in entries])
        self._put(self._domains, [(domain.target, domain) for domain in made])

    def tools(self) -> list[FunctionTool]:
        """Every tool."""
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
        self._drop(self._domains, as_allowed_domains([_without_scheme(domain)])[0].target)

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


def _function_tool(given: Any) -> FunctionTool:
    if isinstance(given, FunctionTool):
        return given
    if callable(given) and getattr(given, "__name__", ""):
        return FunctionTool(name=given.__name__, description=given.__doc__ or "", func=cast(Any, given))
    raise InvalidTool(
        f"{given!r:.80} is neither a FunctionTool nor a function: code cannot call it", hint="give it to the agent"
    )


def _signature(tool: FunctionTool) -> tuple[Any, ...]:
    return (id(tool), tool.name, tool.description, tool.approval_mode, json.dumps(tool.parameters(), sort_keys=True))


def _several(given: Any, is_one: Callable[[Any], bool]) -> list[Any]:
    return [given] if isinstance(given, str) or is_one(given) else list(given)


def _is_mount(given: Any) -> bool:
    return isinstance(given, tuple) and len(cast(Any, given)) == 2 and isinstance(given[1], str)


def _is_domain(given: Any) -> bool:
    if isinstance(given, AllowedDomain):
        return True
    if not isinstance(given, tuple) or len(cast(Any, given)) != 2 or not isinstance(given[0], str):
        return False
    methods: Any = cast(Any, given)[1]
    return not isinstance(methods, str | tuple) or methods in _METHODS or isinstance(methods, list)


def _without_scheme(entry: AllowedDomainInput) -> AllowedDomainInput:
    target = entry if isinstance(entry, str) else entry[0]
    host = urlsplit(target).netloc if "://" in target else target
    return host if isinstance(entry, str) else AllowedDomain(host, _methods(entry))


def _methods(entry: Any) -> Any:
    methods = entry[1]
    return (methods,) if isinstance(methods, str) else None if methods is None else tuple(methods)
