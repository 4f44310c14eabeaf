"""Rules over files: a path counts as what it leads to, whatever links, dots or capitals it is written with."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

from hatchway.gate.rules import glob_pattern

_CUSTOMARY = """
    path paths file files file_path filepath filename file_name dir directory folder root
    source destination src dst old_path new_path
"""
PATH_ARGUMENTS = frozenset(_CUSTOMARY.split())
"""Arguments that name files, by custom."""
_MOST_CHARACTERS, _MOST_NESTED = 4096, 30
_MOST_LOOKED_AT = 2_000
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP)


def paths_of(value: Any) -> list[str] | None:
    """The paths an argument names; None when it is something else."""
    if isinstance(value, str | bytes | os.PathLike):
        return [_as_text(cast("str | bytes | os.PathLike[str]", value))]
    if isinstance(value, list | tuple):
        each = [paths_of(item) for item in cast(Sequence[Any], value)]
        return None if None in each else [path for paths in each for path in paths or ()]
    return None


def _as_text(path: str | bytes | os.PathLike[str]) -> str:
    return os.fsdecode(path)


def real_path(path: str, root: Path) -> str | None:
    """Where a path leads, from the working directory; None for one that cannot be followed."""
    text = unquote(path.removeprefix("file://")) if path.startswith("file://") else path
    if not text or "\0" in text or len(text) > _MOST_CHARACTERS or text.startswith("~"):
        return None
    try:
        return os.path.realpath(os.path.join(root, text))
    except (OSError, ValueError):
        return None


def allows_path(pattern: str, path: str, root: Path) -> bool:
    """Whether the pattern names what the path leads to. A relative pattern begins in the working directory."""
    real = real_path(path, root)
    return real is not None and glob_pattern(_absolute(pattern, root)).fullmatch(real) is not None


def denies_path(pattern: str, path: str, root: Path) -> bool:
    """Whether the pattern names the path, as written or as it leads; a bare name stands for one at any depth."""
    if "\0" in path:
        return True
    home = os.path.expanduser(path) if path.startswith("~") else path
    written = os.path.normpath(
        os.path.join(root, unquote(home.removeprefix("file://")) if home.startswith("file://") else home)
    )
    wanted = [_absolute(pattern, root)] if "/" in pattern else [f"**/{pattern}", _absolute(pattern, root)]
    ways = {written, real_path(home, root) or written}
    return any(_matches_anywhere(each, way) for each in wanted for way in ways)


def _matches_anywhere(pattern: str, path: str) -> bool:
    """Whether the path, or a folder it lies in, is named; capitals do not matter."""
    found, path = glob_pattern(pattern.casefold()), path.casefold()
    return any(found.fullmatch(str(each)) for each in (path, *Path(path).parents))


def _absolute(pattern: str, root: Path) -> str:
    """Only what lies outside the working directory is followed: links inside it may be the code's own."""
    expanded = os.path.expanduser(pattern) if pattern.startswith("~") else pattern
    joined = os.path.join(root, expanded.removeprefix("./"))
    fixed = joined.split("*", 1)[0].split("?", 1)[0].rpartition("/")[0]
    if Path(fixed).is_relative_to(root) or not fixed:
        return os.path.normpath(joined)
    return os.path.normpath(os.path.realpath(fixed) + joined[len(fixed) :])


def is_within(path: str, folder: Path) -> bool:
    """Whether a real path is the folder or lies in it, by what the file system says: capitals and other names too."""
    try:
        wanted = folder.stat()
    except OSError:
        return Path(path).is_relative_to(os.path.realpath(folder))
    for each in (Path(path), *Path(path).parents):
        try:
            if os.path.samestat(each.stat(), wanted):
                return True
        except OSError:
            continue
    return _is_linked_from(path, folder)


def holds_named(path: str, patterns: Iterable[str]) -> bool:
    """Whether something below a folder has one of these names; True also where there is too much to look through."""
    seen, wanted = 0, [pattern.casefold() for pattern in patterns]
    for _, folders, files in os.walk(path):
        seen += len(folders) + len(files)
        names = [name.casefold() for name in (*folders, *files)]
        if seen > _MOST_LOOKED_AT or any(fnmatchcase(name, pattern) for name in names for pattern in wanted):
            return True
    return False


def _is_linked_from(path: str, folder: Path) -> bool:
    """Whether a file of the folder has this other name: a hard link."""
    try:
        found = os.stat(path)
        if found.st_nlink < 2 or not os.path.isfile(path):
            return False
        return any(os.path.samestat(found, each.stat()) for each in folder.rglob("*") if each.is_file())
    except OSError as e:  # of what cannot be looked at nobody knows
        return e.errno not in _NOT_THERE


def strings_in(value: Any, depth: int = 0) -> Iterable[str]:
    """Every text of an argument.

    Raises:
        ValueError: It is nested too deeply to be looked through.
    """
    if depth > _MOST_NESTED:
        raise ValueError("nested too deeply")
    if isinstance(value, str | bytes | os.PathLike):
        yield _as_text(cast("str | bytes | os.PathLike[str]", value))
    elif isinstance(value, Mapping):
        for key, item in cast(Mapping[Any, Any], value).items():
            yield from strings_in(key, depth + 1)
            yield from strings_in(item, depth + 1)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in cast(Iterable[Any], value):
            yield from strings_in(item, depth + 1)
