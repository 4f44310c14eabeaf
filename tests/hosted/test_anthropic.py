"""Anthropic's code execution through the real SDK: blocks, streams, containers, files, errors."""

import json
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic

from hatchway import tool
from hatchway.core.errors import (
    AnswerWithheld,
    CodeRuntimeError,
    CodeTimeoutError,
    InvalidSetting,
)
from hatchway.core.events import AgentEvent, ThoughtsChunk
from hatchway.hosted import (
    AnthropicAdapter,
    AnthropicCodeExecutionTool,
    ContainerLost,
    HostedCodeChunk,
    HostMount,
    UnknownItem,
)
from hatchway.testing import ScriptedVendor, VendorReply
from hatchway.testing.vendor_client import asked
from hatchway.testing.vendor_streams import streamed

pytestmark = pytest.mark.anyio
both_ways = pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])


def use(name: str, given: dict[str, Any], call_id: str = "srv_1") -> dict[str, Any]:
    return {"type": "server_tool_use", "id": call_id, "name": name, "input": given}


def result(kind: str, content: dict[str, Any], call_id: str = "srv_1") -> dict[str, Any]:
    return {"type": f"{kind}_tool_result", "tool_use_id": call_id, "content": content}


def ended(
    stdout: str = "1\n", code: int = 0, files: tuple[str, ...] = (), kind: str = "code_execution"
) -> dict[str, Any]:
    outputs = [{"type": f"{kind}_output", "file_id": file_id} for file_id in files]
    return {"type": f"{kind}_result", "stdout": stdout, "stderr": "", "return_code": code, "content": outputs}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def message(*blocks: dict[str, Any], stop: str = "end_turn", container: str | None = "container_1") -> dict[str, Any]:
    told = {"id": container, "expires_at": "2026-12-01T00:00:00Z"} if container else None
    base = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-real", "stop_sequence": None}
    usage = {"input_tokens": 7, "output_tokens": 3}
    return {**base, "content": list(blocks), "stop_reason": stop, "usage": usage, "container": told}


def adapter(vendor: ScriptedVendor, **settings: Any) -> AnthropicAdapter:
    settings = {"tools": [AnthropicCodeExecutionTool()], "retries": 0} | settings
    return AnthropicAdapter("claude-test", client=vendor.client(), **settings)


@both_ways
async def test_a_whole_exchange_with_files(streams: bool, tmp_path: Path) -> None:
    edit = {"command": "create", "path": "a.txt", "file_text": "x"}
    created = {"type": "text_editor_code_execution_create_result", "is_file_update": False}
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "redacted_thinking", "data": "zzz"},
        use("code_execution", {"code": "print(1)"}),
        result("code_execution", ended(files=("file_1",))),
        use("bash_code_execution", {"command": "ls"}, "srv_2"),
        result("bash_code_execution", ended("a\n", 2, kind="bash_code_execution"), "srv_2"),
        use("text_editor_code_execution", edit, "srv_3"),
        result("text_editor_code_execution", created, "srv_3"),
        text("here"),
    ]  # fmt: skip
    metadata = {"id": "file_1", "filename": "../../etc/x.png", "mime_type": "x", "size_bytes": 1, "type": "file"}
    vendor = ScriptedVendor(
        "anthropic",
        [message(*blocks)],
        files={"file_1": b"png"},
        routes={"GET /v1/files/file_1": VendorReply(body={**metadata, "created_at": "2026-01-01T00:00:00Z"})},
    )
    async with adapter(vendor) as anthropic:
        reply = await asked(anthropic, streams=streams)
        written = await anthropic.download_all(reply, tmp_path / "out")
    assert vendor.asked[0] == {
        "model": "claude-test",
        "max_tokens": 8192,
        "messages": [{"role": "user", "content": [text("go")]}],
        "tools": [{"type": "code_execution_20260120", "name": "code_execution"}],
        **({"stream": True} if streams else {}),
    }
    assert (reply.text, reply.stdout) == ("here", "1\na\n")
    told = [(code.call.language, code.call.code, code.status, code.exit_code) for code in reply.codes]
    assert told == [
        ("python", "print(1)", "ok", 0),
        ("bash", "ls", "failed", 2),
        ("file_edit", json.dumps(edit), "ok", None),
    ]
    assert [each.success for each in reply.tool_results] == [True, False, True]
    with pytest.raises(CodeRuntimeError):
        reply.codes[1].as_execution()
    assert written == {"file_1": tmp_path / "out" / "x.png"}
    assert written["file_1"].read_bytes() == b"png"
    assert reply.items == ({"role": "assistant", "content": blocks},)
    assert reply.container is not None
    assert (reply.container.id, reply.container.expires_at) == ("container_1", "2026-12-01T00:00:00Z")
    assert (reply.telemetry[0].request_id, reply.telemetry[0].container_id) == ("req_1", "container_1")


