"""A program is killed at every step of every call and resumed in a new process: same result, each effect once."""

from pathlib import Path
from typing import Any

import pytest

PLACES = ("before the intent", "after the intent", "tool ends", "answered")
WITH_FILES = ("jail", "container")
"""Where files come back."""
FULL = """
import asyncio, random, time, uuid

class Basket:
    def __init__(self):
        self.items = []
    def put(self, value):
        self.items.append(write(value))
        return self

def values():
    for value in (1, 2, 3):
        yield charge(value)

print("begin", len(str(uuid.uuid4())))
basket = Basket()
for value in values():
    if value > 10:
        basket.put(value)
    else:
        print("small", value)
try:
    write(-1)
except RuntimeError as e:
    print("caught", e)

async def pair(n):
    first = await fetch_one(n)
    return await fetch_one(first + n)

got = await asyncio.gather(*[pair(n) for n in range(1, 4)])
both = [asyncio.ensure_future(fetch_one(n)) for n in (4, 5)]
done, rest = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
for late in asyncio.as_completed([*done, *rest]):
    await late
last = sign(random.randrange(1) + len(got))
names = list({str(n) for n in range(5)})
write(len(names[0]) + sorted(names).index("0"))
with open(PLACE, "w") as f:
    f.write(f"{basket.items} {got} {last}")
print("end", time.time() > 0)
[basket.items, got, last]
"""
SMALL = """
import asyncio
print("begin")
items = []
for value in (1, 2, 3):
    got = charge(value)
    if got > 10:
        items.append(write(got))
    else:
        print("small", got)
try:
    write(-1)
except RuntimeError as e:
    print("caught")

async def pair(n):
    first = await fetch_one(n)
    return await fetch_one(first + n)

got = await asyncio.gather(pair(1), pair(2), pair(3))
last = sign(len(got))
write(7)
print("end")
[items, got, last]
"""


def job(backend: dict[str, Any], folder: Path, name: str, **more: Any) -> dict[str, Any]:
    code = SMALL if backend["sandbox"] == "monty" else FULL
    place = "/output/report.txt" if backend["sandbox"] in WITH_FILES else "report.txt"
    return {
        **backend,
        "code": code.replace("PLACE", repr(place)),
        "journal": str(folder / f"{name}.db"),
        "effects": str(folder / f"{name}.effects"),
        **more,
    }


def effects(described: dict[str, Any]) -> list[str]:
    """What happened, without the ids of the calls: those of parallel ones depend on who came first."""
    return [line.rpartition(" ")[0] for line in Path(described["effects"]).read_text().splitlines()]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow, id="all"), pytest.param(9, id="sample")])
def test_killed_anywhere_the_run_ends_the_same(lab: Any, backend: dict[str, Any], step: int, tmp_path: Path) -> None:
    whole = job(backend, tmp_path, "whole")
    [plain] = lab.run(whole)
    assert plain["status"] == 0, plain
    expected, wanted = plain["told"], sorted(effects(whole))
    assert expected["calls"] >= 12
    if backend["sandbox"] in WITH_FILES:
        assert list(expected["files"]) == ["report.txt"]
    if step > 1 and backend["sandbox"] == "container":
        step *= 3  # each point starts two containers
    points = [(place, k) for place in PLACES for k in range(1, expected["calls"] + 1)][::step]
    for at in range(0, len(points), 2):
        pair = [job(backend, tmp_path, f"{at + i}", kill=list(point)) for i, point in enumerate(points[at : at + 2])]
        died = lab.run(*pair)
        again = [j | {"run_id": d["run_id"], "kill": ["", 0]} for j, d in zip(pair, died, strict=True)]
        for point, described, death, ended in zip(points[at:], again, died, lab.run(*again), strict=False):
            reached = death["status"] == -9
            assert reached or (point[0] in ("tool ends", "answered") and death["status"] == 0), (
                point,
                death,
            )
            assert ended["told"] == expected, (point, ended)
            assert sorted(effects(described)) == wanted, point


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", ["process", "monty"])
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow, id="all"), pytest.param(11, id="sample")])
def test_killed_between_any_two_commits(lab: Any, name: str, step: int, tmp_path: Path) -> None:
    backend = {"sandbox": name, "folder": str(tmp_path)}
    whole = job(backend, tmp_path, "whole")
    [plain] = lab.run(whole)
    wanted = sorted(effects(whole))
    deaths = 0
    for k in range(1, 1000, step):
        pair = [job(backend, tmp_path, f"{k} {at}", kill=[f"{at} a commit", k]) for at in ("before", "after")]
        died = lab.run(*pair)
        if not any(death["status"] == -9 for death in died):
            break
        for described, death in zip(pair, died, strict=True):
            deaths += death["status"] == -9
            if not death["run_id"]:
                continue  # it died before its run was told to anybody: there is nothing to resume
            [ended] = lab.run(described | {"run_id": death["run_id"], "kill": ["", 0]})
            if "UnknownRun" in str(ended["told"].get("error", "")):
                assert not Path(described["effects"]).exists()  # nothing was stored, and so nothing was done
                continue
            assert ended["told"] == plain["told"], (described["kill"], ended)
            assert sorted(effects(described)) == wanted, described["kill"]
    assert deaths > (25 if step == 1 else 2)  # commits that come close together are one
