"""Host mounts: which files of this machine go to a vendor. Nothing outside the allowed roots ever does."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, cast

from hatchway.core.errors import InvalidSetting
from hatchway.hosted.given import several, texts
from hatchway.hosted.globs import matches, pattern


@dataclass(frozen=True, slots=True)
class VfsPath:
    """A path of segments, without the ways out of it."""

    segments: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "segments", several("segments", self.segments))
        if bad := [part for part in self.segments if not _is_segment(part)]:
            raise InvalidSetting(f"{bad[0]!r} is no segment of a path", hint='VfsPath(("workspace", "app"))')

    def __str__(self) -> str:
        return "/".join(self.segments)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostMount:
    """Files of this machine for the code at a vendor. They are uploaded; the vendor decides where they lie.

    Raises:
        InvalidSetting: The path is absolute or leaves its root, or a glob or the cap is none.
    """

    host_path: str
    """A file or folder, relative to one of the adapter's `allowed_host_roots`."""
    mount_path: VfsPath | None = None
    """What the model is told it stands for; no vendor lets us choose the place."""
    include_glob: tuple[str, ...] = ()
    """Files that match one of these (`*`, `?`, `[ab]`, `**` over folders); none takes all."""
    exclude_glob: tuple[str, ...] = ()
    """Files that match one of these are left out."""
    max_bytes: int | None = None
    """All files together; past it nothing is uploaded."""
    follow_symlinks: bool = False
    """Whether links are followed; also then not out of the roots."""

    def __post_init__(self) -> None:
        given = os.fspath(self.host_path) if isinstance(cast(Any, self.host_path), str | os.PathLike) else None
        if not isinstance(given, str):
            raise InvalidSetting(f"host_path is a path, not {self.host_path!r:.80}", hint='HostMount(host_path="app")')
        path = PurePosixPath(given)
        if not given or path.is_absolute() or ".." in path.parts or "\0" in given:
            raise InvalidSetting(
                f"host_path {given!r} is relative to an allowed root, without '..'",
                hint="give the adapter the folder as allowed_host_roots, and the rest of the path here",
            )
        if self.max_bytes is not None and not (type(self.max_bytes) is int and self.max_bytes >= 0):
            raise InvalidSetting(f"max_bytes is at least 0, not {self.max_bytes!r:.80}", hint="leave it out for no cap")
        if not isinstance(cast(object, self.follow_symlinks), bool):  # "no" would follow them
            raise InvalidSetting(f"follow_symlinks is True or False, not {self.follow_symlinks!r:.80}")
        object.__setattr__(self, "host_path", str(path))
        object.__setattr__(self, "mount_path", _vfs_path(self.mount_path))
        for name in ("include_glob", "exclude_glob"):
            object.__setattr__(self, name, texts(name, getattr(self, name)))
            for glob in getattr(self, name):
                pattern(glob)


def as_mount(given: Any) -> HostMount:
    """A mount, also in the plain form with `mount_path` as text.

    Raises:
        InvalidSetting: It is none.
    """
    if isinstance(given, HostMount):
        return given
    try:
        return HostMount(**cast("Mapping[str, Any]", given))
    except TypeError as e:
        raise InvalidSetting(
            f"a host mount is not given like this: {e}", hint='HostMount(host_path="app", include_glob=("*.py",))'
        ) from None


def _vfs_path(given: Any) -> VfsPath | None:
    if isinstance(given, str):
        return VfsPath(tuple(part for part in given.split("/") if part))
    if given is not None and not isinstance(given, VfsPath):
        raise InvalidSetting(f"mount_path is a VfsPath, not {given!r:.80}", hint='VfsPath(("workspace", "app"))')
    return given


def _is_segment(part: Any) -> bool:
    return isinstance(part, str) and part not in ("", ".", "..") and "/" not in part and "\0" not in part


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalFile:
    """A file about to go to a vendor, read."""

    name: str
    """What the model is told it stands for, `/` between parts."""
    content: bytes
    digest: str
    """SHA-256 of the content: the same bytes are uploaded once."""

    @property
    def upload_name(self) -> str:
        """A single name, as a vendor takes it."""
        return self.name.replace("/", "__")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRules:
    """What a vendor takes."""

    max_file_bytes: int
    suffixes: frozenset[str] | None = None
    """With their dot, in lower case; None takes all."""

    def check(self, path: Path, size: int) -> None:
        """Refuse a file before it is read.

        Raises:
            InvalidSetting: The vendor would not take it.
        """
        if self.suffixes is not None and path.suffix.lower() not in self.suffixes:
            raise InvalidSetting(
                f"{path.name!r}: files of type {path.suffix or '(none)'} are not supported",
                hint="leave it out with exclude_glob, or give it as .txt or .zip",
            )
        if size > self.max_file_bytes:
            raise InvalidSetting(
                f"{path.name!r} has {size} bytes; a file may have {self.max_file_bytes}",
                hint="leave it out with exclude_glob, or split it",
            )


