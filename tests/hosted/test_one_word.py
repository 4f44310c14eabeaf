"""The same program with its code at OpenAI and in the jail: files, output, events and the gate are the same."""

from pathlib import Path
from typing import Any

import pytest

from hatchway import Deny, Rule, tool
from hatchway.core.errors import InvalidSetting
from hatchway.core.events import AgentEvent, CodeExecutionOutput, RunFailed
from hatchway.core.results import ExecFile
from hatchway.executors import LlmAgent
from hatchway.hosted import HostedCodeEnded, HostedCodeStarted, HostedReply, HostMount, OpenAIAdapter, code_tool
from hatchway.sandboxes.registry import availability
from hatchway.testing import CallsTool, CodeEnded, RanCode, ScriptedVendor, VendorSays

pytestmark = pytest.mark.anyio
READS = "text = open('data/given.csv').read() + open('app/mounted.csv').read()"
CODE = f"{READS}\nopen('sum.txt', 'w').write(text)\nprint(text)"
SCRIPTS: dict[str, list[Any]] = {
    "openai": [VendorSays(RanCode(CODE, "34\n", files={"f": "sum.txt"}), "It is 34.")],
    "jail": [VendorSays(CallsTool("execute_code", {"code": CODE})), VendorSays("It is 34.")],
}


async def ask(where: str, folder: Path) -> tuple[HostedReply, list[AgentEvent], ScriptedVendor]:
    """The program; `where` is the one word."""
    if where == "jail" and availability(where).state != "usable":
        pytest.skip(f"{where}: {availability(where).reason}")
    (folder / "app").mkdir()
    (folder / "app" / "mounted.csv").write_text("4")
    vendor = ScriptedVendor("openai", SCRIPTS[where], files={"f": b"34"})
    events: list[AgentEvent] = []
    code = code_tool(where, host_mounts=[HostMount(host_path="app")])
    settings: dict[str, Any] = {"allowed_host_roots": folder, "on_event": events.append}
    async with OpenAIAdapter("m", client=vendor.client(), tools=[code], **settings) as openai:
        given = [ExecFile(name="data/given.csv", content=b"3")]
        reply = await openai.run("Put them together.", files=given, tool_choice="execute_code")
        await openai.download_all(reply, folder / "made")
    return reply, events, vendor


@pytest.mark.parametrize(("where", "tier"), [("openai", "vendor"), ("jail", "namespaces")])
async def test_files_output_and_events(where: str, tier: str, tmp_path: Path) -> None:
    reply, events, vendor = await ask(where, tmp_path)
    assert (reply.text, reply.stdout) == ("It is 34.", "34\n")
    assert [(code.call.provider, code.call.code, code.text) for code in reply.codes] == [(where, CODE, "34\n")]
    assert reply.tool_results[0].message == "34\n"
    assert reply.tier == tier or (where, reply.tier) == ("jail", "landlock")
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["sum.txt"]
    assert (tmp_path / "made" / "sum.txt").read_bytes() == b"34"
    told = [type(event) for event in events if isinstance(event, HostedCodeStarted | HostedCodeEnded)]
    assert told == [HostedCodeStarted, HostedCodeEnded]
    assert all(f"- {name}: " in vendor.asked[0]["instructions"] for name in ("data/given.csv", "app/mounted.csv"))
    named = {"openai": {"type": "code_interpreter"}, "jail": {"type": "function", "name": "execute_code"}}
    assert vendor.asked[0]["tool_choice"] == named[where]


@pytest.mark.parametrize("where", ["openai", "monty"])
@pytest.mark.parametrize("fails", [False, True])
async def test_a_stream_has_one_end_and_goes_on_after_code_that_failed(where: str, fails: bool) -> None:
    code = "1 / 0" if fails else "print(3)"
    there = [VendorSays(RanCode(code, "3\n", failed=fails), "done")]
    here = [VendorSays(CallsTool("execute_code", {"code": code})), VendorSays("done")]
    client = ScriptedVendor("openai", there if where == "openai" else here).client()
    async with OpenAIAdapter("m", client=client, tools=[code_tool(where)]) as openai:
        events = [event async for event in openai.stream("go")]
    ends = [event for event in events if isinstance(event, CodeExecutionOutput | RunFailed)]
    assert ends == events[-1:]
    assert isinstance(ends[0], CodeExecutionOutput)
    assert isinstance(ends[0].result, HostedReply)
    assert ends[0].result.tier == {"openai": "vendor", "monty": "language"}[where]
    assert [event.result.success is False for event in events if isinstance(event, HostedCodeEnded)] == [fails]


async def test_code_that_failed_here_is_in_the_reply() -> None:
    script = [VendorSays(CallsTool("execute_code", {"code": "print('so far')\n1 / 0"})), VendorSays("sorry")]
    client = ScriptedVendor("openai", script).client()
    async with OpenAIAdapter("m", client=client, tools=[code_tool("monty")]) as openai:
        reply = await openai.run("go")
    assert [(code.success, code.stdout, code.error_code) for code in reply.codes] == [
        (False, "so far\n", "CodeRuntimeError")
    ]
    assert "ZeroDivisionError" in (reply.codes[0].stderr or "")


@pytest.mark.parametrize("where", ["openai", "monty"])
@pytest.mark.parametrize("is_rule", [True, False], ids=["rule", "approve"])
async def test_who_decides_at_the_adapter_decides_about_the_codes_calls(where: str, is_rule: bool) -> None:
    paid: list[int] = []

    @tool
    def pay(euro: int) -> int:
        """Pay."""
        paid.append(euro)
        return euro

    scripts: dict[str, list[Any]] = {
        "openai": [
            VendorSays(CallsTool("pay", {"euro": 3}, by="await pay({euro: 3})")),
            VendorSays(CodeEnded("x"), "y"),
        ],
        "monty": [VendorSays(CallsTool("execute_code", {"code": "pay(3)"})), VendorSays("y")],
    }
    vendor = ScriptedVendor("openai", scripts[where])
    settings: dict[str, Any] = {"rules": [Rule("deny", "pay")]}
    if not is_rule:
        settings = {"approve": lambda call: Deny("not today") if call.function_name == "pay" else True}
    code = code_tool(where, tools=[pay])
    async with OpenAIAdapter("m", client=vendor.client(), tools=[code], **settings) as openai:
        await openai.run("go")
    assert paid == []
    assert ("a rule denies pay" if is_rule else "not today") in vendor.asked[1]["input"][-1]["output"]


async def test_places_without_files() -> None:
    with pytest.raises(InvalidSetting, match="the sandbox 'monty' has no place for files"):
        code_tool("monty", host_mounts=[HostMount(host_path="a")])
    vendor = ScriptedVendor("openai")
    given = [ExecFile(name="a.csv", content=b"")]
    async with OpenAIAdapter("m", client=vendor.client(), tools=[code_tool("monty")]) as openai:
        with pytest.raises(InvalidSetting, match="the sandbox 'monty' has no place for files") as told:
            await openai.run("go", files=given)
        assert told.value.hint == "code_tool('jail') has"
        with pytest.raises(InvalidSetting, match="not 'code_interpreter'") as told:
            await openai.run("go", tool_choice="code_interpreter")
        assert told.value.hint == "the tools are execute_code"
    with pytest.raises(InvalidSetting, match="host mounts are brought by the adapters"):
        LlmAgent("a", model="openai:gpt-5", code=code_tool("jail", host_mounts=[HostMount(host_path="a")]))
    assert vendor.requests == []
