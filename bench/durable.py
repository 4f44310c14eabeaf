"""Durable runs: what writing every call down costs, and how soon a run stands again where it stood."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from peers import DURABLE, HERE, environment, is_ready
from tables import Section, Target, duration

from hatchway import Allow, ApprovalRequired, CodeMode, FunctionCall, Limits, tool
from hatchway.core.errors import SandboxUnavailable
from hatchway.journal.entries import RunHead
from hatchway.journal.store import Journal
from hatchway.sandboxes.jail import JailSandbox
from hatchway.sandboxes.monty import MontySandbox
from hatchway.testing.postgres import postgres_server

NOTE = """\
The same loop of {calls} calls of an empty async tool in the process sandbox, without a journal and with each kind,
{rounds} rounds in turn; the cost of a kind is the difference per call. `normal` is SQLite in WAL mode, which survives
the death of the process, `full` survives a power cut as well; PostgreSQL is a private server on this machine, by Unix
socket, without fsync. Resuming is timed from `resume()` to the moment the tool of the pending call runs, in a mode that
has not seen the run, on a jail that is warm and on one that starts for it. The large journal has {gigabytes:g} GB of
ended runs. DBOS runs a workflow of as many empty steps in the same databases, after us; its rows are whole steps."""
LOOP = "for i in range({n}):\n    await step(i)\n"


@tool
async def step(i: int) -> int:
    """Do nothing."""
    return i


class Signed:
    """A tool that a person is asked about, and when it ran."""

    def __init__(self) -> None:
        self.at = 0.0

        @tool(approval="ask")
        async def sign() -> int:
            """Note the time."""
            self.at = time.perf_counter()
            return 1

        self.tools = [step, sign]


def report(*, quick: bool) -> Section:
    """The section of the report."""
    calls, rounds, many, gigabytes = (200, 3, 2_000, 0.1) if quick else (500, 7, 10_000, 1.0)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="hatchway-bench-"))
        os.environ.setdefault("HATCHWAY_KEY_FILE", f"{folder}/key")
        places = _places(folder, stack)
        costs = asyncio.run(_costs(places, calls, rounds))
        costs |= _peer(places, folder, calls, rounds)
        targets = [_cost_target("journaling a call, SQLite normal", costs, "SQLite normal")]
        targets += asyncio.run(_resumes(folder, many))
        targets += [_dump(), _opening(folder, gigabytes)]
    rows = [[name, duration(min(seconds)), duration(median(seconds))] for name, seconds in costs.items()]
    return Section(
        title="Durable runs",
        note=NOTE.format(calls=calls, rounds=rounds, gigabytes=gigabytes),
        head=["a call of an empty tool", "min", "median"],
        rows=rows,
        targets=targets,
    )


def _places(folder: str, stack: ExitStack) -> dict[str, Any]:
    places: dict[str, Any] = {
        "no journal": None,
        "SQLite normal": f"{folder}/normal.db",
        "SQLite full": Journal(f"{folder}/full.db", durability="full"),
    }
    try:
        places["PostgreSQL"] = stack.enter_context(_database())
    except SandboxUnavailable:
        pass
    return places


@contextmanager
def _database() -> Generator[str]:
    with postgres_server() as server, server.database() as url:
        yield url


async def _costs(places: dict[str, Any], calls: int, rounds: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in places}
    modes = {name: CodeMode("process", tools=[step], journal=place) for name, place in places.items()}
    code = LOOP.format(n=calls)
    for mode in modes.values():
        await mode.run(LOOP.format(n=5))
    for _ in range(rounds):
        for name, mode in modes.items():
            started = time.perf_counter()
            await mode.run(code)
            found[name].append((time.perf_counter() - started) / calls)
    for mode in modes.values():
        await mode.aclose()
    return found


def _peer(places: dict[str, Any], folder: str, calls: int, rounds: int) -> dict[str, list[float]]:
    """What a step of DBOS takes, where it can be installed."""
    if not is_ready(DURABLE):
        return {}
    urls = {f"{DURABLE.name}, SQLite": f"sqlite:///{folder}/peer.db"}
    if "PostgreSQL" in places:
        urls[f"{DURABLE.name}, PostgreSQL"] = places["PostgreSQL"]
    found: dict[str, list[float]] = {}
    for name, url in urls.items():
        command = [DURABLE.python, HERE / "contenders" / f"{DURABLE.script}.py", url, str(calls), str(rounds)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment(), cwd=folder, timeout=600)
        if done.returncode:
            print(f"{name} is left out: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        else:
            found[name] = json.loads(done.stdout.splitlines()[-1])
    return found


def _cost_target(what: str, costs: dict[str, list[float]], name: str) -> Target:
    plain, journaled = costs["no journal"], costs[name]
    least, middle = min(journaled) - min(plain), median(journaled) - median(plain)
    return Target(what=what, limit=0.5, unit=" ms", values=(least * 1e3, middle * 1e3), judged=1)


async def _resumes(folder: str, many: int) -> list[Target]:
    warm, cold = [], []
    for _ in range(5):
        async with JailSandbox() as jail:
            await (await jail.execute("1")).next()
            warm.append(await _resumed(jail, f"{folder}/warm.db", 50))
        cold.append(await _resumed("jail", f"{folder}/cold.db", 50))
    long = [await _resumed("process", f"{folder}/long.db", many)]
    return [
        Target(what="resume of a run of 50 calls, warm jail", limit=300, unit=" ms", values=_ms(warm), judged=1),
        Target(what="the same, the jail starts for it", limit=300, unit=" ms", values=_ms(cold), judged=1),
        Target(what=f"resume of a run of {many} calls, process", limit=5_000, unit=" ms", values=_ms(long)),
    ]


async def _resumed(sandbox: Any, place: str, calls: int) -> float:
    """Seconds from `resume` to the tool of the pending call, in a mode that has not seen the run."""
    signed, limits = Signed(), Limits(calls=calls + 10)
    async with CodeMode(sandbox, tools=signed.tools, journal=place, limits=limits) as mode:
        try:
            await mode.run(LOOP.format(n=calls) + "await sign()")
            raise AssertionError("it did not pause")
        except ApprovalRequired as e:
            run_id, call_id = e.run_id, e.pending[0].call_id
    async with CodeMode(sandbox, tools=signed.tools, journal=place) as mode:
        started = time.perf_counter()
        await mode.resume(run_id, {call_id: Allow()})
    return signed.at - started


def _dump() -> Target:
    async def measured() -> list[float]:
        async with MontySandbox() as sandbox:
            execution = await sandbox.execute("rows = [{'n': n} for n in range(20)]\nask(1)", ["ask"])
            assert isinstance(await execution.next(), FunctionCall)
            await execution.next()
            found: list[float] = []
            for _ in range(50):
                started = time.perf_counter()
                assert execution.dump() is not None
                found.append(time.perf_counter() - started)
            await execution.cancel()
            return found

    return Target(what="dump of a small Monty run", limit=1, unit=" ms", values=_ms(asyncio.run(measured())), judged=1)


def _opening(folder: str, gigabytes: float) -> Target:
    path = Path(folder) / "large.db"
    _fill(path, gigabytes)
    found: list[float] = []
    for _ in range(5):
        started = time.perf_counter()
        with Journal(path) as journal:
            assert journal.runs(limit=20)
            found.append(time.perf_counter() - started)
    return Target(
        what=f"opening a journal of {gigabytes:g} GB, 20 runs listed",
        limit=100,
        unit=" ms",
        values=_ms(found),
        judged=1,
    )


def _fill(path: Path, gigabytes: float) -> None:
    import sqlite3

    with Journal(path) as journal:
        journal.begin("f" * 32, RunHead(code="1"), sandbox="process", tier="process").interrupted()
    db = sqlite3.connect(path)
    head = db.execute("SELECT head FROM runs").fetchone()[0]
    body, per_run = '{"value":"' + "x" * 1_900 + '"}', 50
    for number in range(int(gigabytes * 1e9 / (per_run * 2_150))):
        run_id = f"{number:032x}"
        db.execute(
            "INSERT INTO runs (run_id, place, state, epoch, sandbox, tier, started_at, updated_at, ended_at, head)"
            " VALUES (?, 0, 'done', 1, 'process', 'process', ?, 0, 0, ?)",
            (run_id, number, head),
        )
        db.executemany(
            "INSERT INTO log (run_id, n, kind, call_id, at, body) VALUES (?, ?, 'done', '1.1', 0, ?)",
            [(run_id, n, body) for n in range(per_run)],
        )
        if number % 500 == 0:
            db.commit()
    db.commit()
    db.close()


def _ms(seconds: list[float]) -> tuple[float, float]:
    return min(seconds) * 1e3, median(seconds) * 1e3


if __name__ == "__main__":
    print(report(quick="--quick" in sys.argv).markdown())
