"""What an agent is given: servers, typed APIs, permissions, subagents, pictures, long results, long histories."""

from __future__ import annotations

import asyncio
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import BinaryContent

from hatchway.agent import (
    Agent,
    ApprovalRequest,
    Cancelled,
    CodeExecutionOutput,
    Compacted,
    Response,
    ToolOutput,
)
from hatchway.agent.json_tools import json_name
from hatchway.agent.permissions import PermissionManager
from hatchway.agent.skills import SkillMetadata
from hatchway.core.errors import InvalidSetting, InvalidTool
from hatchway.core.events import CallDecided, CallFailed, CallStarted
from hatchway.sandboxes.monty import MontySandbox
from hatchway.testing import Call, Reply, ScriptedAgentModel
from hatchway.tools.apigen import generate_mcp_sources

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("agent_jail"),
]
TIME = {"command": sys.executable, "args": ["-m", "mcp_server_time", "--local-timezone", "UTC"]}
ODD = {"command": sys.executable, "args": [str(Path(__file__).parents[1] / "tools" / "mcp" / "odd_server.py")]}
DOT = (
    "import struct, zlib\nclass Dot:\n    def _repr_png_(self):\n        return DATA\nDATA = bytes.fromhex('"
    + (
        "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360606060000000050001a5f6"
        "45400000000049454e44ae426082"
    )
    + "')\nDot()"
)


def pay(euros: int) -> str:
    """Pay."""
    return f"paid {euros}"


async def test_servers_are_called_by_the_model_and_by_the_code(tmp_path: Path, watch: Any) -> None:
    await generate_mcp_sources({"time": TIME}, tmp_path)
    script = [
        Call("pytools_list_tools", {"category": "time"}),
        Call("clock_get_current_time", {"timezone": "UTC"}),
        Reply(code="time.get_current_time(timezone='UTC')['timezone']"),
        Reply(code="from mcptools.time.get_current_time import Params, run\nrun(Params(timezone='UTC'))['timezone']"),
        "done",
    ]
    model = ScriptedAgentModel(script)
    servers = {"clock": {**TIME, "excluded_tools": ["convert_time"]}}
    async with Agent(model, working_dir=tmp_path, mcp_servers=servers, ptc_servers={"time": TIME}) as agent:
        events = await watch(agent.stream("what time is it?"))
    assert model.offered[0] == [
        "execute_code", "read_file", "write_file", "edit_file", "pytools_list_categories", "pytools_list_tools",
        "pytools_describe", "clock_get_current_time", "subagent_task",
    ]  # fmt: skip
    asked = [(each.kind, each.tool_name) for each in watch.only(ApprovalRequest, events) if each.kind != "code"]
    assert asked == [
        ("tool", "pytools_list_tools"), ("tool", "clock_get_current_time"), ("call", "time.get_current_time"),
        ("call", "time.get_current_time"),
    ]  # fmt: skip
    assert [event.text for event in watch.only(CodeExecutionOutput, events)] == ["'UTC'", "'UTC'"]
    assert '"timezone": "UTC"' in watch.told(model, 2)
    assert "pytools_" in (model.seen[0][-1].instructions or "")


