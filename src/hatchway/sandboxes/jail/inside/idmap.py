"""Id-mapped mounts: files of one owner seen as files of another, so that root can grant what only root may read."""

from __future__ import annotations

import os

from . import kernel


def owned_by(source: str, owner: int) -> int | None:
    """A detached tree where the files of the owner of `source` belong to uid `owner`. None: not supported there."""
    found = os.stat(source)
    if found.st_uid == owner:
        return None
    try:
        namespace = _namespace_with(f"{found.st_uid} {owner} 1", f"{found.st_gid} {owner} 1")
    except OSError:
        return None
    try:
        return kernel.idmapped_tree(source, namespace)
    except OSError:
        return None  # a file system without id maps: the code sees what others may see
    finally:
        os.close(namespace)


def _namespace_with(uid_map: str, gid_map: str) -> int:
    """A user namespace that has these maps, held by a process that lives for a moment."""
    ready, go = os.pipe(), os.pipe()
    pid = os.fork()
    if not pid:
        try:
            kernel.unshare(kernel.NEWUSER)
            os.write(ready[1], b"x")
            os.close(go[1])
            os.read(go[0], 1)
        finally:
            os._exit(0)
    os.close(ready[1])
    try:
        if not os.read(ready[0], 1):
            raise OSError("no user namespace for an id map")
        write_maps(pid, uid_map, gid_map)
        return os.open(f"/old/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        for fd in (ready[0], *go):
            os.close(fd)
        os.waitpid(pid, 0)


def write_maps(pid: int, uid_map: str, gid_map: str, proc: str = "/old/proc") -> None:
    """Set the id maps of another process's user namespace."""
    for name, text in (("setgroups", "deny"), ("uid_map", uid_map), ("gid_map", gid_map)):
        fd = os.open(f"{proc}/{pid}/{name}", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)
