"""Runs attacks in a jail or a container, as whatever user started it: `runner.py TIER [PYTHON]`.

One attack per line on stdin as JSON, one outcome per line on stdout. A process of its own, so that the host an attack
could harm is not the test run, and so that it can be another user.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchway.core.errors import CodeExecutionError, CodeLimitError, CodeTimeoutError
from hatchway.core.limits import Limits
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeSandbox
from hatchway.sandboxes.jail import JailSandbox
from hatchway.sandboxes.registry import make_sandbox

CANARY = "HOST_SECRET_CANARY"


async def serve(sandbox: CodeSandbox, canary_file: str) -> None:
    """Answer until stdin ends."""
    async with sandbox, sandbox.session() as neighbour:
        await result_of(neighbour, "kept = 41")
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            attack = json.loads(line)
            outcome = await run(sandbox, attack, canary_file)
            outcome["next"] = (await result_of(sandbox, "1 + 1")).output
            outcome["neighbour"] = (await result_of(neighbour, "kept + 1")).output
            outcome["open_files"] = len(os.listdir("/proc/self/fd"))
            sys.stdout.write(json.dumps(outcome) + "\n")
            sys.stdout.flush()


async def run(sandbox: CodeSandbox, attack: dict[str, Any], canary_file: str) -> dict[str, Any]:
    """How one attack ended, in a word, and what it printed."""
    limits = Limits(
        wall_seconds=attack["limits"].get("wall_s", 10),
        memory_bytes=attack["limits"].get("memory_bytes", Limits().memory_bytes),
    )
    code = attack["code"].replace("@CANARY_FILE@", canary_file)
    if attack["expect"] == "host" and code.startswith(("result=", "import pickle")):
        code += "\nresult"
    try:
        result = await result_of(sandbox, code, limits)
    except CodeTimeoutError as e:
        return {"outcome": "timeout", "stdout": e.stdout[:300], "message": e.message[:300]}
    except CodeLimitError as e:
        return {"outcome": f"over {e.limit}", "stdout": e.stdout[:300], "message": e.message[:300]}
    except CodeExecutionError as e:
        return {
            "outcome": "died" if "died" in e.message else "error",
            "stdout": e.stdout[:300],
            "message": e.message[-300:],
        }
    said = result.stdout.split(" ", 1)[0].strip()
    words = {"BLOCKED": "blocked", "OK": "contained", "LEAK": "LEAK"}
    return {"outcome": words.get(said, "ended"), "stdout": result.stdout[:300], "value": value_shown(result.output)}


def value_shown(value: Any) -> str:
    """A value that JSON can carry, told apart from others."""
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    return ascii(value)[:100] if not isinstance(value, int) else hex(value)[:40]


async def result_of(runs: Any, code: str, limits: Limits | None = None) -> ExecutionResult:
    """Run code that calls nothing."""
    execution = await runs.execute(code, limits=limits)
    result = await execution.next()
    assert isinstance(result, ExecutionResult), result
    return result


def sandbox_of(tier: Any, python: str | None = None) -> CodeSandbox:
    """What holds the attacks."""
    if tier in ("monty", "process"):
        return make_sandbox(tier)
    if tier == "container":
        from hatchway.sandboxes.container import ContainerSandbox

        return ContainerSandbox(spares=1)
    if python == sys.executable:  # of an environment the code would see the packages
        python = os.path.realpath(getattr(sys, "_base_executable", python))
    if tier == "sockets":
        return JailSandbox(tier="namespaces", python=python, allowed_domains=["granted.test"])
    return JailSandbox(tier=tier, python=python)


def main() -> None:
    """Plant the canaries, then serve."""
    os.environ[CANARY] = CANARY + "_TOKEN"
    held_in_memory = bytearray(CANARY.encode() * 1000)
    with tempfile.TemporaryDirectory() as folder:
        canary_file = Path(folder) / "canary"
        canary_file.write_text(CANARY)
        os.chmod(folder, 0o755)
        asyncio.run(serve(sandbox_of(*sys.argv[1:]), str(canary_file)))
    del held_in_memory


if __name__ == "__main__":
    main()
