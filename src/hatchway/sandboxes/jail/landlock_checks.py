"""What must be so before the landlock tier can hold, and show what is granted."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import sys
from pathlib import Path

from hatchway.core.errors import SandboxUnavailable
from hatchway.sandboxes.jail.inside import kernel
from hatchway.sandboxes.jail.interpreter import InterpreterFiles
from hatchway.sandboxes.shown_files import check_there
from hatchway.sandboxes.wall import landlock

NEEDED_VERSION = 6
"""The first Landlock that keeps signals and abstract sockets in."""


def check_shown(path: Path, *, is_writable: bool) -> None:
    """For a root caller the code runs as a uid that owns nothing: what is granted must be open to others.

    Raises:
        SandboxUnavailable: It is not.
        InvalidSetting: It is gone, or cannot be read.
    """
    check_there(path)
    if not kernel.has_uids_to_give():
        return
    need = stat.S_IROTH | (stat.S_IXOTH if path.is_dir() else 0) | (stat.S_IWOTH if is_writable else 0)
    is_reached = all(folder.stat().st_mode & stat.S_IXOTH for folder in path.parents)
    if not is_reached or path.stat().st_mode & need != need:
        flags = f"o+r{'w' if is_writable else ''}X"
        raise SandboxUnavailable(
            f"the landlock tier cannot show {path} for root: the code has a uid of its own, which is kept out",
            hint=f"chmod {flags} {path}, run as an ordinary user, or use the namespaces tier",
        )


def check_landlock() -> None:
    """Refuse what is weaker than the tier promises.

    Raises:
        SandboxUnavailable: The kernel's Landlock is absent or too old.
    """
    version = landlock.abi() if sys.platform == "linux" else 0
    if version < NEEDED_VERSION:
        has = f"version {version}" if version else "none"
        raise SandboxUnavailable(
            f"the landlock tier is refused here: it needs Landlock version {NEEDED_VERSION}, this kernel has {has}",
            hint="boot Linux 6.12 or later with lsm=landlock in its command line",
        )


def check_uid() -> None:
    """Refuse to run code as root.

    Raises:
        SandboxUnavailable: There is no other uid.
    """
    if kernel.is_only_root():
        raise SandboxUnavailable(
            f"the landlock tier is refused here: {kernel.ONLY_ROOT}",
            hint="run as an ordinary user, or map more uids: unshare --map-users=auto, or podman's /etc/subuid",
        )


def check_path_rules() -> None:
    """What is denied by name is held by a warden that reads the paths out of the code's memory.

    Raises:
        SandboxUnavailable: No process may read another's memory here.
    """
    room = ctypes.create_string_buffer(b"x")
    vector = struct.pack("@PN", ctypes.addressof(room), 1)
    libc, one = ctypes.CDLL(None, use_errno=True), ctypes.c_ulong(1)
    if libc.process_vm_readv(os.getpid(), vector, one, vector, one, ctypes.c_ulong(0)) != 1:
        why = os.strerror(ctypes.get_errno())
        raise SandboxUnavailable(
            f"path rules are refused here in the landlock tier: process_vm_readv: {why}",
            hint="in a container: docker run --cap-add=SYS_PTRACE …; or leave deny_read and deny_write out",
        )


def check_reachable(files: InterpreterFiles, packages: tuple[str, ...]) -> None:
    """For a root caller the code runs as a uid that owns nothing: it must be let through to what it reads.

    Raises:
        SandboxUnavailable: A directory on the way is closed to others.
    """
    if not kernel.has_uids_to_give():
        return
    for path in (files.executable, *files.sys_path, *packages):
        for folder in Path(path).parents:
            if not folder.stat().st_mode & stat.S_IXOTH:
                raise SandboxUnavailable(
                    f"the landlock tier is refused here: {path} lies in {folder}, which is closed to others",
                    hint=f"chmod o+x {folder}, or JailSandbox(python='/usr/bin/python3')",
                )
