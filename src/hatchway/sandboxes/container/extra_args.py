"""Extra arguments of `run`: the host's own word, but not against what is always on."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence

from hatchway.core.errors import InvalidSetting

SWITCHES = {
    "detach", "disable-content-trust", "help", "init", "interactive", "no-healthcheck", "no-hosts", "oom-kill-disable",
    "privileged", "publish-all", "quiet", "read-only", "replace", "rm", "sig-proxy", "tls-verify", "tty",
}  # fmt: skip
"""Flags that take no value; every other one without `=` takes the next argument."""
SHORT = {
    "a": "attach", "c": "cpu-shares", "d": "detach", "e": "env", "h": "hostname", "i": "interactive", "l": "label",
    "m": "memory", "p": "publish", "P": "publish-all", "q": "quiet", "t": "tty", "u": "user", "v": "volume",
    "w": "workdir",
}  # fmt: skip
OURS = {
    "name": "every container gets a name of its own, by which it is killed",
    "rm": "a container is always removed at its end",
    "detach": "the call waits for its container",
    "restart": "a container is never started again",
    "read-only": "the root file system is always read-only",
    "network": "there is never a network",
    "net": "there is never a network",
    "publish": "there is never a network",
    "publish-all": "there is never a network",
    "link": "there is never a network",
    "privileged": "it takes the wall away",
    "cap-add": "it takes a part of the wall away",
    "security-opt": "it can take a part of the wall away",
    "device": "it takes a part of the wall away",
    "device-cgroup-rule": "it takes a part of the wall away",
    "gpus": "it takes a part of the wall away",
    "pid": "it takes a part of the wall away",
    "ipc": "it takes a part of the wall away",
    "uts": "it takes a part of the wall away",
    "userns": "it takes a part of the wall away",
    "cgroupns": "it takes a part of the wall away",
    "cgroup-parent": "it takes the limits away",
    "group-add": "it takes a part of the wall away",
    "volumes-from": "it can bring the engine's socket",
    "env-host": "it hands the host's secrets to the code",
    "http-proxy": "it hands the host's secrets to the code",
    "log-driver": "it stores what the code prints on the host",
    "label": "the sweep finds containers by their labels",
    "label-file": "the sweep finds containers by their labels",
    "cidfile": "containers are found by name",
    "pull": "nothing is pulled while code waits",
    "tty": "it mixes stdout and stderr",
    "attach": "stdin, stdout and stderr are always attached",
    "oom-kill-disable": "it takes a limit away",
    "memory": "use with_memory",
    "memory-swap": "use with_memory",
    "cpus": "use with_cpus",
    "pids-limit": "use with_pids_limit",
    "user": "use with_user",
    "runtime": "use with_runtime",
}
"""Flags that are decided here, and why."""
SOCKETS = (
    "/run/docker.sock",
    "/run/podman/podman.sock",
    "/run/containerd/containerd.sock",
    "/run/crio/crio.sock",
    "/var/run/docker.sock",
)


def check_extra_args(args: Sequence[str]) -> None:
    """Refuse what undoes an always-on flag, and what an engine would read as the image.

    Raises:
        InvalidSetting: Which argument, and why.
    """
    for flag, value in _parsed(args):
        if flag in OURS:
            raise InvalidSetting(f"--{flag} is not for extra arguments: {OURS[flag]}")
        if flag in ("volume", "mount", "tmpfs"):
            _check_mount(flag, value)


def _parsed(args: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each flag with its value, as the engine will read them."""
    waiting = iter(args)
    for arg in waiting:
        if "\0" in arg or not arg.startswith("-") or arg in ("-", "--"):
            raise InvalidSetting(f"{arg!r} is no flag: the engine would take it for the image", hint="--flag=value")
        if arg.startswith("--"):
            flag, equals, value = arg[2:].partition("=")
            yield flag, value if equals or flag in SWITCHES else _next(waiting, arg)
        else:
            yield from _parsed_short(arg[1:], waiting)


def _parsed_short(letters: str, waiting: Iterator[str]) -> Iterator[tuple[str, str]]:
    while letters:
        letter, letters = letters[0], letters[1:]
        flag = SHORT.get(letter, letter)
        if flag in SWITCHES:
            yield flag, ""
            continue
        yield flag, letters.removeprefix("=") if letters else _next(waiting, f"-{letter}")
        return


def _next(waiting: Iterator[str], arg: str) -> str:
    value = next(waiting, None)
    if value is None:
        raise InvalidSetting(f"{arg} has no value: it would swallow the image", hint=f"{arg}=value")
    return value


def _check_mount(flag: str, value: str) -> None:
    sources, target = _mounted(flag, value)
    if os.path.normpath(target or "/") in ("/", "/tmp", "/proc", "/sys", "/dev"):
        raise InvalidSetting(f"--{flag}={value} mounts over {target or '/'}, which the policy decides")
    if any(_holds_socket(os.path.realpath(os.path.expanduser(source))) for source in sources):
        raise InvalidSetting(f"--{flag}={value} shows the engine's socket: whoever has it is root on this machine")


def _mounted(flag: str, value: str) -> tuple[list[str], str]:
    """What is shown, as far as it is of this machine, and where."""
    if flag == "tmpfs":
        return [], value.partition(":")[0]
    if flag == "volume":
        source, _, rest = value.partition(":")
        return ([source], rest.partition(":")[0]) if rest else ([], source)
    fields = [part.strip().strip('"').partition("=")[::2] for part in value.split(",")]
    targets = [path for key, path in fields if key in ("dst", "destination", "target")]
    # a volume's own options can bind a path as well: volume-opt=device=/run
    sources = [path.rpartition("=")[2] for key, path in fields if key not in ("dst", "destination", "target")]
    return [source for source in sources if source.startswith(("/", "~", "."))], targets[0] if targets else ""


def _holds_socket(path: str) -> bool:
    """Whether the path is a socket, or a folder above one of an engine's."""
    try:
        if stat.S_ISSOCK(os.stat(path).st_mode):
            return True
    except OSError:
        pass  # a named volume, or a path of another machine's
    own = os.environ.get("DOCKER_HOST", "").removeprefix("unix://")
    runtime = os.environ.get("XDG_RUNTIME_DIR", "/run/user")
    sockets = [*SOCKETS, f"{runtime}/docker.sock", f"{runtime}/podman/podman.sock", *([own] if own else [])]
    above = path.rstrip("/") + "/"
    return any(socket == path or socket.startswith(above) for socket in sockets)
