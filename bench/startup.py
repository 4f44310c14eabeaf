"""What it costs to be there at all: CPU of the import and of `--help`, and how many packages come along."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from peers import HERE, HOME, environment, installed, make_environment, package_count
from tables import Section, Target

NOTE = """\
CPU milliseconds (user and system) of the whole process, {rounds} interleaved rounds ({peer_rounds} of the peers),
compiled files warm; the bare interpreter's own share is taken off the imports, not off `--help`. Packages: a fresh
environment with the base install, without pip."""
IMPORTS = {
    "`import hatchway`": "import hatchway",
    "`from hatchway import CodeMode`": "from hatchway import CodeMode",
}
PEER_IMPORTS = {
    "smolagents_local": "import smolagents",
    "fastmcp_code_mode": "from fastmcp.experimental.transforms.code_mode import CodeMode",
    "pydantic_ai_harness_code_mode": "from pydantic_ai_harness import CodeMode",
    "agent_framework_code_act": "from agent_framework_monty import MontyExecuteCodeTool",
}


def report(*, quick: bool) -> Section:
    """The section of the report."""
    rounds, peer_rounds = (3, 1) if quick else (9, 2)
    ours, theirs = _ours(), _theirs()
    for command in ours.values():
        _cpu(command)  # the first time compiles
    spent = {name: [_cpu(command)] for name, command in [*ours.items(), *theirs.items()]}
    for turn in range(1, rounds):
        for name, command in [*ours.items(), *(theirs.items() if turn < peer_rounds else ())]:
            spent[name].append(_cpu(command))
    found = {name: (min(each), median(each)) for name, each in spent.items()}
    bare, _ = found.pop("bare interpreter")
    found = {name: _without(bare, one) if "import " in name else one for name, one in found.items()}
    count = _base_packages(quick=quick)
    packages = {"Hatchway, base install": count} | {peer.name: package_count(peer.folder) for peer in installed()}
    return Section(
        title="Start",
        note=NOTE.format(rounds=rounds, peer_rounds=peer_rounds),
        head=["what", "CPU, min", "CPU, median", "packages"],
        rows=[[name, f"{one[0]:.0f} ms", f"{one[1]:.0f} ms", ""] for name, one in found.items()]
        + [[name, "", "", "–" if count is None else str(count)] for name, count in packages.items()],
        targets=[
            _cpu_target("`import hatchway`", found, 60.0),
            _cpu_target("`hatchway --help`", found, 150.0),
            Target(what="packages of the base install", limit=25, values=() if count is None else (count,)),
        ],
    )


def _ours() -> dict[str, Sequence[str]]:
    help_command = (str(Path(sys.executable).parent / "hatchway"), "--help")
    imports = {name: (sys.executable, "-c", code) for name, code in IMPORTS.items()}
    return {"bare interpreter": (sys.executable, "-c", "pass"), **imports, "`hatchway --help`": help_command}


def _theirs() -> dict[str, Sequence[str]]:
    commands: dict[str, Sequence[str]] = {}
    for peer in installed():
        code = PEER_IMPORTS[peer.script]
        commands[f"`{code}`"] = (str(peer.python), "-c", code)
        if peer.command:
            program, *args = peer.command
            commands[f"`{' '.join(peer.command)}`"] = (str(peer.folder / "bin" / program), *args)
    return commands


def _cpu(command: Sequence[str]) -> float:
    """CPU milliseconds of a command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    nowhere = subprocess.DEVNULL
    subprocess.run(command, check=True, stdout=nowhere, stderr=nowhere, cwd="/", env=environment())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1e3


def _base_packages(*, quick: bool) -> int | None:
    """Installs the project into an environment of its own; None when that is not possible here."""
    folder = HOME / "base"
    if quick and folder.exists():
        return package_count(folder)
    try:
        make_environment(folder, str(HERE.parent))
    except (OSError, subprocess.CalledProcessError) as e:
        print(f"the base install cannot be made here: {e}", file=sys.stderr)
        return None
    return package_count(folder)


def _without(bare: float, one: tuple[float, float]) -> tuple[float, float]:
    return max(one[0] - bare, 0.0), max(one[1] - bare, 0.0)


def _cpu_target(name: str, found: dict[str, tuple[float, float]], limit: float) -> Target:
    return Target(what=f"{name}, CPU", limit=limit, unit=" ms", values=found[name])


if __name__ == "__main__":
    print(report(quick="--quick" in sys.argv).markdown())
