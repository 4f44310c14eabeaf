"""Spawners: shared by the sandboxes of an interpreter, and gone with the last of them."""

import asyncio
import gc
import os
import sys
from pathlib import Path

import pytest

from hatchway import CodeMode
from hatchway.executors import CodeExecutionInput, InvocationContext, LocalCodeExecutor
from hatchway.sandboxes.process import ProcessSandbox
from hatchway.sandboxes.process.inside.tree import children
from hatchway.sandboxes.process.program import starter
from hatchway.sandboxes.process.python import Python
from hatchway.sandboxes.process.spawners import Spawners
from hatchway.testing.conformance.drive import run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture(autouse=True)
def before() -> set[int]:
    """The children there were already."""
    gc.collect()  # what another test dropped
    Spawners().give_back()
    return set(children(os.getpid()))


def use_key(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    monkeypatch.setenv("HATCHWAY_KEY_FILE", str(path))


def test_a_mode_that_is_closed_leaves_no_process_whatever_the_key(
    before: set[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def added() -> int:
        async with CodeMode("process") as mode:
            return (await mode.run("1 + 1")).output

    for name in "ab":
        use_key(monkeypatch, tmp_path / name)
        assert [asyncio.run(added()) for _ in range(2)] == [2, 2]
        assert set(children(os.getpid())) == before


@pytest.mark.anyio
async def test_the_last_of_two_sandboxes_ends_their_spawner(before: set[int]) -> None:
    async with ProcessSandbox() as first:
        async with ProcessSandbox() as second:
            assert [(await run(s, "1")).output for s in (first, second)] == [1, 1]
            (shared,) = set(children(os.getpid())) - before
        assert set(children(os.getpid())) - before == {shared}
        assert (await run(first, "2")).output == 2
    assert set(children(os.getpid())) == before
    async with first:
        assert (await run(first, "3")).output == 3
    assert set(children(os.getpid())) == before


def test_what_a_dropped_sandbox_used_ends_with_the_next(
    before: set[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def drop_one() -> None:
        assert (await run(ProcessSandbox(), "1")).output == 1

    for name in "abc":
        use_key(monkeypatch, tmp_path / name)
        asyncio.run(drop_one())
        gc.collect()
    assert len(set(children(os.getpid())) - before) == 1
    Spawners().give_back()
    assert set(children(os.getpid())) == before


def test_a_spawner_that_cannot_start_is_nobodys() -> None:
    spawners = Spawners()
    broken = Python("/bin/false", has_site=False)
    with pytest.raises(Exception, match="/bin/false cannot run guests"):
        spawners.get(broken)
    assert spawners.running(broken) is None
    spawners.give_back()


def test_programs_of_all_executors_have_one_starter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = InvocationContext()
    seen: set[int] = set()
    for name in "ab":
        use_key(monkeypatch, tmp_path / name)
        result = asyncio.run(LocalCodeExecutor().execute_code(context, CodeExecutionInput("print(1)")))
        assert result.stdout == "1\n"
        seen.add(Spawners().get(starter()).pid)
    assert len(seen) == 1
