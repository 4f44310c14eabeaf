"""The root the code sees: a tmpfs that holds read-only binds of what was granted, and nothing else of the host."""

from __future__ import annotations

import os
from typing import Any

from . import idmap, kernel

STAGE = "/tmp"  # any directory of the host will do: it is covered in our mount namespace only
NEW, OLD, PLACES, WORKSPACE = "/new", "/old", "/places", "/workspace"
INPUT = "/input"
SHOWN = kernel.ATTR_NOSUID | kernel.ATTR_NODEV
SEALED = kernel.ATTR_RDONLY | SHOWN
DEVICES = ("null", "zero", "full", "random", "urandom")


def build(launch: dict[str, Any], owner: int | None) -> None:
    """Gather the new root at `NEW`, the host's being at `OLD`. `owner`: the code's uid, for a root caller."""
    kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("tmpfs", STAGE, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755,size=4m")
    os.mkdir(STAGE + NEW, 0o755)
    os.mkdir(STAGE + OLD, 0o755)
    kernel.pivot_root(STAGE, STAGE + OLD)
    os.chdir("/")
    kernel.mount("tmpfs", NEW, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755,size=4m")
    for directory in ("/proc", "/tmp", "/dev", "/etc", *launch["mount_points"]):
        os.makedirs(NEW + directory, 0o755, exist_ok=True)
    for target, source in launch["binds"]:
        _bind(OLD + source, NEW + target)
    if launch["workspace"] is not None:
        _show_workspace(launch, owner)
    for target, source in launch["grants"]:
        _grant(OLD + source, NEW + target, owner)
    for target, source in launch["package_folders"]:
        _grant(OLD + source, NEW + target, owner, SEALED)  # with NOEXEC no extension module could be loaded
    for path, is_writable in launch["shown"]:
        _grant(OLD + path, NEW + path, owner, SHOWN if is_writable else SEALED)
    for target in launch["masks"]:
        _mask(NEW + target)
    _add_devices()
    _add_texts(launch)


def _bind(source: str, target: str) -> None:
    make_place(source, target)
    kernel.bind(source, target)
    kernel.restrict_mount(target, SEALED)


class GrantRefused(OSError):
    """A granted file cannot be shown: it is gone, or not ours to show."""


def _grant(source: str, target: str, owner: int | None, attributes: int = SEALED | kernel.ATTR_NOEXEC) -> None:
    """A granted file or directory. For a root caller it looks like the code's own, so that the code may read it."""
    try:
        make_place(source, target)
        tree = idmap.owned_by(source, owner) if owner is not None else None
        if tree is None:
            kernel.bind(source, target)
        else:
            kernel.attach_tree(tree, target)
            os.close(tree)
        kernel.restrict_mount(target, attributes)
    except OSError as e:
        reason = f"{source[len(OLD) :]}: {os.strerror(e.errno or 0)}"
        raise GrantRefused(e.errno or 0, reason) from None


def _show_workspace(launch: dict[str, Any], owner: int | None) -> None:
    """The workspace as /input. Mounts below it get places in a layer above: nothing is made in it, or copied."""
    inside = [(target, source) for target, source in launch["grants"] if target.startswith(INPUT + "/")]
    if not inside:
        _grant(OLD + launch["workspace"], NEW + INPUT, owner)
        return
    for target, source in inside:
        make_place(OLD + source, PLACES + target[len(INPUT) :])
    _grant(OLD + launch["workspace"], WORKSPACE, owner)
    flags = kernel.MS_RDONLY | kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
    kernel.mount("overlay", NEW + INPUT, "overlay", flags, f"lowerdir={PLACES}:{WORKSPACE}")


def make_place(source: str, target: str) -> None:
    """An empty file or directory for a mount to lie over."""
    if os.path.exists(target):
        return
    if os.path.isdir(source):
        os.makedirs(target, 0o755, exist_ok=True)
        return
    os.makedirs(os.path.dirname(target), 0o755, exist_ok=True)
    os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o644))


def _mask(target: str) -> None:
    """Cover a directory by an empty one, a file by nothing."""
    if os.path.isdir(target):
        kernel.mount(
            "tmpfs", target, "tmpfs", kernel.MS_RDONLY | kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755,size=4k"
        )
    elif os.path.exists(target):
        kernel.bind(OLD + "/dev/null", target)
        kernel.restrict_mount(target, SEALED)


def _add_devices() -> None:
    for name in DEVICES:
        make_place(OLD + "/dev/" + name, NEW + "/dev/" + name)
        kernel.bind(OLD + "/dev/" + name, NEW + "/dev/" + name)
        kernel.restrict_mount(NEW + "/dev/" + name, kernel.ATTR_NOSUID | kernel.ATTR_NOEXEC)
    os.symlink("/tmp", NEW + "/dev/shm")  # POSIX semaphores and shared memory, under the scratch quota
    os.symlink("/proc/self/fd", NEW + "/dev/fd")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink(f"/proc/self/fd/{number}", NEW + "/dev/" + name)


def _add_texts(launch: dict[str, Any]) -> None:
    for path, text in launch["texts"]:
        os.makedirs(os.path.dirname(NEW + path), 0o755, exist_ok=True)
        with open(NEW + path, "w") as f:
            f.write(text)
    for path, target in launch["links"]:
        os.makedirs(os.path.dirname(NEW + path), 0o755, exist_ok=True)
        os.symlink(target, NEW + path)


def enter() -> None:
    """Make `NEW` the root and let go of the host's. The caller is pid 1 of its own pid namespace.

    /proc is mounted while the host's is still in sight: without one fully visible the kernel refuses a new one, and
    every child will mount its own.
    """
    kernel.bind(NEW, NEW)  # what a more privileged namespace mounted is locked; its copy may become the root
    os.chdir(NEW)
    kernel.mount("proc", NEW + "/proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
    kernel.pivot_root(".", ".")
    kernel.detach(".")  # the old root lies on top of the new one
    os.chdir("/")
    kernel.restrict_mount("/", SEALED, is_recursive=False)
