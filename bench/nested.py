"""What a call of an MCP server costs from code, beside the same call made directly and beside freeact."""

from __future__ import annotations

import os
import sys
from statistics import median

from peers import NESTED, is_ready
from rounds import contenders, interleaved
from tables import Target

from hatchway.sandboxes.jail import JailSandbox

DIRECT = "direct, by the SDK's client"
Numbers = tuple[float, float, float]
"""Seconds per call: CPU, minimum on the busy core, median on the machine as it is."""


def measured(n: int, busy: int, idle: int) -> dict[str, Numbers]:
    """Each way, in turns, every one with a server process of its own."""
    os.environ["HATCHWAY_BENCH_PYTHON"] = sys.executable  # so that freeact calls the same server as the others
    sandboxes = ["monty", "process", *(["jail"] if JailSandbox.probe().state == "usable" else [])]
    ours = {DIRECT: "mcp_direct"} | {f"nested, {name}": f"hatchway_mcp {name}" for name in sandboxes}
    with contenders(ours, [NESTED] if is_ready(NESTED) else []) as found:
        samples = interleaved(found, "nested", n, busy=busy, idle=idle)
    return {name: (min(each.busy[1::2]), min(each.busy[::2]), median(each.idle[::2])) for name, each in samples.items()}


def targets(numbers: dict[str, Numbers]) -> list[Target]:
    """How much more than a direct call ours cost."""
    floor = numbers[DIRECT]
    return [
        Target(what=f"{name} ÷ direct", limit=1.3, unit="×", values=ratios(each, floor))
        for name, each in numbers.items()
        if name.startswith("nested")
    ]


def ratios(one: Numbers, other: Numbers) -> list[float]:
    """Number by number."""
    return [x / y for x, y in zip(one, other, strict=True)]