@pytest.mark.parametrize(
    ("kind", "error", "status"),
    [
        ("code_execution", "invalid_tool_input", "failed"),
        ("code_execution", "unavailable", "unavailable"),
        ("code_execution", "too_many_requests", "unavailable"),
        ("code_execution", "execution_time_exceeded", "timeout"),
        ("bash_code_execution", "output_file_too_large", "failed"),
        ("text_editor_code_execution", "file_not_found", "failed"),
        ("code_execution", "newest_error", "failed"),
    ],
)
async def test_every_error_code(kind: str, error: str, status: str) -> None:
    content = {"type": f"{kind}_tool_result_error", "error_code": error}
    vendor = ScriptedVendor("anthropic", [message(use(kind, {"code": "x"}), result(kind, content), text("sorry"))])
    async with adapter(vendor) as anthropic:
        reply = await anthropic.run("go")
    (code,) = reply.codes
    assert (code.status, code.error_code, code.success, code.exit_code) == (status, error, False, None)
    with pytest.raises(CodeTimeoutError if status == "timeout" else CodeRuntimeError):
        code.as_execution()


async def test_encrypted_output_goes_back_as_it_came() -> None:
    secret = {"type": "encrypted_code_execution_result", "encrypted_stdout": "zzz", "stderr": "", "return_code": 0}
    blocks = [use("code_execution", {"code": "x"}), result("code_execution", {**secret, "content": []}), text("a")]
    vendor = ScriptedVendor("anthropic", [message(*blocks), message(text("b"))])
    async with adapter(vendor) as anthropic:
        reply = await anthropic.run("go")
        await anthropic.run("more", session=reply.session)
    assert (reply.codes[0].stdout, reply.codes[0].status) == (None, "ok")
    assert reply.codes[0].opaque == {"encrypted_stdout": "zzz"}
    assert vendor.asked[1]["messages"][1] == {"role": "assistant", "content": blocks}
    assert vendor.asked[1]["container"] == "container_1"


async def test_views_and_replacements_of_files() -> None:
    view = {"type": "text_editor_code_execution_view_result", "content": "a\nb", "file_type": "text", "num_lines": 2}
    change = {"type": "text_editor_code_execution_str_replace_result", "lines": ["-a", "+b"], "new_lines": 1}
    kind = "text_editor_code_execution"
    blocks = [use(kind, {}, "1"), result(kind, view, "1"), use(kind, {}, "2"), result(kind, change, "2")]
    async with adapter(ScriptedVendor("anthropic", [message(*blocks)])) as anthropic:
        reply = await anthropic.run("go")
    assert [code.stdout for code in reply.codes] == ["a\nb", "-a\n+b"]


async def test_a_stream_tells_code_as_it_is_written() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        use("code_execution", {"code": "print('ä')\nx = 1"}),
        result("code_execution", ended()),
        text("done"),
    ]
    async with adapter(ScriptedVendor("anthropic", [message(*blocks)])) as anthropic:
        events = [event async for event in anthropic.stream("go")]
    chunks = [event.text for event in events if isinstance(event, HostedCodeChunk)]
    assert len(chunks) >= 2
    assert "".join(chunks) == "print('ä')\nx = 1"
    assert any(isinstance(event, ThoughtsChunk) for event in events)


