"""Idle sessions can be evicted; whoever comes back to one is told that it is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from hatchway import CodeMode
from hatchway.core.errors import InvalidSetting, SandboxCrashed, SandboxUnavailable
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeSandbox
from hatchway.sandboxes.container import ContainerSandbox
from hatchway.sandboxes.jail import JailSandbox
from hatchway.sandboxes.monty import MontySandbox
from hatchway.sandboxes.process import ProcessSandbox

pytestmark = pytest.mark.anyio
HINT = "open a new session; what this one had (names, imports, files) is lost"
Make = Callable[..., CodeSandbox]


@pytest.fixture(params=["process", "jail", "monty", "container"])
def make(request: pytest.FixtureRequest) -> Make:
    match request.param:
        case "process":
            return ProcessSandbox
        case "monty":
            return MontySandbox
        case "container":
            request.getfixturevalue("docker_engine")
            return partial(ContainerSandbox, spares=0)
    if (seen := JailSandbox.probe()).state != "usable":
        pytest.skip(f"{seen.reason} {seen.hint}")
    return JailSandbox


async def run(where: Any, code: str) -> Any:
    result = await (await where.execute(code)).next()
    assert isinstance(result, ExecutionResult)
    return result.output


async def gone(session: Any) -> SandboxCrashed:
    with pytest.raises(SandboxCrashed) as told:
        await run(session, "x")
    return told.value


async def test_a_session_that_is_idle_for_too_long_says_that_it_is_gone(make: Make) -> None:
    async with make(session_idle_seconds=0.4) as sandbox:
        async with sandbox.session() as session:
            await run(session, "x = 1")
            await asyncio.sleep(0.2)
            assert await run(session, "x") == 1
            await asyncio.sleep(1.5)
            error = await gone(session)
            assert error.message == "the session is gone: it was evicted after 0.4 s without an action"
            assert error.hint == HINT
            with pytest.raises(SandboxCrashed):
                await session.dump()
        async with sandbox.session() as another:
            assert await run(another, "2") == 2


async def test_an_action_that_runs_or_waits_is_not_idle(make: Make) -> None:
    async with make(session_idle_seconds=0.2) as sandbox, sandbox.session() as session:
        assert await run(session, "import time\ntime.sleep(0.6)\n1") == 1
        execution = await session.execute("ask()", ["ask"])
        await execution.next()
        await asyncio.sleep(0.6)
        await execution.provide_result(3)
        result = await execution.next()
        assert isinstance(result, ExecutionResult)
        assert result.output == 3


async def test_past_the_most_the_one_that_was_idle_longest_goes(make: Make) -> None:
    async with make(max_sessions=2) as sandbox:
        async with sandbox.session() as first, sandbox.session() as second:
            await run(first, "x = 1")
            await run(second, "x = 2")
            await run(first, "x")
            async with sandbox.session() as third:
                assert await run(third, "3") == 3
                error = await gone(second)
                assert error.message == "the session is gone: it was evicted to make room: max_sessions is 2"
                assert await run(first, "x") == 1


async def test_when_all_are_busy_a_new_one_is_refused(make: Make) -> None:
    async with make(max_sessions=1) as sandbox:
        async with sandbox.session() as session:
            execution = await session.execute("ask()", ["ask"])
            await execution.next()
            with pytest.raises(SandboxUnavailable) as refused:
                async with sandbox.session():
                    pass
            assert refused.value.message == "1 sessions are open, and none of them is idle"
            await execution.provide_result(None)
            await execution.next()
        async with sandbox.session() as session:
            assert await run(session, "1") == 1


async def test_many_at_once_keep_to_the_most(make: Make) -> None:
    async with make(max_sessions=2) as sandbox:

        async def one(n: int) -> str:
            try:
                async with sandbox.session() as session:
                    await run(session, f"x = {n}")
                    await asyncio.sleep(0.05)
                    return str(await run(session, "x") == n)
            except (SandboxCrashed, SandboxUnavailable) as e:
                return type(e).__name__

        told = await asyncio.gather(*(one(n) for n in range(6)))
        assert set(told) <= {"True", "SandboxCrashed", "SandboxUnavailable"}
        assert "True" in told


async def test_a_mode_tells_it_too(make: Make) -> None:
    sandbox = make(max_sessions=1)
    async with sandbox, CodeMode(sandbox) as mode:
        async with mode.session() as first:
            await first.run("x = 1")
            async with mode.session() as second:
                assert (await second.run("2")).output == 2
            with pytest.raises(SandboxCrashed, match="the session is gone: it was evicted to make room"):
                await first.run("x")


@pytest.mark.parametrize("setting", ["session_idle_seconds", "max_sessions"])
@pytest.mark.parametrize("value", [0, -1, True])
def test_numbers_that_are_none(make: Make, setting: str, value: Any) -> None:
    with pytest.raises(InvalidSetting) as refused:
        make(**{setting: value})
    assert refused.value.message == f"{setting} must be a positive number, not {value!r}"
