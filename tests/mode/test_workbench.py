"""Workbench: actions by the name of their session, and what else may be asked of it. Its faces test the files."""

import asyncio

import pytest

from hatchway.core.errors import CodeRuntimeError, CodeTimeoutError, InvalidSetting
from hatchway.core.limits import Limits
from hatchway.core.results import ExecFile, ExecutionResult
from hatchway.mode.workbench import BenchSettings, Workbench

pytestmark = pytest.mark.anyio


def add(a: int, b: int) -> int:
    """The sum."""
    return a + b


async def test_an_end_is_a_result_or_the_codes_own_error() -> None:
    bench = Workbench(BenchSettings(sandbox="monty", tools=[add], limits=Limits(wall_seconds=0.3)))
    good = await bench.run("print('so')\nadd(a=1, b=2)")
    assert isinstance(good, ExecutionResult)
    assert (good.output, good.stdout, good.usage.calls) == (3, "so\n", 1)
    assert isinstance(await bench.run("1 / 0"), CodeRuntimeError)
    assert isinstance(await bench.run("while True: pass"), CodeTimeoutError)
    await bench.aclose()


async def test_a_session_can_be_closed_by_name() -> None:
    bench = Workbench(BenchSettings(sandbox="monty"))
    await bench.run("x = 1", session="a")
    await bench.run("x = 2", session="b")
    await bench.close_session("a")
    await bench.close_session("never opened")
    assert isinstance(await bench.run("x", session="a"), CodeRuntimeError)
    kept = await bench.run("x", session="b")
    assert isinstance(kept, ExecutionResult)
    assert kept.output == 2
    await bench.aclose()


async def test_a_session_in_use_is_not_closed() -> None:
    entered, go = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        """Wait."""
        entered.set()
        await go.wait()

    bench = Workbench(BenchSettings(sandbox="monty", tools=[hold]))
    running = asyncio.ensure_future(bench.run("await hold()\n'done'", session="a"))
    await entered.wait()
    await bench.close_session("a")
    go.set()
    end = await running
    assert isinstance(end, ExecutionResult)
    assert end.output == "done"
    await bench.aclose()


async def test_cancelling_a_waiter_leaves_the_session_to_its_user() -> None:
    entered, go = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        """Wait."""
        entered.set()
        await go.wait()

    bench = Workbench(BenchSettings(sandbox="monty", tools=[hold], max_sessions=1))
    running = asyncio.ensure_future(bench.run("x = 1\nawait hold()", session="a"))
    await entered.wait()
    waiting = asyncio.ensure_future(bench.run("x", session="a"))
    await asyncio.sleep(0.05)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    go.set()
    await running
    end = await bench.run("x", session="a")
    assert isinstance(end, ExecutionResult)
    assert end.output == 1
    await bench.aclose()


async def test_its_prompt_has_the_stubs() -> None:
    bench = Workbench(BenchSettings(sandbox="monty", tools=[add]))
    assert "def add(a: int, b: int) -> int" in await bench.prompt()
    await bench.aclose()


@pytest.mark.parametrize("name", ["../x", "/x", ""])
async def test_a_file_that_would_leave_its_place_is_refused_before_anything_runs(name: str) -> None:
    bench = Workbench(BenchSettings(sandbox="process"))
    with pytest.raises(InvalidSetting, match="cannot be staged: a file name is relative"):
        await bench.run("1", files=[ExecFile(name=name, content=b"")])


def test_settings_that_mean_nothing_are_refused() -> None:
    with pytest.raises(InvalidSetting, match=r"^max_sessions is at least 1, not 0$"):
        BenchSettings(max_sessions=0)
