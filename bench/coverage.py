"""How much Python each backend runs: reference solutions of HumanEval and MBPP with their own tests, as actions."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from peers import HERE
from tables import Section, Target

from hatchway import CodeExecutionError, CodeMode, Limits
from hatchway.sandboxes.registry import available

DATA = HERE.parent.parent / "shared" / "data"
FLOORS = {
    ("jail", "HumanEval"): 164,
    ("jail", "MBPP"): 427,
    ("process", "HumanEval"): 164,
    ("process", "MBPP"): 427,
    ("monty", "HumanEval"): 162,
    ("monty", "MBPP"): 402,
}
NOTE = """\
Each reference solution with its tests is one code action in a fresh interpreter; passed means that every assertion
held. HumanEval has 164, MBPP (sanitized) 427{part}."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One suite on one backend."""

    total: int
    failed: dict[str, str]
    """The last line of the reason, by task."""
    seconds: float

    @property
    def passed(self) -> int:
        """How many of the tasks."""
        return self.total - len(self.failed)


def report(*, quick: bool) -> Section:
    """The section of the report."""
    if not DATA.is_dir():
        absent = os.path.relpath(DATA, HERE.parent)
        return Section(title="Coverage", note=f"Not measured: {absent} with the two data sets is absent.")
    step = 10 if quick else 1
    suites = {"HumanEval": _humaneval()[::step], "MBPP": _mbpp()[::step]}
    usable = [name for name, found in available().items() if found.state == "usable"]
    found = {(where, name): asyncio.run(_run(where, tasks)) for where in usable for name, tasks in suites.items()}
    failures = [f"- {where}, {task}: {why}" for (where, _), o in found.items() for task, why in o.failed.items()]
    note = NOTE.format(part=f"; only every {step}th was run" if quick else "")
    return Section(
        title="Coverage",
        note="\n\n".join([note, "What failed:", "\n".join(failures)] if failures else [note]),
        head=["backend", "suite", "passed", "of", "seconds"],
        rows=[[*key, str(o.passed), str(o.total), f"{o.seconds:.1f}"] for key, o in found.items()],
        targets=[] if quick else [_target(key, found.get(key)) for key in FLOORS],
        columns=("passed",),
    )


def _target(key: tuple[str, str], outcome: Outcome | None) -> Target:
    values = () if outcome is None else (outcome.passed,)
    return Target(what=f"{key[0]}: {key[1]}", limit=FLOORS[key], values=values, at_least=True)


async def _run(where: str, tasks: Sequence[tuple[str, str]]) -> Outcome:
    failed: dict[str, str] = {}
    turn = asyncio.Semaphore(os.cpu_count() or 1)
    started = time.perf_counter()
    async with CodeMode(where, limits=Limits(wall_seconds=60)) as mode:

        async def one(name: str, code: str) -> None:
            async with turn:
                try:
                    await mode.run(code)
                except CodeExecutionError as e:
                    failed[name] = _last_line(e.message)

        await asyncio.gather(*[one(name, code) for name, code in tasks])
    in_order = {name: failed[name] for name, _ in tasks if name in failed}
    return Outcome(len(tasks), in_order, time.perf_counter() - started)


def _last_line(message: str) -> str:
    """Where a traceback says what was wrong."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return lines[-1][:160] if lines else "no message"


def _humaneval() -> list[tuple[str, str]]:
    with gzip.open(DATA / "humaneval.jsonl.gz", "rt", encoding="utf-8") as file:
        tasks = [json.loads(line) for line in file]
    return [
        (t["task_id"], f"{t['prompt']}{t['canonical_solution']}\n{t['test']}\ncheck({t['entry_point']})\n")
        for t in tasks
    ]


def _mbpp() -> list[tuple[str, str]]:
    tasks = json.loads((DATA / "sanitized-mbpp.json").read_text(encoding="utf-8"))
    return [(f"MBPP/{t['task_id']}", "\n".join([*t["test_imports"], t["code"], *t["test_list"], ""])) for t in tasks]


if __name__ == "__main__":
    print(report(quick="--quick" in sys.argv).markdown())
