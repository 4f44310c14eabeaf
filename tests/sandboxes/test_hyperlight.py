"""Hyperlight: against a stand-in with the package's interface, and against the package where a hypervisor works."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, TypeGuard

import pytest

from hatchway import CodeMode, CodeRuntimeError, CodeSyntaxError, CodeTimeoutError, Limits, tool
from hatchway.core.calls import FunctionCall, FunctionSignature, Waiting
from hatchway.core.errors import CodeLimitError, InvalidSetting, SandboxUnavailable
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import Availability
from hatchway.sandboxes.hyperlight import HyperlightSandbox, hypervisor
from hatchway.sandboxes.hyperlight.execution import HyperlightExecution

pytestmark = pytest.mark.anyio
STAND_IN = Path(__file__).parent / "hyperlight_stand_in"
USABLE = Availability(state="usable", tier="vm")


def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b


@pytest.fixture(params=["stand-in", "real"])
def which(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What stands behind the sandbox."""
    if request.param == "real":
        if (found := hypervisor.look()).state != "usable":
            pytest.skip(found.reason)
        return "real"
    monkeypatch.setenv("PYTHONPATH", str(STAND_IN))
    monkeypatch.setattr(hypervisor, "look", lambda: USABLE)
    return "stand-in"


@pytest.fixture
async def sandbox(which: str) -> AsyncGenerator[HyperlightSandbox]:
    """A sandbox, closed afterwards."""
    made = HyperlightSandbox()
    yield made
    await made.aclose()


async def ran(sandbox: HyperlightSandbox, code: str, **settings: Any) -> Any:
    async with CodeMode(sandbox, calls="written", **settings) as mode:
        return await mode.run(code)


async def test_output_and_print(sandbox: HyperlightSandbox) -> None:
    result = await ran(sandbox, "print('adding up')\nsum(range(5))")
    assert (result.output, result.stdout, result.tier) == (10, "adding up\n", "vm")


async def test_tools_called_awaited_and_gathered(sandbox: HyperlightSandbox) -> None:
    assert (await ran(sandbox, "[add(1), add(2, b=5)]", tools=[add])).output == [3, 7]
    assert (await ran(sandbox, "[await add(1), await add(2, b=5)]", tools=[add])).output == [3, 7]
    code = "import asyncio\nawait asyncio.gather(add(1), add(2))"
    assert (await ran(sandbox, code, tools=[add])).output == [3, 4]


async def test_errors_of_tools_and_of_code(sandbox: HyperlightSandbox) -> None:
    @tool(approval="deny")
    def wipe() -> None:
        """Never."""

    code = "try:\n    wipe()\nexcept ToolDenied as e:\n    told = str(e)\ntold"
    assert (await ran(sandbox, code, tools=[wipe])).output == "the tool wipe is switched off"
    with pytest.raises(CodeRuntimeError) as failed:
        await ran(sandbox, "print('so far')\n1 / 0")
    assert failed.value.stdout == "so far\n"
    assert failed.value.message.endswith("ZeroDivisionError: division by zero")
    assert 'File "<action>", line 2' in failed.value.message
    with pytest.raises(CodeSyntaxError):
        await ran(sandbox, "1 +")


async def test_actions_share_nothing_and_reuse_the_vm(sandbox: HyperlightSandbox) -> None:
    await ran(sandbox, "kept = 1")
    [spare] = sandbox._spares
    with pytest.raises(CodeRuntimeError, match="name 'kept' is not defined"):
        await ran(sandbox, "kept")
    assert sandbox._spares == [spare]


async def test_deadline_although_the_package_has_none(sandbox: HyperlightSandbox) -> None:
    with pytest.raises(CodeTimeoutError) as late:
        await ran(sandbox, "print('begun')\nwhile True: pass", limits=Limits(wall_seconds=1))
    assert late.value.stdout == "begun\n"
    assert sandbox._spares == []
    assert (await ran(sandbox, "1 + 1")).output == 2


async def test_cancelled_code_is_dead(sandbox: HyperlightSandbox) -> None:
    running = asyncio.create_task(ran(sandbox, "add(1)\nwhile True: pass", tools=[add]))
    while not sandbox._used:
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not sandbox._used


async def test_four_at_once(sandbox: HyperlightSandbox) -> None:
    arrived, all_there = 0, asyncio.Event()

    async def meet(n: int) -> int:
        """Comes back once four are there."""
        nonlocal arrived
        arrived += 1
        if arrived == 4:
            all_there.set()
        await asyncio.wait_for(all_there.wait(), 60)
        return n

    async with CodeMode(sandbox, tools=[meet], calls="written") as mode:
        results = await asyncio.gather(*[mode.run(f"meet({n})") for n in range(4)])
    assert [result.output for result in results] == [0, 1, 2, 3]


