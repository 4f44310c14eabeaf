"""Which files of the host make up a Python: what a jail must show for it to run, and no package of anyone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from functools import cache
from glob import glob
from typing import Any

from hatchway.core.errors import InvalidSetting

_SYSTEM_LIBRARIES = ("/lib", "/lib32", "/lib64", "/libx32", "/usr/lib", "/usr/lib32", "/usr/lib64")
_SYSTEM_FILES = ("/etc/ld.so.cache", "/usr/share/zoneinfo")
COMMANDS = "/usr/bin:/bin"
_FONTS = ("/etc/fonts", "/usr/share/fontconfig", "/usr/share/fonts")  # without them fc-list complains to the code
_PACKAGE_FOLDERS = ("site-packages", "dist-packages")
_QUESTION = """
import os, sys, sysconfig
base = getattr(sys, "_base_executable", None) or sys.executable
paths = sysconfig.get_paths(vars={"base": sys.base_prefix, "platbase": sys.base_exec_prefix})
shared = [sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("INSTSONAME")]
library = os.path.join(*shared) if all(shared) and sysconfig.get_config_var("Py_ENABLE_SHARED") else ""
told = {"executable": os.path.realpath(base), "prefix": os.path.realpath(sys.base_prefix),
        "stdlib": paths["stdlib"], "platstdlib": paths["platstdlib"], "library": library,
        "version": list(sys.version_info[:2])}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class InterpreterFiles:
    """A Python as a jail shows it."""

    executable: str
    """The real file: no virtual environment, no link."""
    version: str
    """As `"3.12"`."""
    binds: tuple[str, ...]
    """Files and directories shown read-only at their own paths."""
    links: tuple[tuple[str, str], ...]
    """Symbolic links made beside them: path and target."""
    masks: tuple[str, ...]
    """Directories within the binds that are shown empty: the packages of the host."""
    sys_path: tuple[str, ...]
    """The standard library."""
    readable: tuple[str, ...]
    """The binds without the masks: what to allow where nothing can be covered."""
    listable: tuple[str, ...]
    """Of the standard library the folders masks lie in: an import lists them to find what is readable there."""


@cache
def interpreter_files(python: str | None = None) -> InterpreterFiles:
    """The files of an interpreter; None: the one that runs this.

    Raises:
        InvalidSetting: `python` is no Python that runs, or one older than 3.9.
    """
    told = _asked(python or sys.executable)
    if tuple(told["version"]) < (3, 9):
        raise InvalidSetting(f"{python} is Python {'.'.join(map(str, told['version']))}; a jail needs 3.9 or later")
    stdlib = dict.fromkeys(os.path.realpath(told[key]) for key in ("stdlib", "platstdlib"))
    dynamic = [os.path.join(path, "lib-dynload") for path in stdlib if os.path.isdir(os.path.join(path, "lib-dynload"))]
    system = [path for path in _SYSTEM_LIBRARIES if os.path.isdir(path)]
    shown = [path for path in system if not os.path.islink(path)]
    wanted = [told["executable"], *_library_folders(told["prefix"], [*stdlib]), told["library"], *_SYSTEM_FILES]
    binds = _without_nested([*shown, *(os.path.realpath(p) for p in wanted if p and os.path.exists(p))])
    masks = _package_folders(binds)
    return InterpreterFiles(
        executable=told["executable"],
        version=".".join(map(str, told["version"])),
        binds=tuple(binds),
        links=tuple((path, os.readlink(path)) for path in system if os.path.islink(path)),
        masks=tuple(masks),
        sys_path=(*stdlib, *dynamic),
        readable=tuple(part for path in binds for part in _parts_without(path, masks)),
        listable=tuple(path for path in stdlib if any(mask.startswith(path + "/") for mask in masks)),
    )


def with_commands(files: InterpreterFiles) -> InterpreterFiles:
    """The same Python with the system's commands in sight, a shell among them."""
    folders = [path for path in COMMANDS.split(":") if os.path.isdir(path)]
    shown = [path for path in folders if not os.path.islink(path)] + [path for path in _FONTS if os.path.isdir(path)]
    return replace(
        files,
        binds=tuple(_without_nested([*files.binds, *shown])),
        links=(*files.links, *((path, os.readlink(path)) for path in folders if os.path.islink(path))),
        readable=(*files.readable, *shown),
    )


def _asked(python: str) -> dict[str, Any]:
    if python == sys.executable:
        return _told_here()
    try:
        done = subprocess.run(
            [python, "-I", "-S", "-c", f"{_QUESTION}import json\nprint(json.dumps(told))"],
            capture_output=True,
            timeout=30,
            env={},
            check=True,
        )
        return json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as e:
        raise InvalidSetting(f"python={python!r} is no Python that runs: {e}", hint=f"try: {python} -V") from e


def _told_here() -> dict[str, Any]:
    answered: dict[str, Any] = {}
    exec(_QUESTION, answered)  # nothing is printed: stdout is that of all threads, and several may ask at once
    return answered["told"]


def _library_folders(prefix: str, stdlib: list[str]) -> list[str]:
    """A prefix of its own (pyenv, uv, conda) brings its shared libraries in `lib`; a system's are shown anyway."""
    if prefix in ("/usr", "/usr/local"):
        return stdlib
    return [os.path.join(prefix, "lib"), *stdlib]


def _without_nested(paths: list[str]) -> list[str]:
    kept: list[str] = []
    for path in sorted(set(paths)):
        if not any(path.startswith(other + "/") for other in kept):
            kept.append(path)
    return kept


def _package_folders(binds: list[str]) -> list[str]:
    places = [pattern for path in binds for pattern in (path, f"{path}/python*")]
    folders = [f for place in places for name in _PACKAGE_FOLDERS for f in glob(f"{place}/{name}")]
    return sorted({f for f in folders if os.path.isdir(f) and not os.path.islink(f)})


def _parts_without(path: str, masks: list[str]) -> list[str]:
    """The path, or as much of what lies in it as leaves the masks out. Where a link leads has its own rule, or none."""
    if path in masks or os.path.islink(path):
        return []
    if not any(mask.startswith(path + "/") for mask in masks):
        return [path]
    return [part for name in sorted(os.listdir(path)) for part in _parts_without(os.path.join(path, name), masks)]
