"""A laboratory for deaths: forks one process per job, which drives a run and is killed where the job says.

Started once per module; jobs come as lines of JSON on stdin and results go out likewise, so that the price of
importing everything is paid once. Run as a script: `python lab.py`.
"""

import asyncio
import json
import os
import random
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

from hatchway import Allow, ApprovalRequired, CallContext, CodeMode, InDoubt, NotRun, Ran, tool
from hatchway.core.errors import RunTaken
from hatchway.core.events import AgentEvent, RunStarted, ToolOutput
from hatchway.journal import book as journal_book
from hatchway.journal import committing, writer
from hatchway.journal.store import Journal


class Effects:
    """What tools did to the world: a file outside every sandbox, a line per effect."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def lines(self) -> list[str]:
        return self._path.read_text().splitlines() if self._path.exists() else []

    def add(self, line: str) -> None:
        fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(fd, line.encode() + b"\n")
        os.close(fd)


class Killer:
    """Kills this process at the k-th time it comes to a place."""

    def __init__(self, place: str, number: int) -> None:
        self._place, self._left = place, number

    def at(self, place: str) -> None:
        if place == self._place:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def tools_of(effects: Effects, killer: Killer) -> list[Any]:
    """Tools with effects; `charge` may be repeated with its key, `write` may not."""

    def run(name: str, value: int, context: CallContext) -> int:
        killer.at("tool begins")
        effects.add(f"{name} {value} {context.run_id}/{context.call_id}")
        killer.at("tool ends")
        return value * 10

    @tool
    def write(value: int, context: CallContext) -> int:
        """Has an effect that must not happen twice."""
        if value < 0:
            raise ValueError(f"no such value: {value}")
        return run("write", value, context)

    @tool(idempotent=True)
    def charge(value: int, context: CallContext) -> int:
        """Has an effect that a service keeps from happening twice."""
        if any(line.endswith(f" {context.run_id}/{context.call_id}") for line in effects.lines()):
            return value * 10
        return run("charge", value, context)

    @tool
    async def fetch_one(value: int, context: CallContext) -> int:
        """May be awaited in parallel; takes a while that differs."""
        await asyncio.sleep(0.001 * (value * 7 % 5))
        return run("fetch_one", value, context)

    @tool(approval="ask")
    def sign(value: int, context: CallContext) -> int:
        """A person is asked first."""
        return run("sign", value, context)

    return [write, charge, fetch_one, sign]


def watched(killer: Killer) -> Any:
    """Have the killer look at each step of the journal, and at each event."""
    started = journal_book.RunBook.started

    async def watched_started(self: Any, call_id: str, body: Any) -> None:
        killer.at("before the intent")
        await started(self, call_id, body)
        killer.at("after the intent")

    journal_book.RunBook.started = watched_started  # type: ignore[method-assign]
    together = committing.together

    def watched_together(db: Any, jobs: Any) -> None:
        killer.at("before a commit")
        together(db, jobs)
        killer.at("after a commit")

    committing.together = writer.together = watched_together  # both who commit: the loop and its thread

    def on_event(event: AgentEvent) -> None:
        if isinstance(event, RunStarted):
            sys.stdout.write(event.run_id)
            sys.stdout.flush()
        if isinstance(event, ToolOutput):
            killer.at("answered")

    return on_event


async def driven(job: dict[str, Any]) -> dict[str, Any]:
    effects, killer = Effects(job["effects"]), Killer(job.get("kill", [""])[0], job.get("kill", ["", 0])[-1])
    sandbox = sandbox_of(job)
    if job.get("seconds"):
        loop = asyncio.get_running_loop()
        loop.call_later(random.uniform(0, job["seconds"]), os.kill, os.getpid(), signal.SIGKILL)
    mode = CodeMode(sandbox, tools=tools_of(effects, killer), journal=job["journal"], on_event=watched(killer))
    async with mode:
        if "many" in job:
            return await many(mode, job, effects)
        if job.get("run_id"):
            result = await resumed(mode, job["run_id"], effects)
        else:
            result = await whole(mode, job["code"], effects)
    files = {file.name: file.content.decode() for file in result.files}
    return {"output": result.output, "stdout": result.stdout, "files": files, "calls": result.usage.calls}


async def whole(mode: CodeMode, code: str, effects: Effects) -> Any:
    """A run from its start to its end, everything approved."""
    try:
        return await mode.run(code)
    except ApprovalRequired as e:
        return await resumed(mode, e.run_id, effects)


async def many(mode: CodeMode, job: dict[str, Any], effects: Effects) -> dict[str, Any]:
    """Start so many runs at once, or with 0 go on with all that have not ended; somebody else may be at them too."""
    if job["many"]:
        going = [whole(mode, job["code"], effects) for _ in range(job["many"])]
    else:
        with Journal(job["journal"]) as journal:
            left = [run.run_id for run in journal.runs(limit=1000) if run.ending is None]
        random.shuffle(left)
        going = [resumed(mode, run_id, effects) for run_id in left]
    ends = await asyncio.gather(*going, return_exceptions=True)
    odd = [repr(end) for end in ends if isinstance(end, BaseException) and not isinstance(end, RunTaken)]
    return {"odd": odd[:3], "outputs": [end.output for end in ends if not isinstance(end, BaseException)]}


async def resumed(mode: CodeMode, run_id: str, effects: Effects) -> Any:
    """Resume as a person would: approve everything, and look for the effect of each call in doubt."""
    settlements: dict[str, Any] = {}
    while True:
        try:
            return await mode.resume(run_id, settlements)
        except ApprovalRequired as e:
            settlements = {call.call_id: Allow() for call in e.pending}
        except InDoubt as e:
            done = {line.split()[2]: int(line.split()[1]) for line in effects.lines()}
            for call in e.calls:
                known = done.get(f"{run_id}/{call.call_id}")
                settlements[call.call_id] = NotRun() if known is None else Ran(known * 10)


def sandbox_of(job: dict[str, Any]) -> Any:
    from hatchway.sandboxes.container import ContainerSandbox
    from hatchway.sandboxes.jail import JailSandbox

    match job["sandbox"]:
        case "jail":
            return JailSandbox(tier="namespaces", workspace_root=job["folder"], spares=0)
        case "landlock":
            return JailSandbox(tier="landlock", python=job["python"], spares=0)
        case "container":
            return ContainerSandbox(workspace_root=job["folder"], spares=0)
        case name:
            return name


def child(job: dict[str, Any], out: int) -> None:
    """Never returns."""
    os.dup2(out, 1)
    os.environ.update(job.get("env", {}))
    code = 0
    try:
        told = asyncio.run(driven(job))
    except BaseException as e:
        told, code = {"error": f"{type(e).__name__}: {e}", "trace": traceback.format_exc()}, 3
    sys.stdout.write("\n" + json.dumps(told))
    sys.stdout.flush()
    os._exit(code)


def main() -> None:
    """Serve jobs; each line is a list of jobs that run at once."""
    import hatchway.mode.durable
    import hatchway.mode.runs
    import hatchway.sandboxes.container
    import hatchway.sandboxes.jail
    import hatchway.sandboxes.process  # noqa: F401

    for line in sys.stdin:
        running: list[tuple[int, int]] = []
        for job in json.loads(line):
            ours, theirs = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.close(ours)
                child(job, theirs)
            os.close(theirs)
            running.append((pid, ours))
        results = [finished(pid, ours) for pid, ours in running]
        sys.stdout.write(json.dumps(results) + "\n")
        sys.stdout.flush()


def finished(pid: int, ours: int) -> dict[str, Any]:
    with open(ours) as told:
        run_id, _, rest = told.read().partition("\n")
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return {"status": status, "run_id": run_id, "told": json.loads(rest) if rest else None}


if __name__ == "__main__":
    main()
