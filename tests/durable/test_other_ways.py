"""Calls that take another way than the guest's own channel, a proxy or HTTP: such runs come back as any other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hatchway import Allow, ApprovalRequired, CodeMode, tool
from hatchway.core.calls import FunctionCall, Waiting
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeExecution, CodeSandbox
from hatchway.sandboxes.jail import JailSandbox
from hatchway.sandboxes.process import ProcessSandbox
from hatchway.transports import HttpCallbackTransport

pytestmark = pytest.mark.anyio
IN_TURN = """
import random, time, uuid
a = see(f"{random.random()} {time.time()}")
b = GET
c = see(b + str(uuid.uuid4()))
d = pay(c + str(time.time_ns()))
[a, b, c, d, GET, see("9")]
"""
AT_ONCE = """
import asyncio
async def fetched(): return await asyncio.to_thread(lambda: GET)
got = await asyncio.gather(fetched(), look("2"), fetched(), look("3"))
first = pay(str(got))
[first, await look("4"), GET]
"""


class World:
    """Tools with effects."""

    def __init__(self) -> None:
        self.done: list[str] = []

        @tool
        def see(what: str) -> str:
            """See."""
            self.done.append(what)
            return what + "!"

        @tool
        async def look(what: str) -> str:
            """See, in parallel."""
            self.done.append(what)
            return what + "?"

        @tool(approval="ask")
        def pay(what: str) -> str:
            """Ask first."""
            self.done.append("pay " + what)
            return what + "$"

        self.tools = [see, look, pay]


@pytest.fixture(params=["proxy", "http"])
def way(request: pytest.FixtureRequest) -> tuple[Callable[[], CodeSandbox], str, list[str]]:
    """Makes the sandbox; how its code gets something from elsewhere; what the web saw."""
    if request.param == "http":
        return lambda: ProcessSandbox(transport=HttpCallbackTransport()), "see('hello')", []
    seen = JailSandbox.probe()
    if seen.tier != "namespaces":
        pytest.skip(f"{seen.reason} {seen.hint}")
    web = request.getfixturevalue("web")

    def jail() -> CodeSandbox:
        return JailSandbox(tier="namespaces", allowed_domains=[web.target], spares=0)

    return jail, f"__import__('urllib.request').request.urlopen('{web.url}/').read().decode()", web.seen


@pytest.mark.parametrize("code", [IN_TURN, AT_ONCE])
async def test_a_run_comes_back(way: Any, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make, get, requests = way
    monkeypatch.setenv("HATCHWAY_KEY_FILE", str(tmp_path / "key"))
    world = World()
    place = str(tmp_path / "journal.db")
    async with make() as sandbox, CodeMode(sandbox, tools=world.tools, journal=place) as mode:
        with pytest.raises(ApprovalRequired) as paused:
            await mode.run(code.replace("GET", get))
    before, asked = list(world.done), len(requests)
    async with make() as sandbox, CodeMode(sandbox, tools=world.tools, journal=place) as mode:
        result = await mode.resume(paused.value.run_id, {paused.value.pending[0].call_id: Allow()})
    paid = paused.value.pending[0].kwargs["what"]
    assert world.done[: len(before)] == before
    assert world.done[len(before)] == f"pay {paid}"
    assert f"{paid}$" in result.output
    assert len(requests) in (0, asked + 1)


async def test_an_execution_is_dumped_and_restored(way: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make, get, _ = way
    monkeypatch.setenv("HATCHWAY_KEY_FILE", str(tmp_path / "key"))
    names = ["see", "pay", "fetch"]
    async with make() as sandbox:
        execution = await sandbox.execute(IN_TURN.replace("GET", get), names)
        first = await stood(execution)
        checkpoint = execution.dump()
        assert checkpoint is not None
        await execution.cancel()
    async with make() as sandbox:
        restored = await sandbox.restore(checkpoint)
        assert restored is not None
        again = await stood(restored)
        assert again == first
        await restored.provide_result("paid", call_id=again.call_id)
        result = await ended(restored)
    assert result.output[3] == "paid"


async def stood(execution: CodeExecution) -> FunctionCall:
    """Answer everything but `pay`, up to where the code waits for it."""
    pay: FunctionCall | None = None
    while True:
        match await execution.next():
            case FunctionCall(function_name="pay") as call:
                pay = call
            case FunctionCall() as call:
                await execution.provide_result(answered(call), call_id=call.call_id)
            case Waiting() if pay is not None:
                return pay
            case Waiting():
                continue
            case end:
                raise AssertionError(end)


async def ended(execution: CodeExecution) -> ExecutionResult:
    while True:
        match await execution.next():
            case FunctionCall() as call:
                await execution.provide_result(answered(call), call_id=call.call_id)
            case ExecutionResult() as result:
                return result
            case Waiting():
                continue


def answered(call: FunctionCall) -> Any:
    if call.function_name == "fetch":
        return {"status": 200, "headers": {}, "body": b"hello"}
    return f"{call.args}"
