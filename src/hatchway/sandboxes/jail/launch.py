"""The launch description: everything a zygote is told about the jail it makes. One zygote per description."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hatchway.core.errors import InvalidSetting
from hatchway.core.grants import INPUT_ROOT, FileMount
from hatchway.core.paths import PathRules
from hatchway.core.signing import default_hash_seed
from hatchway.sandboxes.jail.egress import PROXY_PORT, Egress
from hatchway.sandboxes.jail.interpreter import InterpreterFiles
from hatchway.sandboxes.jail.system_files import system_files
from hatchway.sandboxes.quota import Quota

INSIDE = Path(__file__).parent / "inside"
GUEST = Path(__file__).parents[2] / "transports" / "guest"
CORE = Path(__file__).parents[2] / "core"
WALL = Path(__file__).parents[1] / "wall"
PACKAGES = {"_hatchway_jail": [str(INSIDE)], "_hatchway_guest": [str(GUEST), str(CORE)], "_hatchway_wall": [str(WALL)]}
NOT_PRELOADED = ("__main__", "http", "standalone")
PRELOADED = (
    "ast", "asyncio", "base64", "bisect", "codecs", "collections", "concurrent.futures.thread", "contextlib", "copy",
    "dataclasses", "datetime", "decimal", "encodings.ascii", "encodings.latin_1", "enum", "functools", "hashlib",
    "heapq", "inspect", "io", "itertools", "json", "linecache", "math", "operator", "os", "pathlib", "random", "re",
    "resource", "string", "struct", "subprocess", "textwrap", "threading", "time", "traceback", "types", "typing",
    "urllib.parse", "uuid",
)  # fmt: skip
"""Standard modules imported before the first fork: code finds them for nothing, a cold start pays for them."""
OUTPUT = "/output"
PENDING_SIGNALS = 512
"""Signals with a value that wait for all its processes, and timers: without them the caller could make none."""
NO_END = 1 << 30
"""Seconds that no process lives to see."""
TEXTS = {
    "/etc/passwd": "code:x:65534:65534:code:/tmp:/bin/false\n",
    "/etc/group": "code:x:65534:\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "/etc/hosts": "127.0.0.1 localhost\n",
}
PACKAGE_ROOT = "/packages"
_OWN = ("/dev/", "/proc/", "/etc/", f"{OUTPUT}/", f"{INPUT_ROOT}/", f"{PACKAGE_ROOT}/")
_TAKEN = ("/dev", "/proc", "/tmp", "/etc", "/usr", "/lib", "/lib64", OUTPUT, PACKAGE_ROOT)
_COVERED = (*_TAKEN, "/bin", "/sbin", str(INPUT_ROOT))


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A jail as it is wanted."""

    interpreter: InterpreterFiles
    """The Python the code runs in."""
    workspace: Path | None = None
    """Shown read-only as `/input`."""
    mounts: tuple[FileMount, ...] = ()
    """Shown read-only at their own paths, over the workspace."""
    packages: tuple[str, ...] = ()
    """Folders with packages, last on the import path of the code and of nobody else."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables the code sees beside the few every jail sets."""
    egress: Egress | None = None
    """Its way to the network; None where no domain was granted."""
    paths: PathRules = field(default_factory=PathRules)
    """Shown at their own paths."""
    is_command: bool = False
    """Children become programs instead of guests: the system's own directories are in sight."""
    hash_seed: int = field(default_factory=default_hash_seed)
    """`PYTHONHASHSEED` of the zygote and so of every child."""

    def __post_init__(self) -> None:
        for mount in self.mounts:
            if any(mount.mount_path == taken or mount.mount_path.startswith(taken + "/") for taken in _TAKEN):
                raise InvalidSetting(f"nothing can be mounted at {mount.mount_path}: the jail has its own there")
        for path in (*self.paths.read, *self.paths.write):
            if str(path) in _COVERED or str(path).startswith(_OWN):
                raise InvalidSetting(f"{path} cannot be shown: the jail has its own there")

    @property
    def has_files(self) -> bool:
        """Whether the code gets `/input` and `/output`."""
        return self.workspace is not None or bool(self.mounts)

    def message(self, cgroup_folders: Sequence[str]) -> dict[str, Any]:
        """The description as the keeper reads it, with the folders that it removes at the end."""
        files = system_files() if self.is_command else self.interpreter
        shown = self._shown()
        return {
            "host": os.getpid(),
            "cgroups": cgroup_folders,
            "packages": PACKAGES,
            "preload": [] if self.is_command else PRELOADED,
            "guest": [] if self.is_command else [f"_hatchway_guest.{name}" for name in _guest_modules()],
            "sys_path": self.interpreter.sys_path,
            "is_command": self.is_command,
            "environment": {
                **{"HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8", "PATH": ""},
                **(self.egress.environment if self.egress else {}),
                **self.environment,
            },
            "mount_points": [str(INPUT_ROOT), OUTPUT] if self.has_files else [],
            "binds": [(path, os.path.realpath(path)) for path in files.binds if not self._has_own(path)],
            "links": files.links,
            "masks": [folder for folder in files.masks if folder not in self.packages],
            "package_folders": [(_package_place(n), folder) for n, folder in enumerate(self.packages, 1)],
            "workspace": str(self.workspace) if self.workspace else None,
            "grants": [(mount.mount_path, str(mount.host_path)) for mount in self.mounts],
            "texts": [*TEXTS.items(), *(self.egress.texts.items() if self.egress else ())],
            "proxy_port": PROXY_PORT if self.egress else 0,
            "has_output": self.has_files,
            "shown": shown,
            "writable": [path for path, is_writable in shown if is_writable],
            "in_scratch": [path for path, _ in shown if path.startswith("/tmp/")],
            "workdir": str(self.paths.workdir or "/tmp"),
            "import_path": self._import_path(),
            "denied": self.denied(),
        }

    def denied(self, *, is_at_home: bool = False) -> dict[str, list[str]] | None:
        """The patterns as the warden reads them; None when there are none. At home: by the host's own paths."""
        if not self.paths.is_guarded:
            return None
        places = [(str(p), str(p)) for p in (*self.paths.read, *self.paths.write)]
        places += [(str(m.host_path), m.mount_path) for m in self.mounts]
        places += [(str(self.workspace), str(INPUT_ROOT))] if self.workspace else []
        if is_at_home:
            places = [(host, host) for host, _ in places]
        return {
            "roots": ["/tmp", *(inside if os.path.isdir(host) else os.path.dirname(inside) for host, inside in places)],
            "deny_read": [each for pattern in self.paths.deny_read for each in _inside(pattern, places)],
            "deny_write": [each for pattern in self.paths.deny_write for each in _inside(pattern, places)],
        }

    def _has_own(self, path: str) -> bool:
        """Whether the jail makes a file of its own there: the certificates its proxy is believed by."""
        return self.egress is not None and any(text.startswith(f"{path}/") for text in self.egress.texts)

    def _shown(self) -> list[tuple[str, bool]]:
        """Paths shown as they are, outer ones first, and whether they can be changed."""
        access = {str(path): False for path in self.paths.read} | {str(path): True for path in self.paths.write}
        return sorted(access.items())

    def _import_path(self) -> list[str]:
        """Modules of the directory the host named for the code, found after all others."""
        return [str(self.paths.workdir)] if self.paths.workdir and not self.is_command else []

    def landlock_message(self) -> dict[str, Any]:
        """The description as the spawner of the landlock tier reads it; there everything lies where the host has it."""
        files = self.interpreter
        system = (*system_files().binds, "/dev/urandom", "/dev/random") if self.is_command else files.readable
        return {
            "packages": PACKAGES,
            "sys_path": files.sys_path,
            "package_path": self.packages,
            "readable": [*system, *self.packages],
            "granted": [*map(str, self.granted), *map(str, self.paths.read)],
            "listable": () if self.is_command else files.listable,
            "writable": [str(path) for path in self.paths.write],
            "workdir": str(self.paths.workdir) if self.paths.workdir else None,
            "import_path": self._import_path(),
            "denied": self.denied(is_at_home=True),
            "is_command": self.is_command,
            "has_output": self.has_files,
        }

    @property
    def granted(self) -> list[Path]:
        """Everything of the host that is shown below `/input` or elsewhere."""
        return [*(Path(m.host_path) for m in self.mounts), *([self.workspace] if self.workspace else [])]