async def test_code_finds_tools_too_and_is_not_asked_about_it(tmp_path: Path, watch: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("PYTOOLS_EMBEDDING_MODEL", "test")
    code = "sorted(each['name'] for each in search_tools('a time')), list_categories(), describe('mine')"
    model = ScriptedAgentModel([Reply(code=code), "done"])
    settings: Any = {"ptc_servers": {"time": TIME}, "tool_search": "hybrid"}
    async with Agent(model, working_dir=tmp_path, tools=[describe], **settings) as agent:
        events = await watch(agent.stream("what is there?"))
    assert [each.kind for each in watch.only(ApprovalRequest, events)] == ["code", "call"]
    [told] = watch.only(CodeExecutionOutput, events)
    assert told.text == "(['time.convert_time', 'time.get_current_time'], {'time': 2}, 'mine')"


def describe(name: str) -> str:
    """Somebody's own, which is asked about."""
    return name


async def test_servers_named_as_the_own_ones_take_their_place(tmp_path: Path) -> None:
    model = ScriptedAgentModel(["hi"])
    async with Agent(model, working_dir=tmp_path, mcp_servers={"filesystem": TIME, "pytools": TIME}) as agent:
        assert [event async for event in agent.stream("hi")]
    assert model.offered[0] == [
        "execute_code", "filesystem_get_current_time", "filesystem_convert_time", "pytools_get_current_time",
        "pytools_convert_time", "subagent_task",
    ]  # fmt: skip


async def test_a_server_that_is_switched_off_is_not_called(tmp_path: Path, watch: Any) -> None:
    model = ScriptedAgentModel([Call("clock_get_current_time", {"timezone": "UTC"}), "no"])
    async with Agent(model, working_dir=tmp_path, mcp_servers={"clock": {**TIME, "approval": "deny"}}) as agent:
        events = await watch(agent.stream("time?"))
    assert watch.only(ApprovalRequest, events) == []
    assert watch.told(model).startswith("Denied: clock_get_current_time: it is switched off")


async def test_pictures_in_a_prompt_reach_the_model(tmp_path: Path, watch: Any) -> None:
    model = ScriptedAgentModel(["A dot."])
    picture = BinaryContent(data=b"\x89PNG", media_type="image/png")
    async with Agent(model, working_dir=tmp_path) as agent:
        await watch(agent.stream(["What is this?", picture]))
    assert model.seen[0][-1].parts[0].content == ["What is this?", picture]


async def test_permissions_settle_what_they_can_and_deny_inside_the_code(tmp_path: Path, watch: Any) -> None:
    (tmp_path / ".hatchway").mkdir()
    (tmp_path / ".hatchway" / "permissions.json").write_text(
        '{"allowed_tools": ["execute_code", "pay(euros=1)"], "denied_tools": ["pay(euros=9)"]}'
    )
    permissions = PermissionManager(tmp_path / ".hatchway")
    await permissions.load()
    code = "pay(1)\npay(2)\ntry:\n    pay(9)\nexcept ToolDenied as e:\n    print('denied')"
    model = ScriptedAgentModel([Reply(code=code), "done"])
    async with Agent(model, working_dir=tmp_path, tools=[pay], permissions=permissions) as agent:
        events = await watch(agent.stream("pay"))
    assert [dict(each.tool_args) for each in watch.only(ApprovalRequest, events)] == [{"euros": 2}]
    rule = "a rule of permissions.json denies pay(euros=9)"
    note = f"Calls it made that were denied, and not run:\n- pay(euros=9) denied: {rule}"
    assert watch.told(model) == f"denied\n\n{note}"
    assert watch.only(Response, events)[-1].content == "done"


async def test_what_a_rule_denies_the_model_is_told_like_a_call_of_the_code(tmp_path: Path, watch: Any) -> None:
    (tmp_path / ".hatchway").mkdir()
    (tmp_path / ".hatchway" / "permissions.json").write_text(
        '{"denied_tools": ["execute_code", "subagent_task", {"pattern": "write_file(path=*.md)", "reason": "no docs"}]}'
    )
    permissions = PermissionManager(tmp_path / ".hatchway")
    await permissions.load()
    args = {"path": "a.md", "content": "x"}
    calls = [Call("write_file", args), Reply(code="1"), Call("subagent_task", {"prompt": "x"})]
    model = ScriptedAgentModel([calls, "done"])
    async with Agent(model, working_dir=tmp_path, permissions=permissions) as agent:
        events = await watch(agent.stream("write"))
    failed = watch.only(CallFailed, events)
    assert [(event.tool_name, event.denied) for event in failed] == [
        ("write_file", True), ("execute_code", True), ("subagent_task", True),
    ]  # fmt: skip
    assert failed[0].error == "no docs"
    decided = watch.only(CallDecided, events)
    assert [dict(event.call.kwargs) for event in decided] == [args, {"code": "1"}]
    assert not (tmp_path / "a.md").exists()


async def test_subagents_work_side_by_side_with_interpreters_of_their_own(tmp_path: Path, watch: Any) -> None:
    def reply(messages: Any) -> Any:
        prompt = messages[0].parts[0].content
        done = sum(part.part_kind == "tool-return" for message in messages for part in message.parts)
        if prompt == "go":
            tasks = [Call("subagent_task", {"prompt": f"task {n}"}) for n in range(3)]
            return tasks if not done else "All done."
        return Reply(code=f"x = globals().get('x', 0) + 1\n(x, {prompt!r})") if not done else f"{prompt} is done"

    model = ScriptedAgentModel(reply)
    async with Agent(model, working_dir=tmp_path, max_subagents=2) as agent:
        events = await watch(agent.stream("go"))
    ids = {event.agent_id for event in events}
    assert len(ids) == 4
    assert all(each == "main" or (each.startswith("sub-") and len(each) == 8) for each in ids)
    texts = [event.text for event in watch.only(CodeExecutionOutput, events)]
    assert sorted(texts) == ["(1, 'task 0')", "(1, 'task 1')", "(1, 'task 2')"]
    given = [event.content for event in watch.only(ToolOutput, events) if event.tool_name == "subagent_task"]
    assert given == ["task 0 is done", "task 1 is done", "task 2 is done"]
    assert not any("subagent_task" in names for names in model.offered[1:4])
    assert agent.usage.output_tokens > 0


async def test_a_cancelled_parent_cancels_its_subagents(tmp_path: Path) -> None:
    def reply(messages: Any) -> Any:
        is_parent = messages[0].parts[0].content == "go"
        return (
            Call("subagent_task", {"prompt": "loop"})
            if is_parent
            else Reply(code="print('on', flush=True)\nwhile 1: 0")
        )

    async with Agent(ScriptedAgentModel(reply), working_dir=tmp_path) as agent:
        events = []
        async for event in agent.stream("go"):
            events.append(event)
            if isinstance(event, ApprovalRequest):
                event.approve()
            if type(event).__name__ == "CodeExecutionOutputChunk":
                await agent.cancel()
        assert isinstance(events[-1], Cancelled)
        assert agent.messages[-1].parts[0].outcome == "interrupted"
        tasks = {task.get_name() for task in asyncio.all_tasks()} - {asyncio.current_task().get_name()}  # type: ignore[union-attr]
        assert not [name for name in tasks if "sub" in name]


async def test_rounds_of_a_subagent_that_are_none_are_refused_and_null_leaves_them_out(
    tmp_path: Path, watch: Any
) -> None:
    tasks = [Call("subagent_task", {"prompt": "work", "max_turns": turns}) for turns in (0, -3, None)]
    model = ScriptedAgentModel([tasks, "worked", "ok"])
    async with Agent(model, working_dir=tmp_path, max_subagent_turns=7) as agent:
        events = await watch(agent.stream("go"))
    assert [asked.tool_args["max_turns"] for asked in watch.only(ApprovalRequest, events)] == [7]
    assert [part.content for part in model.seen[-1][-1].parts] == [
        "the task cannot be given as it is: max_turns must be 1 or more, not 0",
        "the task cannot be given as it is: max_turns must be 1 or more, not -3",
        "worked",
    ]


async def test_a_subagents_budget_is_told(tmp_path: Path, watch: Any) -> None:
    def reply(messages: Any) -> Any:
        done = sum(part.part_kind == "tool-return" for message in messages for part in message.parts)
        if messages[0].parts[0].content == "go":
            return Call("subagent_task", {"prompt": "work", "max_turns": 2}) if not done else "ok"
        return Reply(code="1")

    model = ScriptedAgentModel(reply)
    async with Agent(model, working_dir=tmp_path) as agent:
        events = await watch(agent.stream("go"))
    assert len(watch.only(CodeExecutionOutput, events)) == 2
    assert [event.reason for event in watch.only(Cancelled, events)] == ["max_turns"]
    assert watch.told(model) == (
        "The subagent did not come to an answer: its rounds of tool calls, 2 at most, are used up. "
        "What it did is done; give a smaller task, or more rounds (max_turns)."
    )
    assert model.seen[-1][-1].parts[0].outcome == "failed"


async def test_a_subagent_that_a_person_stopped_is_told_as_such(tmp_path: Path, watch: Any) -> None:
    def reply(messages: Any) -> Any:
        if messages[0].parts[0].content == "go":
            return Call("subagent_task", {"prompt": "work"}) if len(messages) == 1 else "ok"
        return Reply(code="1")

    def answer(request: ApprovalRequest) -> None:
        request.approve(request.kind != "code")

    model = ScriptedAgentModel(reply)
    async with Agent(model, working_dir=tmp_path) as agent:
        events = await watch(agent.stream("go"), answer)
    assert watch.told(model) == (
        "The subagent did not come to an answer: the user said no to what it wanted to do, and so stopped it."
    )
    assert [event.denied for event in watch.only(CallFailed, events) if event.tool_name == "subagent_task"] == [True]


async def test_a_bare_no_to_a_task_ends_the_turn_and_begins_none(tmp_path: Path, watch: Any) -> None:
    tasks = [Call("subagent_task", {"prompt": name}) for name in ("first", "second", "third")]

    def answer(request: ApprovalRequest) -> None:
        request.approve(request.tool_args["prompt"] != "second")

    model = ScriptedAgentModel([tasks])
    async with Agent(model, working_dir=tmp_path) as agent:
        events = await watch(agent.stream("go"), answer)
        outcomes = [part.outcome for part in agent.messages[-1].parts]
    assert [event.tool_args["prompt"] for event in watch.only(ApprovalRequest, events)] == ["first", "second"]
    assert events[-1].reason == "rejected"
    assert outcomes == ["interrupted", "denied", "interrupted"]


async def test_pictures_are_saved_and_shown_to_the_model(tmp_path: Path, watch: Any) -> None:
    model = ScriptedAgentModel([Reply(code=DOT), "seen"])
    async with Agent(model, working_dir=tmp_path, images_dir=tmp_path / "pictures") as agent:
        events = await watch(agent.stream("draw"))
    [path] = watch.only(CodeExecutionOutput, events)[0].images
    assert path.parent == tmp_path / "pictures"
    assert path.read_bytes().startswith(b"\x89PNG")
    assert model.seen[-1][-1].parts[0].content[1].media_type == "image/png"


LARGE = """
import struct, zlib

def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

class Large:
    def _repr_png_(self):
        begin = b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 3000, 1500, 8, 0, 0, 0, 0))
        return begin + chunk(b"IDAT", zlib.compress(bytes(3001 * 1500))) + chunk(b"IEND", b"")

class Drawn:
    def _repr_svg_(self):
        return "<svg xmlns='http://www.w3.org/2000/svg'/>"

display(Large())
Drawn()
"""


async def test_large_pictures_are_shown_smaller_and_those_not_shown_are_named(tmp_path: Path, watch: Any) -> None:
    model = ScriptedAgentModel([Reply(code=LARGE), "seen"])
    async with Agent(model, working_dir=tmp_path) as agent:
        events = await watch(agent.stream("draw"))
    text, shown = model.seen[-1][-1].parts[0].content
    with Image.open(BytesIO(shown.data)) as picture:
        assert picture.size == (1024, 512)
    assert text.endswith("not shown to you: display-2.svg (image/svg+xml): it is no picture you can see")
    saved = watch.only(CodeExecutionOutput, events)[0].images[0]
    with Image.open(saved) as picture:
        assert picture.size == (3000, 1500)


async def test_a_picture_of_a_tool_that_is_none_is_told_and_not_sent(tmp_path: Path, watch: Any) -> None:
    server = tmp_path / "server.py"
    server.write_text(
        "from mcp.server.mcpserver import Image, MCPServer\nserver = MCPServer('eyes')\n"
        "@server.tool()\ndef look() -> Image:\n    'Look.'\n    return Image(data=b'nothing', format='png')\n"
        "server.run()\n"
    )
    model = ScriptedAgentModel([Call("eyes_look"), "nothing there"])
    servers = {"eyes": {"command": sys.executable, "args": [str(server)]}}
    async with Agent(model, working_dir=tmp_path, mcp_servers=servers) as agent:
        await watch(agent.stream("look"))
    assert watch.told(model) == "not shown to you: a picture (image/png): it does not begin like one"


async def test_a_folder_of_pictures_that_is_a_link_is_not_followed(tmp_path: Path, watch: Any) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    code = f"import os\nos.symlink({str(outside)!r}, 'images')\n{DOT}"
    async with Agent(ScriptedAgentModel([Reply(code=code), "seen"]), working_dir=workspace) as agent:
        await watch(agent.stream("draw"))
    assert list(outside.iterdir()) == []


async def test_a_long_result_goes_to_a_file_that_code_can_read(tmp_path: Path, watch: Any) -> None:
    script = [
        Reply(code="for n in range(10_000): print(n, 'x' * 10)"),
        lambda messages: Reply(
            code=f"open({messages[-1].parts[0].content.split('in the file ')[1].split(';')[0]!r}).read().count('x')"
        ),
        "done",
    ]
    model = ScriptedAgentModel(script)
    async with Agent(model, working_dir=tmp_path) as agent:
        events = await watch(agent.stream("count"))
    told = watch.told(model, 1)
    assert told.startswith("158889 bytes in 10000 lines")
    assert len(told) < 2000
    assert watch.only(CodeExecutionOutput, events)[1].text == "100000"


async def test_a_history_that_grows_too_long_is_summed_up(tmp_path: Path, watch: Any) -> None:
    def reply(messages: Any) -> Any:
        last = messages[-1].parts[0].content
        return "They spoke of apples." if "handing a long task over" in last else f"answer {len(messages)}"

    model = ScriptedAgentModel(reply)
    async with Agent(model, working_dir=tmp_path, context_tokens=1000) as agent:
        events = []
        for n in range(12):
            events += await watch(agent.stream(f"prompt {n} " + "apples " * 60))
    found = watch.only(Compacted, events)
    assert found
    assert all(each.after < each.before for each in found)
    assert "They spoke of apples." in str(agent.messages[0].parts[0].content)
    assert len(agent.messages) < 24


async def test_a_history_whose_summary_is_refused_is_kept_while_there_is_room(tmp_path: Path, watch: Any) -> None:
    def reply(messages: Any) -> Any:
        if "handing a long task over" in messages[-1].parts[0].content:
            raise ModelHTTPError(status_code=400, model_name="m", body={"message": "no"})
        return f"answer {len(messages)}"

    async with Agent(ScriptedAgentModel(reply), working_dir=tmp_path, context_tokens=1000) as agent:
        for n in range(12):
            events = await watch(agent.stream(f"prompt {n} " + "apples " * 60))
    assert watch.only(Response, events)[-1].content == "answer 23"
    assert len(agent.messages) == 24


async def test_any_sandbox_can_be_given(tmp_path: Path, watch: Any) -> None:
    model = ScriptedAgentModel([Reply(code="pay(1)"), "done"])
    async with MontySandbox() as sandbox:
        async with Agent(model, working_dir=tmp_path, sandbox=sandbox, tools=[pay]) as agent:
            events = await watch(agent.stream("pay"))
    assert watch.only(CodeExecutionOutput, events)[0].result.tier == "language"
    with pytest.raises(InvalidSetting, match="a ready sandbox has its own settings"):
        await Agent(model, sandbox=MontySandbox(), kernel_env={"A": "1"}, working_dir=tmp_path).start()


async def test_unsealed_code_is_warned_about(tmp_path: Path, watch: Any, caplog: pytest.LogCaptureFixture) -> None:
    model = ScriptedAgentModel([Reply(code="import os\nos.environ['A']"), "done"])
    async with Agent(model, working_dir=tmp_path, sandbox=False, kernel_env={"A": "1"}) as agent:
        events = await watch(agent.stream("go"))
    assert watch.only(CodeExecutionOutput, events)[0].text == "'1'"
    assert caplog.messages == ["code actions run unsealed: they can do whatever this user can"]


async def test_binding_to_a_port_is_not_granted_and_that_is_said(
    tmp_path: Path, watch: Any, caplog: pytest.LogCaptureFixture
) -> None:
    config = tmp_path / "sandbox-config.json"
    config.write_text('{"network": {"allowLocalBinding": true}}')
    code = "import socket\nsocket.socket().bind(('127.0.0.1', 0))"
    model = ScriptedAgentModel([Reply(code=code), "done"])
    async with Agent(model, working_dir=tmp_path, sandbox="jail", sandbox_config=config) as agent:
        await watch(agent.stream("go"))
    assert "PermissionError: [Errno 1] Operation not permitted" in watch.told(model, 1)
    assert caplog.messages == [
        "allowLocalBinding is not granted: no code listens on a port in the jail; calls of tools need none"
    ]


async def test_a_place_to_write_that_is_not_granted_is_said_with_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = tmp_path / "sandbox-config.json"
    config.write_text('{"filesystem": {"allowWrite": [".", "out/*.csv", "none/**"]}}')
    async with Agent(ScriptedAgentModel([]), working_dir=tmp_path, sandbox="jail", sandbox_config=config):
        pass
    assert caplog.messages == [
        "allowWrite 'out/*.csv' is not granted: of patterns it takes only `folder/**`; name the folder, and in "
        "denyWrite what stays shut",
        "allowWrite 'none/**' is not granted: it does not exist; make it before the agent starts",
    ]


async def test_the_code_sees_its_workspace_and_not_its_secrets(tmp_path: Path, watch: Any) -> None:
    (tmp_path / ".env").write_text("KEY=secret")
    (tmp_path / "a.txt").write_text("seen")
    code = "print(open('a.txt').read())\nopen('b.txt', 'w').write('made')\nopen('.env').read()"
    model = ScriptedAgentModel([Reply(code=code), Call("read_file", {"path": ".env"}), "done"])
    async with Agent(model, working_dir=tmp_path) as agent:
        await watch(agent.stream("go"))
    assert "PermissionError" in watch.told(model, 1)
    assert "secret" not in watch.told(model, 1)
    assert watch.told(model, 2) == ".env holds secrets and is not read"
    assert (tmp_path / "b.txt").read_text() == "made"


async def test_skills_of_an_agent_are_told_as_such(tmp_path: Path) -> None:
    model = ScriptedAgentModel(["hello"])
    skill = SkillMetadata(name="cakes", description="How to bake.", path=tmp_path / "SKILL.md")
    async with Agent(model, working_dir=tmp_path, sandbox="monty", skills=[skill]) as agent:
        assert [event async for event in agent.stream("hi")]
    told = str(model.seen[0][-1].instructions)  # type: ignore[union-attr]
    assert told.endswith(
        "Skills, which are instructions for one kind of task; read the file of one that fits before you begin:\n\n"
        f"- cakes: How to bake. ({tmp_path}/SKILL.md)"
    )


def read_file(path: str) -> str:
    """Somebody's own."""
    return path


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"tools": [read_file]}, "two tools are named 'read_file'"),
        ({"max_subagents": 0}, "max_subagents=0, max_subagent_turns=100: both must be 1 or more"),
        ({"approval_timeout": 0}, "approval_timeout must be more than 0, not 0"),
        ({"execution_timeout": -1}, "execution_timeout must be more than 0, not -1"),
        ({"context_tokens": 0}, "context_tokens must be 1 or more, not 0"),
        ({"working_dir": Path("/absent")}, "the working directory /absent is not there"),
    ],
)
async def test_what_would_wait_for_good_or_be_mistaken_is_refused_at_the_start(
    settings: dict[str, Any], told: str, tmp_path: Path
) -> None:
    agent = Agent(ScriptedAgentModel(["hello"]), **{"working_dir": tmp_path, "sandbox": "monty", **settings})
    with pytest.raises((InvalidSetting, InvalidTool), match=told):
        await agent.start()