async def test_gathered_calls_are_made_at_one_time(sandbox: HyperlightSandbox) -> None:
    arrived, all_there = 0, asyncio.Event()

    async def meet(n: int) -> int:
        """Comes back once three are there."""
        nonlocal arrived
        arrived += 1
        if arrived == 3:
            all_there.set()
        await asyncio.wait_for(all_there.wait(), 60)
        return n

    code = "import asyncio\nawait asyncio.gather(meet(0), asyncio.sleep(0.01, 'slept'), meet(1), meet(2))"
    assert (await ran(sandbox, code, tools=[meet])).output == [0, "slept", 1, 2]


async def test_answers_in_any_order_reach_their_calls(sandbox: HyperlightSandbox) -> None:
    code = "import asyncio\nawait asyncio.gather(*[ask(n) for n in range(3)])"
    execution = await sandbox.execute(code, [FunctionSignature(name="ask", is_async=True)])
    calls = [await execution.next() for _ in range(3)]
    assert [call.args for call in calls if isinstance(call, FunctionCall)] == [(0,), (1,), (2,)]
    assert await execution.next() == Waiting(tuple(call for call in calls if isinstance(call, FunctionCall)))
    with pytest.raises(ValueError, match="3 calls are pending: say which by call_id"):
        await execution.provide_result(0)
    for call_id in ("3", "1", "2"):
        await execution.provide_result(f"answer {call_id}", call_id=call_id)
    end = await execution.next()
    assert isinstance(end, ExecutionResult)
    assert end.output == ["answer 1", "answer 2", "answer 3"]


async def test_plain_call_among_calls_under_way(sandbox: HyperlightSandbox) -> None:
    code = (
        "import asyncio\nfirst = asyncio.ensure_future(slow(1))\nawait asyncio.sleep(0)\n"
        "second = quick(2)\n[await first, second]"
    )
    functions = [FunctionSignature(name="slow", is_async=True), FunctionSignature(name="quick")]
    for order in (("1", "2"), ("2", "1")):
        execution = await sandbox.execute(code, functions)
        names = [call.function_name for call in [await execution.next(), await execution.next()] if _is_call(call)]
        assert names == ["slow", "quick"]
        for call_id in order:
            await execution.provide_result(f"of {call_id}", call_id=call_id)
        end = await execution.next()
        assert isinstance(end, ExecutionResult)
        assert end.output == ["of 1", "of 2"]


def _is_call(event: Any) -> TypeGuard[FunctionCall]:
    return isinstance(event, FunctionCall)


async def test_denied_call_among_others_is_an_error_at_its_place(sandbox: HyperlightSandbox) -> None:
    @tool(approval="deny")
    async def wipe() -> None:
        """Never."""

    code = "import asyncio\n[str(each) for each in await asyncio.gather(add(1), wipe(), return_exceptions=True)]"
    assert (await ran(sandbox, code, tools=[add, wipe])).output == ["3", "the tool wipe is switched off"]


async def test_loop_of_the_codes_own(sandbox: HyperlightSandbox) -> None:
    code = "import asyncio\nasync def main():\n    return [await add(1), await add(2)]\nasyncio.run(main())"
    assert (await ran(sandbox, code, tools=[add])).output == [3, 4]


async def test_value_that_cannot_cross_is_told(sandbox: HyperlightSandbox) -> None:
    with pytest.raises(CodeRuntimeError, match="output"):
        await ran(sandbox, "object()")


class Forger:
    """Says one thing that no action says, and is gone once it is killed."""

    def __init__(self, said: dict[str, Any]) -> None:
        self.said, self.is_killed, self.output = said, False, self

    def send(self, message: bytes) -> None: ...

    async def heard(self) -> dict[str, Any] | None:
        return None if self.is_killed else self.said

    def kill(self) -> None:
        self.is_killed = True

    async def collected(self, limits: Limits) -> tuple[Any, ...]:
        return ()


@pytest.mark.parametrize("said", [{"type": "ready"}, {"type": "call", "name": 1}, {"type": "output", "text": "x"}, {}])
async def test_forged_message_is_the_end_of_the_code_and_its_fault(said: dict[str, Any]) -> None:
    given_back: list[bool] = []

    async def give_back(kept: Any, is_whole: bool) -> None:
        given_back.append(is_whole)

    forger: Any = Forger(said)
    execution = HyperlightExecution(forger, b"", Limits(), None, give_back)
    with pytest.raises(CodeRuntimeError, match="broke the protocol"):
        await execution.next()
    assert forger.is_killed
    assert given_back == [False]


