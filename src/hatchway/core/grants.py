"""Grants: the files and the network targets a sandbox is given. The three input forms become one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath, PurePosixPath
from typing import NamedTuple, TypeVar

from hatchway.core.errors import InvalidSetting

T = TypeVar("T")


class FileMount(NamedTuple):
    """A host file or directory, shown inside the sandbox at `mount_path`, read-only."""

    host_path: str | Path
    mount_path: str


class AllowedDomain(NamedTuple):
    """A network target and the HTTP methods granted on it; None grants all."""

    target: str
    methods: tuple[str, ...] | None = None


FileMountInput = str | Path | tuple[str | Path, str] | FileMount
"""`"data/x.csv"` (same relative path on both sides), `(host, inside)`, or a `FileMount`."""
AllowedDomainInput = str | tuple[str, str | Sequence[str]] | AllowedDomain
"""`"github.com"`, `("github.com", "GET")`, `("github.com", ["GET", "HEAD"])`, or an `AllowedDomain`."""

INPUT_ROOT = PurePosixPath("/input")
"""Where relative mount paths land."""


def as_file_mounts(mounts: Iterable[FileMountInput]) -> tuple[FileMount, ...]:
    """Mounts with absolute, normal paths on both sides.

    Raises:
        InvalidSetting: A host path does not exist or cannot be read, a mount path leaves its root, or two share one
            mount path.
    """
    resolved = [_file_mount(m) for m in _several("file_mounts", mounts)]
    seen: dict[str, FileMount] = {}
    for mount in resolved:
        if mount.mount_path in seen:
            raise InvalidSetting(f"two mounts share the path {mount.mount_path}: give each its own")
        seen[mount.mount_path] = mount
    return tuple(resolved)


def _file_mount(mount: FileMountInput) -> FileMount:
    if isinstance(mount, str | Path):
        mount = str(mount)
        if Path(mount).is_absolute():
            raise InvalidSetting(f"mount {mount!r}: an absolute host path needs a path inside: ({mount!r}, 'name')")
        mount = FileMount(mount, mount)
    if not (len(mount) == 2 and all(isinstance(side, str | PurePath) for side in mount)):
        raise InvalidSetting(f"mount {mount!r:.200} is no mount", hint="'data/x.csv', or (host path, path inside)")
    host, inside = Path(mount[0]).expanduser(), PurePosixPath(mount[1])
    if ".." in inside.parts or "\0" in str(inside) or str(inside) in ("", ".", "/"):
        raise InvalidSetting(f"mount path {mount[1]!r} must name a place inside the sandbox, without '..'")
    return FileMount(_readable(host, "mount"), str(inside if inside.is_absolute() else INPUT_ROOT / inside))


def as_workspace(given: str | Path | None, setting: str = "workspace_root") -> Path | None:
    """The directory a sandbox shows as `/input`, as an absolute path; None when there is none.

    Args:
        given: The directory.
        setting: What the caller calls it.

    Raises:
        InvalidSetting: It is no directory, or cannot be read.
    """
    if given is None:
        return None
    path = _readable(Path(given).expanduser(), setting)
    if not path.is_dir():
        raise InvalidSetting(f"{setting} {str(given)!r} is not a directory")
    return path


def as_environment(given: Mapping[str, str] | None) -> dict[str, str]:
    """The environment variables of a sandbox.

    Raises:
        InvalidSetting: A name or a value is none that a variable can have. The value is not told: it may be a key.
    """
    for name, value in (given or {}).items():
        for what, text in (("the name", name), ("the value", value)):
            if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InvalidSetting(f"env[{name!r}]: {what} is {type(text).__name__}, not text", hint="use str()")
        if not name or "=" in name or "\0" in name or "\0" in value:
            raise InvalidSetting(
                f"env[{name!r}] cannot be set: a name is not empty and has no '=', and neither has a null character",
                hint="env={'NAME': 'value'}",
            )
    return dict(given or {})


def _readable(path: Path, setting: str) -> Path:
    """The place itself. A look now is a courtesy: what holds is what the host finds when the code starts."""
    try:
        is_folder = path.is_dir()
        os.stat(path)
    except FileNotFoundError:
        raise InvalidSetting(f"{setting} {str(path)!r} does not exist on the host") from None
    except OSError as e:
        hint = f"see `namei -l {path}`: which folder is closed" if isinstance(e, PermissionError) else ""
        raise InvalidSetting(f"{setting} {str(path)!r} cannot be read: {e.strerror}", hint=hint) from None
    if not os.access(path, os.R_OK | (os.X_OK if is_folder else 0)):
        hint = f"chmod u+r{'x' if is_folder else ''} {path}, or run as its owner"
        raise InvalidSetting(f"{setting} {str(path)!r} cannot be read: Permission denied", hint=hint)
    return path.resolve()


def as_allowed_domains(domains: Iterable[AllowedDomainInput]) -> tuple[AllowedDomain, ...]:
    """Domains with upper-case methods and lower-case targets.

    Raises:
        InvalidSetting: An entry has none of the three forms, or grants no method at all.
    """
    return tuple(_allowed_domain(d) for d in _several("allowed_domains", domains))


def _allowed_domain(domain: AllowedDomainInput) -> AllowedDomain:
    match domain:
        case str(target):
            methods = None
        case (str(target), str(method)):
            methods = (method,)
        case (str(target), [*names]) if names and all(isinstance(name, str) for name in names):
            methods = tuple(names)
        case AllowedDomain(target=str(target), methods=None):
            methods = None
        case _:
            raise InvalidSetting(
                f"{domain!r} is not a domain with methods",
                hint="write it as 'github.com', ('github.com', 'GET') or AllowedDomain('github.com', ('GET', 'HEAD'))",
            )
    return AllowedDomain(target.strip().rstrip(".").lower(), methods and tuple(m.upper() for m in methods))


def _several(setting: str, given: Iterable[T]) -> Iterable[T]:
    if isinstance(given, str | Path | FileMount | AllowedDomain):
        raise InvalidSetting(f"{setting} takes a list, not one entry", hint=f"{setting}=[{given!r}]")
    return given