@both_ways
async def test_a_paused_turn_is_taken_up_again(streams: bool) -> None:
    first = message(use("code_execution", {"code": "x"}), stop="pause_turn")
    second = message(result("code_execution", ended("late\n")), text("one "), stop="pause_turn")
    vendor = ScriptedVendor("anthropic", [first, second, message(text("two"))])
    async with adapter(vendor) as anthropic:
        reply = await asked(anthropic, streams=streams)
    assert (reply.text, reply.stdout) == ("one two", "late\n")
    assert reply.codes[0].call.code == "x"
    assert [each["role"] for each in vendor.asked[1]["messages"]] == ["user", "assistant"]


@both_ways
@pytest.mark.parametrize("stop", ["max_tokens", "model_context_window_exceeded", "refusal", "newest_reason"])
async def test_no_whole_answer(streams: bool, stop: str) -> None:
    async with adapter(ScriptedVendor("anthropic", [message(text("half"), stop=stop)])) as anthropic:
        with pytest.raises(AnswerWithheld, match=f"{stop}: half") as caught:
            await asked(anthropic, streams=streams)
    assert isinstance(caught.value, AssertionError)


def expired(status: int, words: str) -> VendorReply:
    return VendorReply(status=status, body={"type": "error", "error": {"type": "api_error", "message": words}})