async def test_secrets_of_the_host_are_not_handed_on(which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HATCHWAY_SECRET", "open sesame")
    sandbox = HyperlightSandbox()
    assert (await ran(sandbox, "import os\n'HATCHWAY_SECRET' in os.environ")).output is False
    await sandbox.aclose()


async def test_files_go_in_and_out(which: str, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("seen")
    sandbox = HyperlightSandbox(file_mounts=[(tmp_path / "note.txt", "data/note.txt")])
    opening = "open_path = __import__('pathlib').Path\n" if which == "real" else _STAND_IN_PATHS
    code = opening + "open_path('/output/made.txt').write_text('out')\nopen_path('/input/data/note.txt').read_text()"
    result = await ran(sandbox, code)
    assert result.output == "seen"
    assert [(file.name, file.content) for file in result.files] == [("made.txt", b"out")]
    assert (await ran(sandbox, "1")).files == ()
    await sandbox.aclose()


_STAND_IN_PATHS = (
    "import sys\nopen_path = next(v for v in [sys._getframe(i).f_globals.get('open_path') for i in range(9)] if v)\n"
)


async def test_no_calls_past_the_limit(sandbox: HyperlightSandbox) -> None:
    with pytest.raises(CodeLimitError, match="calls"):
        await ran(sandbox, "[add(i) for i in range(9)]", tools=[add], limits=Limits(calls=3))


async def test_mount_elsewhere_is_refused(which: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="below /input only"):
        HyperlightSandbox(file_mounts=[(tmp_path, "/etc/x")])


# -- the look at the machine


def machine(root: Path, *, flags: str = "fpu svm", kvm: bool = True, pvm: bool = False) -> Path:
    (root / "proc").mkdir()
    (root / "dev").mkdir()
    (root / "proc/cpuinfo").write_text(f"processor : 0\nflags\t\t: {flags}\n")
    if kvm:
        (root / "dev/kvm").touch()
    if pvm:
        (root / "sys/module/kvm_pvm").mkdir(parents=True)
    return root


@pytest.mark.parametrize(
    ("there", "arch", "reason"),
    [
        ({}, "x86_64", ""),
        ({"flags": "fpu vmx"}, "x86_64", ""),
        ({"flags": "fpu sse"}, "x86_64", "the CPU shows neither svm nor vmx"),
        ({"kvm": False}, "x86_64", "neither /dev/kvm nor /dev/mshv"),
        ({"pvm": True}, "x86_64", "served by kvm_pvm"),
        ({}, "aarch64", "needs x86-64"),
    ],
)
def test_look(there: Any, arch: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(STAND_IN))
    found = hypervisor.look(machine(tmp_path, **there), arch)
    assert reason in found.reason
    assert found.state == ("installed_but_unusable" if reason else "usable")


def test_missing_package_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [p for p in sys.path if "site-packages" not in p])
    found = hypervisor.look(machine(tmp_path), "x86_64")
    assert (found.state, found.hint) == ("missing", "pip install 'hatchway[hyperlight]'")


async def test_provider_says_at_once_that_there_is_no_hypervisor(monkeypatch: pytest.MonkeyPatch) -> None:
    from hatchway.adapters.agent_framework import HyperlightCodeActProvider

    closed = Availability(state="installed_but_unusable", reason="no usable hypervisor", hint="elsewhere")
    monkeypatch.setattr(hypervisor, "look", lambda: closed)
    with pytest.raises(SandboxUnavailable, match="no usable hypervisor"):
        HyperlightCodeActProvider(tools=[add])


async def test_provider_runs_code(which: str, tmp_path: Path) -> None:
    from agent_framework import SessionContext

    from hatchway.adapters.agent_framework import HyperlightCodeActProvider, HyperlightExecuteCodeTool

    provider = HyperlightCodeActProvider(tools=[add], workspace_root=tmp_path, allowed_domains=[("a.example", "GET")])
    context = SessionContext(input_messages=[])
    await provider.before_run(agent=None, session=None, context=context, state={})
    [made] = context.tools
    assert [item.text for item in await made.invoke(arguments={"code": "add(1) + call_tool('add', a=1)"})] == ["6"]
    await provider.aclose()
    alone = HyperlightExecuteCodeTool(tools=[add])
    assert [item.text for item in await alone.invoke(arguments={"code": "add(1)"})] == ["3"]
    await alone.aclose()
    assert os.listdir(tmp_path) == []
