"""What ten thousand sealed actions leave behind: nothing may grow from the first to the last."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
from pathlib import Path

from tables import Section, Target

from hatchway.core.results import ExecutionResult
from hatchway.sandboxes.jail import JailSandbox
from hatchway.sandboxes.process.inside import tree

AT_A_TIME, BURST = 2, 40
CODE = "import os\nopen('left', 'w').write('x')\nos.fork() or os._exit(0)\n1 + 1"
NOTE = """\
{actions} actions in one jail, {at_a_time} at a time, each in a fresh process that leaves a file and a child behind.
What the sandbox and this process hold is counted after a burst of {warm} actions, {burst} at a time, which opens all
the places for children the jail keeps, then halfway, at the end, and once the sandbox is closed. Memory is the
proportional set size, that of the jail with all idle copies of its zygote and the spares."""
WARM = 400
"""Actions before the first count."""
KINDS = ("processes", "descriptors", "mounts", "cgroups", "files in the temporary folder")
MEMORY = ("memory of the host, MB", "memory of the jail, MB")
_OF_ENGINES = re.compile(r" - (overlay|nsfs) |/containers/|-engine-")
"""Mounts that come and go with a container engine beside us."""
ROOM = 2.0
"""Megabytes the memory may differ between two counts without being a leak."""


def report(*, quick: bool) -> Section:
    """The section of the report."""
    actions = 600 if quick else 10_000
    note = NOTE.format(actions=actions, warm=WARM, at_a_time=AT_A_TIME, burst=BURST)
    availability = JailSandbox.probe()
    if availability.state != "usable":
        return Section(title="Leaks", note=f"{note}\n\nNot usable here: {availability.reason}")
    first, _, last, closed = counts = asyncio.run(_counted(actions))
    grown = sum(max(0, last[kind] - first[kind]) for kind in KINDS)
    return Section(
        title="Leaks",
        note=note,
        head=["held", "at first", "halfway", "at the end", "closed"],
        rows=[[kind, *(f"{count[kind]:.4g}" for count in counts)] for kind in (*KINDS, *MEMORY)],
        columns=("measured",),
        targets=[
            Target(what=f"more of them after {actions} actions than at first", limit=0, values=(grown,)),
            *(
                Target(what=f"{kind}, grown by", limit=ROOM, unit=" MB", values=(last[kind] - first[kind],))
                for kind in MEMORY
            ),
            Target(what="processes and cgroups left when it is closed", limit=0, values=(_left(closed),)),
        ],
    )


async def _counted(actions: int) -> list[dict[str, float]]:
    with tempfile.TemporaryDirectory() as own:  # where others work too, their files are not ours to count
        tempfile.tempdir = own
        try:
            async with JailSandbox() as sandbox:
                await _run(sandbox, WARM, at_a_time=BURST)
                counts = [await _settled()]
                for _ in range(2):
                    await _run(sandbox, actions // 2)
                    counts.append(await _settled())
            return [*counts, _held()]
        finally:
            tempfile.tempdir = None


async def _run(sandbox: JailSandbox, actions: int, *, at_a_time: int = AT_A_TIME) -> None:
    async def row() -> None:
        for _ in range(actions // at_a_time):
            result = await (await sandbox.execute(CODE)).next()
            assert isinstance(result, ExecutionResult)
            assert result.output == 2

    await asyncio.gather(*[row() for _ in range(at_a_time)])


async def _settled() -> dict[str, float]:
    """What is held once the last action is buried and the spares are made."""
    before = _held()
    while True:
        await asyncio.sleep(1)
        now = _held()
        if all(now[kind] == before[kind] for kind in KINDS):
            return now
        before = now


def _held() -> dict[str, float]:
    below = tree.descendants(os.getpid())
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    groups = [place for place in Path("/sys/fs/cgroup").glob(f"**/hatchway-{os.getpid()}-*/*") if place.is_dir()]
    counted = (
        len(below),
        len(os.listdir("/proc/self/fd")),
        sum(1 for line in mounts if not _OF_ENGINES.search(line)),
        len(groups),
        len(os.listdir(tempfile.gettempdir())),
    )
    memory = (tree.proportional_bytes(os.getpid()) / 1e6, sum(map(tree.proportional_bytes, below)) / 1e6)
    return dict(zip((*KINDS, *MEMORY), (*counted, *memory), strict=True))


def _left(closed: dict[str, float]) -> float:
    return closed["processes"] + closed["cgroups"]


if __name__ == "__main__":
    print(report(quick="--quick" in sys.argv).markdown())