@both_ways
@pytest.mark.parametrize(
    "gone",
    [
        expired(404, "Container container_1 not found"),
        expired(400, "container: expired"),
        expired(500, "Internal error"),
    ],
    ids=["404", "400", "500"],
)
async def test_a_container_that_is_gone_is_replaced_once(streams: bool, gone: VendorReply, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,2")
    code = AnthropicCodeExecutionTool(host_mounts=(HostMount(host_path="a.csv"),), file_ids=("file_old",))
    first = message(
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        use("code_execution", {"code": "x = 1"}),
        result("code_execution", ended("one")),
        text("there"),
    )
    vendor = ScriptedVendor("anthropic", [first, gone, message(text("again"), container="container_2")])
    vendor.script.append(message(text("and on"), container="container_2"))
    events: list[AgentEvent] = []
    async with adapter(vendor, tools=[code], allowed_host_roots=[tmp_path], on_event=events.append) as anthropic:
        session = anthropic.session()
        await asked(anthropic, streams=streams, session=session)
        assert (await asked(anthropic, streams=streams, session=session)).text == "again"
        assert (await asked(anthropic, streams=streams, session=session)).text == "and on"
    assert [event.container_id for event in events if isinstance(event, ContainerLost)] == ["container_1"]
    assert [body.get("container") for body in vendor.asked] == [None, "container_1", None, "container_2"]
    uploads = [block["file_id"] for block in vendor.asked[0]["messages"][0]["content"] if "file_id" in block]
    assert uploads[0] == "file_old"
    assert len(uploads) == 2
    clean = json.dumps(vendor.asked[2]["messages"])
    assert "server_tool_use" not in clean
    assert "thinking" not in clean
    assert "x = 1" in clean
    assert clean.count("container_upload") == 2
    assert sum(request.path == "/v1/files" for request in vendor.requests) == 1


async def test_a_container_gone_while_its_code_waits_for_us() -> None:
    done: list[str] = []

    @tool
    def price(item: str) -> int:
        done.append(item)
        return 3

    call = {"type": "tool_use", "id": "t1", "name": "price", "input": {"item": "tea"},
            "caller": {"type": "code_execution_20260120", "tool_id": "srv_1"}}  # fmt: skip
    script = [message(use("code_execution", {"code": "price('tea')"}), call, stop="tool_use")]
    vendor = ScriptedVendor(
        "anthropic", [*script, expired(404, "Container container_1 not found"), message(text("ok"))]
    )
    async with adapter(vendor, tools=[AnthropicCodeExecutionTool(tools=(price,))]) as anthropic:
        assert (await anthropic.run("go")).text == "ok"
    assert done == ["tea"]
    retold = json.dumps(vendor.asked[2]["messages"])
    assert '"tool_use"' not in retold
    assert '"tool_result"' not in retold
    assert "It called price(" in retold
    assert "That call was made and gave: 3" in retold


async def test_a_container_gone_while_its_code_and_the_model_wait_for_us() -> None:
    @tool
    def price(item: str) -> int:
        return 3

    @tool
    def size(item: str) -> int:
        return 4

    caller = {"type": "code_execution_20260120", "tool_id": "srv_1"}
    from_code = {"type": "tool_use", "id": "t1", "name": "price", "input": {"item": "tea"}, "caller": caller}
    direct = {"type": "tool_use", "id": "t2", "name": "size", "input": {"item": "tea"}}
    begun = use("bash_code_execution", {"command": "call price"})
    gone = expired(404, "Container container_1 not found")
    vendor = ScriptedVendor(
        "anthropic", [message(begun, from_code, direct, stop="tool_use"), gone, message(text("ok"))]
    )
    async with adapter(vendor, tools=[AnthropicCodeExecutionTool(tools=(price,)), size]) as anthropic:
        assert (await anthropic.run("go")).text == "ok"
    _, said, answers = vendor.asked[2]["messages"]
    assert "call price" in said["content"][0]["text"]
    assert [block["type"] for block in answers["content"]] == ["tool_result", "text"]  # words before it are refused
    assert answers["content"][0]["tool_use_id"] == "t2"


@both_ways
async def test_kinds_that_did_not_exist_yesterday(streams: bool) -> None:
    new = {"type": "hologram", "beams": [1]}
    vendor = ScriptedVendor("anthropic", [message(new, text("x")), message(text("y"))])
    events: list[AgentEvent] = []
    async with adapter(vendor, on_event=events.append) as anthropic:
        with pytest.warns(UserWarning, match="anthropic sent 'hologram'"):
            reply = await asked(anthropic, streams=streams)
        await asked(anthropic, streams=streams, session=reply.session)
    assert [event.kind for event in events if isinstance(event, UnknownItem)] == ["hologram"]
    assert vendor.asked[1]["messages"][1]["content"][0] == new
    odd = [{"type": "beam_event"}, *streamed("anthropic", message(text("x")))]
    odd.insert(4, {"type": "content_block_delta", "index": 0, "delta": {"type": "beam_delta"}})
    async with adapter(ScriptedVendor("anthropic", [VendorReply(body=odd)]), on_event=events.append) as anthropic:
        with pytest.warns(UserWarning, match="anthropic sent 'beam_"):
            assert (await asked(anthropic, streams=True)).text == "x"
    assert [event.kind for event in events if isinstance(event, UnknownItem)][1:] == ["beam_event", "beam_delta"]


async def test_settings_that_are_none() -> None:
    with pytest.raises(InvalidSetting, match="version is one of"):
        AnthropicCodeExecutionTool(version="code_execution_1999")  # type: ignore[arg-type]
    with pytest.raises(InvalidSetting, match="cannot call tools"):
        AnthropicCodeExecutionTool(version="code_execution_20250522", tools=(use,))  # type: ignore[arg-type]
    with pytest.raises(InvalidSetting, match="named by its id"):
        AnthropicCodeExecutionTool(container="")
    with pytest.raises(InvalidSetting, match="file_ids"):
        AnthropicCodeExecutionTool(file_ids=("",))
    with pytest.raises(InvalidSetting, match="AsyncAnthropic"):
        AnthropicAdapter("m", client=Anthropic(api_key="k"))


async def test_skills_schema_and_choice_in_the_request() -> None:
    code = AnthropicCodeExecutionTool(container="container_9", skills=({"type": "anthropic", "skill_id": "xlsx"},))
    vendor = ScriptedVendor("anthropic", [message(text('{"a": 1}'))])
    async with adapter(vendor, tools=[code], instructions="Be brief.") as anthropic:
        reply = await anthropic.run("go", tool_choice="code_execution", output_schema={"type": "object"})
    body = vendor.asked[0]
    assert body["container"] == {"id": "container_9", "skills": [{"type": "anthropic", "skill_id": "xlsx"}]}
    assert body["system"] == "Be brief."
    assert body["tool_choice"] == {"type": "tool", "name": "code_execution"}
    assert body["output_config"] == {"format": {"type": "json_schema", "schema": {"type": "object"}}}
    assert reply.output == {"a": 1}
