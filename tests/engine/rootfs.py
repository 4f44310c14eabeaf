"""A root file system made of this machine's Python, its libraries and a few programs, as a tar stream for an import."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO

PROGRAMS = ("sh", "bash", "tar", "cat", "sleep", "id", "env", "true", "mkdir", "rm", "ls")
LEFT_OUT = {
    "site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3", "ensurepip", "turtledemo", "tkinter",
}  # fmt: skip
FOLDERS = ("dev", "etc", "input", "output", "proc", "run", "sys", "tmp", "usr/bin", "var")
TEXTS = {
    "etc/passwd": "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
}


def write(to: IO[bytes]) -> None:
    """Write the whole tree; everything in it belongs to root, and all may read it."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    python = Path(os.path.realpath(getattr(sys, "_base_executable", sys.executable)))
    base = {"base": sys.base_prefix, "platbase": sys.base_exec_prefix}
    stdlib = Path(sysconfig.get_paths(vars=base)["stdlib"])
    with tarfile.open(fileobj=to, mode="w|") as tree:
        for folder in FOLDERS:
            _add_folder(tree, folder)
        for name, text in TEXTS.items():
            _add_bytes(tree, name, text.encode())
        binaries = {"usr/local/bin/python3": python}
        binaries |= {f"bin/{name}": Path(found).resolve() for name in PROGRAMS if (found := shutil.which(name))}
        for name, path in binaries.items():
            tree.add(path, name, recursive=False, filter=_plain)
        tree.add(stdlib, f"usr/local/lib/{version}", filter=_plain)
        for library in sorted(
            _libraries(
                [*binaries.values(), *stdlib.glob("lib-dynload/[!_]*.so"), *stdlib.glob("lib-dynload/_[!t]*.so")]
            )
        ):
            tree.add(os.path.realpath(library), library.lstrip("/"), recursive=False, filter=_plain)
        if os.path.exists("/etc/ld.so.cache"):
            tree.add("/etc/ld.so.cache", "etc/ld.so.cache", filter=_plain)


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    path = Path(entry.name)
    if LEFT_OUT & set(path.parts) or path.suffix == ".a" or ".opt-" in path.name or path.name.startswith("_tkinter"):
        return None
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mode |= 0o555 if entry.isdir() or entry.mode & 0o100 else 0o444
    return entry


def _add_folder(tree: tarfile.TarFile, name: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = tarfile.DIRTYPE, 0o755
    tree.addfile(entry)


def _add_bytes(tree: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), 0o644
    tree.addfile(entry, io.BytesIO(content))


def _libraries(binaries: Iterable[Path]) -> set[str]:
    """The shared libraries of all of them, by the paths under which the loader finds them."""
    told = subprocess.run(["ldd", *map(str, binaries)], capture_output=True, text=True).stdout
    return set(re.findall(r"(?:=> |^\s+)(/\S+) \(0x", told, re.MULTILINE))


if __name__ == "__main__":
    write(sys.stdout.buffer)
