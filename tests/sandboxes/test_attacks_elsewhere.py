"""The list of attacks against Monty and, as far as they aim at the host through values and frames, against Process."""

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

HERE = Path(__file__).parent / "attacks"
ATTACKS: list[dict[str, Any]] = [
    attack for name in ("attacks.json", "more.json") for attack in json.loads((HERE / name).read_text())
]
AT_THE_HOST = [a for a in ATTACKS if a["category"] in ("value", "protocol")]
"""What may be run unsealed: it does nothing but speak with the host."""
ON_MONTY = {
    "blocked": {"blocked", "error"},
    "contained": {"contained", "error", "ended", "timeout", "over memory_bytes"},
    "killed": {"error", "timeout", "over memory_bytes", "over value_bytes", "died", "ended"},
    "host": {"ended", "error", "contained"},
}
"""How each kind may end there: most of it ends at a module or a name that Monty does not have."""


class Runner:
    """A process that runs attacks, so that the host they could harm is not the test run."""

    def __init__(self, sandbox: str) -> None:
        path = os.pathsep.join([str(Path(__file__).parents[2] / "src"), sysconfig.get_paths()["purelib"]])
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "runner.py"), sandbox],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PATH": os.defpath, "PYTHONPATH": path},
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


@pytest.fixture(scope="module", params=["monty", "process"])
def runner(request: pytest.FixtureRequest) -> Iterator[Runner]:
    started = Runner(request.param)
    yield started
    started.close()


@pytest.mark.parametrize("runner", ["monty"], indirect=True)
@pytest.mark.parametrize("attack", [pytest.param(a, id=a["id"]) for a in ATTACKS])
def test_on_monty(runner: Runner, attack: dict[str, Any]) -> None:
    seen = runner.run(attack)
    assert "LEAK" not in seen["stdout"]
    assert seen["outcome"] in ON_MONTY[attack["expect"]], seen
    assert (seen["next"], seen["neighbour"]) == (2, 42)


@pytest.mark.parametrize("runner", ["process"], indirect=True)
@pytest.mark.parametrize("attack", [pytest.param(a, id=a["id"]) for a in AT_THE_HOST])
def test_on_process(runner: Runner, attack: dict[str, Any]) -> None:
    seen = runner.run(attack)
    assert seen["outcome"] in attack["outcomes"]["landlock"], seen
    assert (seen["next"], seen["neighbour"]) == (2, 42)
    assert seen["open_files"] < 150
