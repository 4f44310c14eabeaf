"""The peers: one environment each under bench/.peers, at the versions the numbers were taken with."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
HOME = HERE / ".peers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Another project that runs model-written code, and how it is installed."""

    name: str
    """As the tables show it."""
    script: str
    """The contender that measures it, under `contenders/`."""
    pins: tuple[str, ...]
    """What is installed; the versions are part of the measurement."""
    command: tuple[str, ...] = ()
    """A command of it that prints its help, when it has one."""
    home: str = ""
    """The environment, where it shares another peer's; by default one of its own."""

    @property
    def folder(self) -> Path:
        """Its environment."""
        return HOME / (self.home or self.script)

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"


PEERS = (
    Peer(
        name="smolagents 1.26.0 LocalPythonExecutor",
        script="smolagents_local",
        pins=("smolagents==1.26.0",),
        command=("smolagent", "--help"),
    ),
    Peer(
        name="FastMCP 4.1.2 CodeMode",
        script="fastmcp_code_mode",
        pins=("fastmcp[code-mode]==4.1.2", "pydantic-monty==1.4.0"),
        command=("fastmcp", "--help"),
    ),
    Peer(
        name="Pydantic AI harness 0.62.0 CodeMode",
        script="pydantic_ai_harness_code_mode",
        pins=("pydantic-ai-harness[code-mode]==0.62.0", "pydantic-monty==1.4.0"),
    ),
    Peer(
        name="agent-framework-monty 1.0.0b261015",
        script="agent_framework_code_act",
        pins=("agent-framework-monty==1.0.0b261015", "agent-framework-core==1.23.0", "pydantic-monty==0.0.23"),
    ),
)

DURABLE = Peer(name="DBOS 3.3.0", script="dbos_steps", pins=("dbos==3.3.0",))
"""Runs no model-written code, but writes each step of a workflow down, in the same databases."""

NESTED = Peer(
    name="freeact 0.9.1 (ipybox 0.9.2)", script="freeact_mcp", pins=("freeact==0.9.1", "mcp<2", "pydantic-ai<2")
)
"""Calls MCP servers from code, and does little else that can be measured; it does not start with today's `mcp`."""

AGENT = Peer(
    name=NESTED.name, script="freeact_agent", pins=NESTED.pins, command=("freeact", "--help"), home=NESTED.script
)
"""The same, as an agent."""


@cache
def installed() -> tuple[Peer, ...]:
    """The peers that can be measured here; why one cannot is told on stderr."""
    return tuple(peer for peer in PEERS if is_ready(peer))


def make_environment(folder: Path, *what: str) -> None:
    """A fresh environment with these packages.

    Raises:
        subprocess.CalledProcessError: The packages cannot be installed, for want of a network for example.
    """
    uv = Path(sys.prefix) / "bin" / "uv"
    if uv.exists():
        _quietly(str(uv), "venv", "--clear", "--python", sys.executable, str(folder))
        _quietly(str(uv), "pip", "install", "--compile-bytecode", "--python", str(folder / "bin" / "python"), *what)
    else:
        _quietly(sys.executable, "-m", "venv", "--clear", str(folder))
        _quietly(str(folder / "bin" / "python"), "-m", "pip", "install", *what)


def environment() -> dict[str, str]:
    """The variables measured processes get: whatever is set here, they may keep their compiled files."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def package_count(folder: Path) -> int:
    """How many distributions an environment holds, without pip and setuptools."""
    found = {path.name.split("-")[0] for path in folder.glob("lib/python*/site-packages/*.dist-info")}
    return len(found - {"pip", "setuptools"})


def is_ready(peer: Peer) -> bool:
    """Whether a peer can be measured here; it is installed on the first asking."""
    stamp = peer.folder / "pins"
    if stamp.is_file() and stamp.read_text() == "\n".join(peer.pins):
        return True
    print(f"Installing {peer.name}", file=sys.stderr)
    try:
        make_environment(peer.folder, *peer.pins)
    except (OSError, subprocess.CalledProcessError) as e:
        said = e.stderr.strip().splitlines() if isinstance(e, subprocess.CalledProcessError) else [str(e)]
        print(f"{peer.name} is left out: {said[-1] if said else e}", file=sys.stderr)
        return False
    stamp.write_text("\n".join(peer.pins))
    return True


def _quietly(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


if __name__ == "__main__":
    for peer in installed():
        print(f"{peer.name}: {package_count(peer.folder)} packages")