def test_long_names_of_tools_stay_apart() -> None:
    names = {json_name(f"{'server' * 12}.{tool}") for tool in ("one", "two")}
    assert len(names) == 2
    assert {len(name) for name in names} == {64}
    assert json_name("a.b c") == "a_b_c"


async def test_a_task_that_cannot_be_given_is_told_as_a_failure(tmp_path: Path, watch: Any) -> None:
    model = ScriptedAgentModel([Call("subagent_task", {"prompt": ""}), "done"])
    async with Agent(model, working_dir=tmp_path, sandbox="monty") as agent:
        events = await watch(agent.stream("go"))
    [failed] = watch.only(CallFailed, events)
    assert (failed.tool_name, watch.only(ToolOutput, events)) == ("subagent_task", [])
    assert failed.error.startswith("the task cannot be given as it is: subagent_task takes")


async def test_a_tool_the_model_calls_itself_begins_with_what_it_runs_with(tmp_path: Path, watch: Any) -> None:
    (tmp_path / "notes.txt").write_text("hello", encoding="utf-8")
    model = ScriptedAgentModel([Call("read_file", {"path": "notes.txt"}), "done"])
    async with Agent(model, working_dir=tmp_path, sandbox="monty") as agent:
        events = await watch(agent.stream("go"))
    [begun] = watch.only(CallStarted, events)
    assert (begun.call.function_name, begun.call.kwargs["path"]) == ("read_file", "notes.txt")
    [gave] = watch.only(ToolOutput, events)
    assert begun.call.call_id == gave.call_id