def collect(mounts: Iterable[HostMount], roots: Sequence[Path], rules: FileRules) -> list[LocalFile]:
    """The files of the mounts, read; nothing is read before all of a mount were checked.

    Raises:
        InvalidSetting: A path that is not there or leaves the roots, a file the vendor does not take, too many bytes.
    """
    found: dict[str, LocalFile] = {}
    for mount in mounts:
        root, start = _located(mount, roots)
        paths = [path for path in _files(start, mount) if _is_wanted(path, start, mount)]
        for path in paths:
            _check_inside(path, root)
        if not paths:
            raise InvalidSetting(
                f"the mount {mount.host_path!r} has no file for the code",
                hint="check host_path, include_glob and exclude_glob; links need follow_symlinks=True",
            )
        total = 0
        for path in paths:
            size = path.stat().st_size
            rules.check(path, size)
            total += size
            if mount.max_bytes is not None and total > mount.max_bytes:
                raise InvalidSetting(
                    f"the mount {mount.host_path!r} has more than its {mount.max_bytes} bytes",
                    hint="raise max_bytes, or leave files out with exclude_glob",
                )
        for path in paths:
            file = _read(path, _name(path, start, mount), rules)
            found.setdefault(file.name, file)
    return list(found.values())


def _located(mount: HostMount, roots: Sequence[Path]) -> tuple[Path, Path]:
    for root in roots:
        real_root = root.resolve()
        path = real_root / mount.host_path
        if not os.path.lexists(path):
            continue
        if not mount.follow_symlinks and _resolved(path) != path:
            raise InvalidSetting(f"{mount.host_path!r} goes through a link", hint="HostMount(follow_symlinks=True)")
        _check_inside(path, real_root)
        return real_root, path
    allowed = ", ".join(str(root) for root in roots) or "none: give the adapter allowed_host_roots"
    raise InvalidSetting(f"{mount.host_path!r} is in none of the allowed roots", hint=f"they are {allowed}")


def _check_inside(path: Path, root: Path) -> None:
    if not _resolved(path).is_relative_to(root):
        raise InvalidSetting(
            f"{path.name!r} leads out of the allowed root",
            hint="leave it out with exclude_glob, or allow where it leads",
        )


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # which of them depends on the version of Python
        raise InvalidSetting(
            f"{path.name!r} is a link that leads back to itself", hint="mend the link, or mount another path"
        ) from None


def _files(start: Path, mount: HostMount) -> Generator[Path]:
    """The regular files, in the order of their names."""
    if start.is_file():
        yield start
        return
    for folder, folders, names in os.walk(start, followlinks=False):
        folders.sort()
        for name in sorted(names):
            path = Path(folder) / name
            if path.is_symlink() and not mount.follow_symlinks:
                continue
            if path.is_file():  # no pipes, no devices
                yield path


def _is_wanted(path: Path, start: Path, mount: HostMount) -> bool:
    relative = path.name if path == start else path.relative_to(start).as_posix()
    is_in = not mount.include_glob or any(matches(relative, glob) for glob in mount.include_glob)
    return is_in and not any(matches(relative, glob) for glob in mount.exclude_glob)


def _name(path: Path, start: Path, mount: HostMount) -> str:
    relative = path.name if path == start else path.relative_to(start).as_posix()
    place = mount.host_path if mount.mount_path is None else str(mount.mount_path)
    if path == start and mount.mount_path is None:
        return mount.host_path
    place = "" if place == "." else place
    return f"{place}/{relative}" if place else relative


def _read(path: Path, name: str, rules: FileRules) -> LocalFile:
    """The file's bytes, of the very file that was checked."""
    descriptor = os.open(path.resolve(), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as f:
        is_regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        content = f.read(rules.max_file_bytes + 1) if is_regular else b""
    if not is_regular or len(content) > rules.max_file_bytes:
        raise InvalidSetting(f"{name!r} changed while it was looked at", hint="try again")
    return LocalFile(name=name, content=content, digest=hashlib.sha256(content).hexdigest())
