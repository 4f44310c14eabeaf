"""Every attack on the list, against both tiers of the jail, as this user and, when that is root, as an ordinary one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.weaker_wall import no_memory_read

from hatchway.sandboxes.jail import JailSandbox

HERE = Path(__file__).parent / "attacks"
ATTACKS: list[dict[str, Any]] = [
    attack for name in ("attacks.json", "more.json") for attack in json.loads((HERE / name).read_text())
]
NOBODY = 65534
WALL_OF = {"sockets": "namespaces"}
VALUES = {
    "value-093": "nan",
    "value-094": hex(10**5000)[:40],
    "value-095": ascii("\ud800"),
    "value-100": "{}",
    "value-104": ascii("\x1b]0;pwn\x07\x1b[2J"),
}
MESSAGES = {
    "protocol-086": "the code broke the sandbox protocol",
    "protocol-092": "which cannot cross the wall",
    "value-099": "is nested deeper than 200 levels, or contains itself",
    "value-102": "which cannot cross the wall",
    "value-103": "E: <exception str() failed>",
}


class Runner:
    """A process that runs attacks as a certain user."""

    def __init__(self, tier: str, user: str) -> None:
        python, path = _interpreter(is_for_others=user == "nobody" or (tier == "landlock" and os.geteuid() == 0))
        self.tier = tier
        self._process = subprocess.Popen(
            [python, str(HERE / "runner.py"), tier, python],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PATH": os.defpath, "PYTHONPATH": path},
            user=NOBODY if user == "nobody" else None,
            group=NOBODY if user == "nobody" else None,
            extra_groups=[] if user == "nobody" else None,
        )

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


def _interpreter(*, is_for_others: bool) -> tuple[str, str]:
    """A Python that can be reached, and the import path that gives it Hatchway."""
    path = os.pathsep.join([str(Path(__file__).parents[2] / "src"), sysconfig.get_paths()["purelib"]])
    real = os.path.realpath(getattr(sys, "_base_executable", sys.executable))  # not a copy in a venv
    if not is_for_others or all(p.stat().st_mode & 1 for p in Path(real).parents):
        return sys.executable, path
    system = f"/usr/bin/python3.{sys.version_info.minor}"
    if not os.path.exists(system):
        pytest.skip(f"{real} is closed to other users, and there is no {system}")
    return system, path


def _skip_reason(tier: str, user: str) -> str:
    if user == "nobody" and os.geteuid() != 0:
        return "only root can become another user"
    seen = JailSandbox.probe()
    if seen.state != "usable" or (tier != "landlock" and seen.tier != "namespaces"):
        return f"{seen.reason} {seen.hint}"
    return ""


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((tier, user), id=f"{tier}-{user}", marks=() if (tier, user) == FIRST else pytest.mark.slow)
        for FIRST in [("namespaces", "self")]
        for tier in ("namespaces", "landlock", "sockets")
        for user in ("self", "nobody")
    ],
)
def runner(request: pytest.FixtureRequest) -> Iterator[Runner]:
    tier, user = request.param
    if reason := _skip_reason(tier, user):
        pytest.skip(reason)
    started = Runner(tier, user)
    yield started
    started.close()


@pytest.mark.parametrize("attack", [pytest.param(a, id=a["id"]) for a in ATTACKS])
def test_attack_holds(runner: Runner, attack: dict[str, Any]) -> None:
    if runner.tier == "sockets" and attack["id"] == "proc-016":
        pytest.skip("it counts variables of any name, and here the jail sets those of its proxy")
    if (
        attack["id"] == "fs-own-open-keys"
        and os.path.exists("/proc/keys")
        and os.path.samefile("/proc/keys", os.devnull)
    ):
        pytest.skip("this container shows /dev/null in its place")
    if attack["id"] == "dos-own-closed-folders" and runner.tier == "landlock" and (why := no_memory_read()):
        pytest.skip(f"the code cannot close its folders here: {why}")
    seen = runner.run(attack)
    assert "LEAK" not in seen["stdout"]
    assert seen["outcome"] in attack["outcomes"][WALL_OF.get(runner.tier, runner.tier)], seen
    assert (seen["next"], seen["neighbour"]) == (2, 42)
    assert seen["open_files"] < 150
    if attack["id"] in VALUES:
        assert seen["value"] == VALUES[attack["id"]]
    if attack["id"] in MESSAGES:
        assert MESSAGES[attack["id"]] in seen["message"]


def test_every_attack_says_what_must_happen_in_each_tier() -> None:
    assert len({a["id"] for a in ATTACKS}) == len(ATTACKS) >= 660
    for attack in ATTACKS:
        assert set(attack["outcomes"]) == {"namespaces", "landlock"}
        assert not any(word in ("LEAK",) for words in attack["outcomes"].values() for word in words)
