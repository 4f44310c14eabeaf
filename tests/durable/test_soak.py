"""Two hundred runs at once, in processes that are killed at random, on both databases: each effect happens once."""

from collections import Counter
from pathlib import Path
from random import choice, randrange
from typing import Any

import pytest

PLACES = ("before the intent", "after the intent", "tool ends", "answered")
CODE = """
import asyncio
a = write(1)
b = await asyncio.gather(fetch_one(2), fetch_one(3))
c = charge(4)
d = sign(5)
[a, b, c, d]
"""
EXPECTED = [10, [20, 30], 40, 50]
EFFECTS = ["charge 4", "fetch_one 2", "fetch_one 3", "sign 5", "write 1"]


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_two_hundred_runs_with_random_deaths(lab: Any, place: str, tmp_path: Path) -> None:
    job = {"sandbox": "monty", "code": CODE, "journal": place, "effects": str(tmp_path / "effects")}
    lab.run(*[job | {"many": 50, "kill": [choice(PLACES), randrange(60, 200)]} for _ in range(4)])
    for _ in range(3):
        lab.run(*[job | {"many": 0, "seconds": 2.0} for _ in range(2)])
    [last] = lab.run(job | {"many": 0})
    assert last["status"] == 0, last
    assert last["told"]["odd"] == []
    check(place, tmp_path / "effects")


def check(place: str, effects: Path) -> None:
    from hatchway.core.results import ExecutionResult
    from hatchway.journal.store import Journal

    with Journal(place) as journal:
        runs = journal.runs(limit=1000)
    assert len(runs) > 40  # those that were entered before their process died
    for run in runs:
        assert isinstance(run.ending, ExecutionResult), run.ending
        assert run.ending.output == EXPECTED
    lines = [line.rpartition(" ") for line in effects.read_text().splitlines()]
    by_run: dict[str, list[str]] = {}
    for what, _, key in lines:
        by_run.setdefault(key.partition("/")[0], []).append(what)
    assert by_run.keys() == {run.run_id for run in runs}
    assert Counter(tuple(sorted(done)) for done in by_run.values()) == {tuple(EFFECTS): len(runs)}


@pytest.mark.parametrize("ending", ["together", "after a death"])
def test_of_many_processes_that_resume_one_run_one_wins(lab: Any, place: str, tmp_path: Path, ending: str) -> None:
    for number in range(3):
        effects = tmp_path / f"effects-{number}"
        job = {"sandbox": "monty", "code": CODE, "journal": place, "effects": str(effects)}
        [death] = lab.run(job | {"kill": ["after the intent", 3]})
        assert death["status"] == -9
        again = job | {"run_id": death["run_id"]}
        if ending == "after a death":
            lab.run(again | {"kill": ["tool ends", 1]}, again)
        ends = lab.run(*[again] * 4)
        results = [end["told"]["output"] for end in ends if end["status"] == 0]
        lost = [end["told"]["error"].split(":")[0] for end in ends if end["status"] == 3]
        assert results, ends
        assert all(result == EXPECTED for result in results), ends
        assert set(lost) <= {"RunTaken"}, ends
        done = sorted(line.rpartition(" ")[0] for line in effects.read_text().splitlines())
        assert done == EFFECTS