def _inside(pattern: str, places: list[tuple[str, str]]) -> list[str]:
    """A pattern as absolute ones of the jail; a bare name stays as it is."""
    if "/" not in pattern:
        return [pattern]
    if not pattern.startswith("/"):
        return [f"{inside.rstrip('/')}/{pattern.removeprefix('./')}" for _, inside in places]
    found = [inside + pattern[len(host) :] for host, inside in places if f"{pattern}/".startswith(f"{host}/")]
    return found + [inside for host, inside in places if host.startswith(f"{pattern}/")]


def _package_place(number: int) -> str:
    """Not at its own path: that may lie below the scratch folder."""
    return f"{PACKAGE_ROOT}/{number}"


def _guest_modules() -> list[str]:
    names = [path.stem for path in sorted(GUEST.glob("*.py"))]
    return [*(name for name in names if name not in NOT_PRELOADED), "codec"]


def quota_order(quota: Quota, **extra: tuple[int, int]) -> dict[str, Any]:
    """A quota as the zygote reads it, with `extra` rlimits; they are soft and hard."""
    cpu = max(1, round(min(quota.cpu_seconds, NO_END)))
    return {
        "disk_bytes": int(quota.disk_bytes),
        "disk_files": int(quota.disk_files),
        "rlimits": {
            **extra,
            "RLIMIT_NPROC": (int(quota.processes),) * 2,
            "RLIMIT_CPU": (cpu, cpu + 1),  # a signal that tells why, then one that cannot be ignored
            "RLIMIT_CORE": (1, 1),  # at 0 a core dump still goes to the program that the machine may have for them
            "RLIMIT_MEMLOCK": (0, 0),
            "RLIMIT_MSGQUEUE": (0, 0),
            # Counted per user, the caller included, through every namespace: signals that wait, and timers.
            "RLIMIT_SIGPENDING": (PENDING_SIGNALS, PENDING_SIGNALS),
        },
    }
