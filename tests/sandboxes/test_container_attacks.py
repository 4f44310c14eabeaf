"""Every attack on the list against a container: what the jail blocks is blocked here too, and where not it says so."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent / "attacks"
ATTACKS: list[dict[str, Any]] = [
    attack for name in ("attacks.json", "more.json") for attack in json.loads((HERE / name).read_text())
]
SHOWN = {
    "fs-004": "its own made-up host name",
    "fs-own-open-core": "read only, as all of /proc/sys",
    "fs-own-open-pidmax": "read only, as all of /proc/sys",
    "fs-own-open-hostname": "read only, as all of /proc/sys",
    "fs-own-open-kallsyms": "the kernel shows zeros for addresses",
    "fs-own-open-keys": "an empty file: the engine masks it",
    "fs-own-open-cmdline": "of the machine",
    "fs-own-open-meminfo": "of the machine",
    "fs-own-open-interrupts": "of the machine",
    "fs-own-open-cgroup": "its own cgroups, read only",
    "fs-own-open-sysfs": "read only; the engine masks the firmware",
    "fs-own-open-ptmx": "terminals of its own",
    "fs-own-open-hosts": "made for the container",
    "fs-own-open-run": "of the image",
    "fs-own-proc-machine": "of the machine, read only; what an engine masks is asked for one by one above",
    "fs-own-sys": "read only; the engine masks the firmware",
    "fs-own-dev": "message queues of its own",
    "fs-own-host-secrets": "made for the container",
    "proc-own-init-writes": "of its own processes, the relay among them",
    "proc-own-limit-parent": "the relay of its own container: it ends nothing but itself",
    "proc-own-nice-parent": "the relay of its own container",
    "proc-own-affinity-parent": "the relay of its own container",
    "proc-own-pidfd-parent": "the relay of its own container, which takes no signals from inside",
    "proc-own-nice-user": "its own processes: nobody else is in the container",
    "dos-own-sockets": "within what the container may have: the code's memory and the relay's",
}
"""What an engine shows of /proc, /sys and /etc, and lets code do to the relay beside it in its container, and a jail
does not. Everything else that leaks is a failure."""
SHOWN_AT_MOST = {
    "fs-own-dev": {"/dev/mqueue"},
    "fs-own-host-secrets": {"/.dockerenv", "/etc/hostname", "/var/mail", "/opt", "/srv", "/media"},
}
"""Of attacks that try many files, the ones that may open."""
OTHERWISE = {
    "proc-023": {"contained"},  # the supervisor is the first process, which takes no signals from inside
    "proc-024": {"contained"},
    "protocol-091": {"contained"},  # there is no socket to pass descriptors over
    "protocol-own-close-then-sleep": {"timeout"},  # the channel is the relay's: code cannot close it
}
IN_A_HURRY = {"dos-027", "kernel-own-uring", "kernel-own-ptrace", "net-054", "proc-016", "fs-own-open-core"}


class Runner:
    """A process that runs attacks in containers."""

    def __init__(self) -> None:
        command = [sys.executable, str(HERE / "runner.py"), "container"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, attack: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(attack) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"{attack['id']} brought the host down"
        return json.loads(line)

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def runner(private_engine: str) -> Iterator[Runner]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", private_engine)
        started = Runner()
        yield started
        started.close()


@pytest.mark.parametrize(
    "attack", [pytest.param(a, id=a["id"], marks=[] if a["id"] in IN_A_HURRY else [pytest.mark.slow]) for a in ATTACKS]
)
def test_attack_holds(runner: Runner, attack: dict[str, Any]) -> None:
    seen = runner.run(attack)
    assert (seen["next"], seen["neighbour"]) == (2, 42)
    assert seen["open_files"] < 150
    if attack["id"] in SHOWN:
        assert seen["outcome"] in ("LEAK", "blocked"), "shown no more: take it off the list"
        if attack["id"] in SHOWN_AT_MOST:
            assert set(ast.literal_eval(seen["stdout"].split(" ", 1)[1])) <= SHOWN_AT_MOST[attack["id"]]
        return
    assert "LEAK" not in seen["stdout"]
    assert seen["outcome"] in {*attack["outcomes"]["namespaces"], *OTHERWISE.get(attack["id"], ())}, seen


def test_the_lists_name_attacks_that_there_are() -> None:
    known = {attack["id"] for attack in ATTACKS}
    assert {*SHOWN, *OTHERWISE, *IN_A_HURRY} <= known
