"""The cache of environments: one folder per key, built once, whole or not there."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import secrets
import shutil
import stat
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

from hatchway.core.errors import InvalidSetting, SandboxUnavailable
from hatchway.sandboxes.packages.requirements import OnProgress, Packages
from hatchway.sandboxes.packages.uv import find_uv, install

LOOK_SECONDS = 0.1
"""Between two looks at whether somebody else has built it."""
_ABI = (
    "import json, sys, sysconfig; v = sysconfig.get_config_var; "
    "print(json.dumps([sys.implementation.cache_tag, v('SOABI') or '', sysconfig.get_platform()]))"
)


@cache
def abi_of(python: str) -> str:
    """What decides which wheels fit an interpreter.

    Raises:
        InvalidSetting: It is no Python that runs.
    """
    try:
        done = subprocess.run([python, "-I", "-S", "-c", _ABI], capture_output=True, timeout=30, env={}, check=True)
        return "/".join(json.loads(done.stdout))
    except (OSError, subprocess.SubprocessError, ValueError) as e:
        raise InvalidSetting(f"python={python!r} is no Python that runs: {e}", hint=f"try: {python} -V") from e


def cache_folder(packages: Packages) -> Path:
    """Where the environments of this caller lie. Root's are for every uid to read: its jails have others."""
    if packages.cache is not None:
        return Path(packages.cache).expanduser().resolve()
    if given := os.environ.get("HATCHWAY_CACHE"):
        return Path(given).resolve() / "packages"
    import platformdirs

    where = platformdirs.site_cache_dir if os.geteuid() == 0 else platformdirs.user_cache_dir
    return Path(where("hatchway")) / "packages"


def place_of(packages: Packages, python: str) -> Path:
    """The folder that holds, or will hold, exactly these packages for this interpreter."""
    return cache_folder(packages) / packages.key(abi_of(python)) / "site-packages"


def is_built(place: Path) -> bool:
    """Whether the environment is there, and then it is whole."""
    return place.is_dir()


async def build(packages: Packages, python: str, place: Path) -> None:
    """Have the environment at its place; whoever else builds the same one is waited for.

    Raises:
        SandboxUnavailable: uv failed, or the cache cannot be written.
        MissingExtra: There is no uv.
    """
    tell = packages.on_progress or _nobody_listens
    root = place.parent
    if is_built(place):
        return
    find_uv()
    _make_cache(root.parent)
    async with _locked(root, tell) as lock_fd:
        if is_built(place):
            return
        await asyncio.to_thread(_remove_left_overs, root)
        await _build_new(packages, python, root, tell, lock_fd)


async def _build_new(packages: Packages, python: str, root: Path, tell: OnProgress, lock_fd: int) -> None:
    tell(f"building an environment with {', '.join(packages.requirements)}; it is kept in {root}")
    if packages.allow_sdists:
        tell("packages without a wheel run their build code on this host, unsealed")
    new = root.with_name(f"{root.name}.new-{secrets.token_hex(4)}")
    try:
        new.mkdir(mode=0o755)
        (new / "site-packages").mkdir(mode=0o755)
        await install(packages, python, new / "site-packages", tell, lock_fd=lock_fd)
        await asyncio.to_thread(_open_to_others, new)
        os.rename(new, root)
    except OSError as e:
        raise _unwritable(root.parent, e) from e
    finally:
        shutil.rmtree(new, ignore_errors=True)


@asynccontextmanager
async def _locked(root: Path, tell: OnProgress) -> AsyncGenerator[int]:
    """The one builder of a key at a time, among all processes of this machine."""
    fd = os.open(root.with_name(root.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        is_told = False
        while not _has_lock(fd):
            if not is_told:
                tell("waiting for somebody else who builds the same environment")
                is_told = True
            await asyncio.sleep(LOOK_SECONDS)
        yield fd
    finally:
        os.close(fd)  # the lock stays with uv if that still runs


def _has_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _remove_left_overs(root: Path) -> None:
    """What a builder left that was killed; nobody builds there while we have the lock."""
    for left in root.parent.glob(f"{root.name}.new-*"):
        shutil.rmtree(left, ignore_errors=True)


def _make_cache(folder: Path) -> None:
    """A cache others can write to is one they can put their code into."""
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        found = folder.stat()
    except OSError as e:
        raise _unwritable(folder, e) from e
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o022:
        raise SandboxUnavailable(
            f"the package cache {folder} belongs to somebody else, or others can write to it",
            hint=f"chmod go-w {folder}, or choose another one: Packages([...], cache='folder')",
        )


def _open_to_others(folder: Path) -> None:
    """The code runs as a uid of its own where the caller is root."""
    for path in (folder, *folder.rglob("*")):
        mode = path.lstat().st_mode
        wanted = 0o555 if stat.S_ISDIR(mode) else 0o444
        if not stat.S_ISLNK(mode) and mode & wanted != wanted:
            path.chmod(stat.S_IMODE(mode) | wanted)


def _unwritable(folder: Path, error: OSError) -> SandboxUnavailable:
    return SandboxUnavailable(
        f"the package cache {folder} cannot be used: {os.strerror(error.errno or 0)}",
        hint="choose another one: Packages([...], cache='folder')",
    )


def _nobody_listens(line: str) -> None:
    return None
