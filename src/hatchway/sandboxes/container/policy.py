"""The container's policy: what every one is started with, as arguments of `run`."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hatchway.core.errors import InvalidSetting
from hatchway.core.grants import FileMount
from hatchway.sandboxes.container.engines import flavor_of
from hatchway.sandboxes.container.extra_args import check_extra_args

DEFAULT_IMAGE = "python:3.12-slim"
NOBODY = "65534:65534"
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?")
_SIZE = re.compile(r"[1-9][0-9]*[bkmgBKMG]?")
_CPUS = re.compile(r"[0-9]+(\.[0-9]+)?")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerPolicy:
    """What a container may do. No network, a read-only root, a private `/tmp` and removal at its end are always on.

    Raises:
        InvalidSetting: A value that is no such value, or extra arguments that undo what is always on.
    """

    engine: str = "docker"
    """`docker`, `podman` or `nerdctl`, or the path of its client."""
    image: str = DEFAULT_IMAGE
    """Must be there: nothing is pulled."""
    memory: str = "256m"
    """Memory, and memory with swap: there is no swap."""
    cpus: str = "1.0"
    """How many cores it may use."""
    pids_limit: int = 128
    """Processes and threads at one time."""
    user: str = NOBODY
    """`uid:gid`; never root by default."""
    tmpfs: Mapping[str, str] = field(default_factory=lambda: {"/tmp": "rw,exec,size=64m,mode=1777"})
    """Folders in memory with their options. Without the mode they have that of the image's folder and may be closed."""
    drop_capabilities: bool = True
    """Drop all capabilities and forbid new privileges. Off is for debugging only."""
    runtime: str = ""
    """Another OCI runtime, such as `runsc`; empty for the engine's own."""
    mounts: tuple[FileMount, ...] = ()
    """Files and directories of this machine, shown read-only."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables the code is given."""
    extra_args: tuple[str, ...] = ()
    """More arguments of `run`, before the image."""

    def __post_init__(self) -> None:
        flavor_of(self.engine)
        check_image(self.image)
        _check("memory", self.memory, _SIZE, "512m")
        _check("cpus", self.cpus, _CPUS, "0.5")
        _check("user", self.user, _USER, "1000:1000")
        if self.runtime:
            _check("runtime", self.runtime, _WORD, "runsc")
        if self.pids_limit < 1:
            raise InvalidSetting(f"pids_limit must be at least 1, not {self.pids_limit}")
        for name in self.environment:
            if not name or "=" in name or "\0" in name + self.environment[name]:
                raise InvalidSetting(f"{name!r} is no name of an environment variable")
        check_extra_args(self.extra_args)

    def run_args(self, name: str, argv: Sequence[str], *, labels: Mapping[str, str]) -> list[str]:
        """The arguments that start a container of this policy, from `run` on."""
        swap = f"--memory-swap={self.memory}"
        owned = self._owned()
        return [
            "run", "--rm", "-i", "--pull=never", f"--name={name}",
            *(f"--label={key}={value}" for key, value in labels.items()),
            "--network=none", "--read-only", *(f"--tmpfs={path}:{how}{owned}" for path, how in self.tmpfs.items()),
            f"--memory={self.memory}", swap, f"--cpus={self.cpus}", f"--pids-limit={self.pids_limit}",
            f"--user={self.user}",
            *(("--cap-drop=ALL", "--security-opt=no-new-privileges") if self.drop_capabilities else ()),
            *((f"--runtime={self.runtime}",) if self.runtime else ()),
            *flavor_of(self.engine).run_args,
            *(f"--env={key}={value}" for key, value in self.environment.items()),
            *(f"--mount={_mount(mount)}" for mount in self.mounts),
            *self.extra_args, self.image, *argv,
        ]  # fmt: skip

    def _owned(self) -> str:
        """Options that give a folder to the user: runc before 1.1.8 lets the mode of the image's folder win."""
        uid, _, gid = self.user.partition(":")
        if not flavor_of(self.engine).knows_tmpfs or not uid.isdigit():
            return ""
        return f",uid={uid},gid={gid}" if gid.isdigit() else f",uid={uid}"


def check_image(image: str) -> None:
    """Refuse what an engine would not read as the name of an image.

    Raises:
        InvalidSetting: It is no image name; an option in disguise, for one.
    """
    if not _IMAGE.fullmatch(image):
        raise InvalidSetting(f"{image!r} is not the name of an image", hint=f"a name is like {DEFAULT_IMAGE}")


def _check(setting: str, value: str, pattern: re.Pattern[str], example: str) -> None:
    if not pattern.fullmatch(value):
        raise InvalidSetting(f"{setting} is not {value!r}", hint=f"write it like {example!r}")


def _mount(mount: FileMount) -> str:
    """One mount in the engine's CSV; a path may hold commas and quotes."""
    line = io.StringIO()
    fields = ["type=bind", f"src={mount.host_path}", f"dst={mount.mount_path}", "readonly"]
    csv.writer(line, lineterminator="").writerow(fields)
    return line.getvalue()
