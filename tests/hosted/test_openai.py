"""OpenAI's code interpreter through the real SDK: requests, items, streams, containers, files, errors."""

import asyncio
import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from hatchway import CodeMode
from hatchway.core.errors import (
    AnswerWithheld,
    CodeRuntimeError,
    InvalidSetting,
    InvalidTool,
    SandboxCrashed,
    SandboxUnavailable,
    TransportError,
)
from hatchway.core.events import AgentEvent, CodeExecutionOutput, CodeExecutionOutputChunk, ResponseChunk
from hatchway.core.limits import Limits
from hatchway.hosted import (
    AutoContainerConfig,
    CodeInterpreterResult,
    ContainerLost,
    DomainSecret,
    ExistingContainerRef,
    HostedCodeChunk,
    HostedCodeEnded,
    HostedReply,
    HostedSandbox,
    HostMount,
    NetworkPolicy,
    OpenAIAdapter,
    OpenAICodeInterpreterTool,
    ProviderTool,
    ToolContext,
    ToolResult,
    UnknownItem,
    UploadProgress,
    VfsPath,
)
from hatchway.testing import ScriptedVendor, VendorReply, VendorRequest
from hatchway.testing.vendor_client import asked

pytestmark = pytest.mark.anyio
PNG = base64.b64encode(b"\x89PNG....").decode()


def ran(code: str = "print(1)", logs: str | None = "1\n", *, container: str = "cntr_a", **more: Any) -> dict[str, Any]:
    outputs = None if logs is None else [{"type": "logs", "logs": logs}]
    told = {"type": "code_interpreter_call", "id": f"ci_{code}", "code": code, "container_id": container}
    return {**told, "outputs": outputs, "status": "completed", **more}


def said(text: str, *, cites: tuple[tuple[str, str], ...] = (), container: str = "cntr_a") -> dict[str, Any]:
    notes = [
        {"type": "container_file_citation", "container_id": container, "file_id": file_id, "filename": name,
         "start_index": 0, "end_index": 4}
        for file_id, name in cites
    ]  # fmt: skip
    part = {"type": "output_text", "text": text, "annotations": notes}
    return {"type": "message", "id": "msg", "role": "assistant", "status": "completed", "content": [part]}


def response(*items: dict[str, Any], status: str = "completed", **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
    base = {"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-real", "status": status}
    return {**base, "output": list(items), "usage": usage, **more}


def adapter(vendor: ScriptedVendor, **settings: Any) -> OpenAIAdapter:
    settings = {"tools": [OpenAICodeInterpreterTool()], "retries": 0} | settings
    return OpenAIAdapter("gpt-test", client=vendor.client(), **settings)


both_ways = pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])


@both_ways
async def test_a_whole_exchange_with_citations(streams: bool, tmp_path: Path) -> None:
    items = [
        {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": ""},
        ran("first", "1\n"),
        ran("second", "2\n", outputs=[{"type": "logs", "logs": "2\n"}, {"type": "image", "url": "https://i/1.png"},
                                      {"type": "image", "url": f"data:image/png;base64,{PNG}"}]),
        said("here: plot", cites=(("cfile_1", "plot.png"), ("cfile_2", "data.csv"))),
    ]  # fmt: skip
    vendor = ScriptedVendor("openai", [response(*items)], files={"cfile_1": b"png", "cfile_2": b"csv"})
    async with adapter(vendor, max_output_tokens=99) as openai:
        reply = await asked(openai, streams=streams, tool_choice="code_interpreter")
        written = await openai.download_all(reply, tmp_path / "out")
    assert vendor.asked == [
        {
            "model": "gpt-test",
            "input": [{"role": "user", "content": [{"type": "input_text", "text": "go"}]}],
            "tools": [{"type": "code_interpreter", "container": {"type": "auto", "memory_limit": "1g"}}],
            "tool_choice": {"type": "code_interpreter"},
            "include": ["code_interpreter_call.outputs"],
            "max_output_tokens": 99,
            **({"stream": True} if streams else {}),
        }
    ]
    assert (reply.text, reply.output, reply.stdout, reply.tier) == ("here: plot", "here: plot", "1\n2\n", "vendor")
    assert [code.call.code for code in reply.codes] == ["first", "second"]
    assert [image.url for image in reply.codes[1].images] == ["https://i/1.png", ""]
    assert [image.content for image in reply.images] == [b"\x89PNG...."]
    assert [file.filename for file in reply.codes[1].files] == ["plot.png", "data.csv"]
    assert [(file.file_id, file.container_id, file.span) for file in reply.citations] == [
        ("cfile_1", "cntr_a", (0, 4)),
        ("cfile_2", "cntr_a", (0, 4)),
    ]
    assert {path.name: path.read_bytes() for path in written.values()} == {"plot.png": b"png", "data.csv": b"csv"}
    assert [result.success for result in reply.tool_results] == [None, None]
    assert list(reply.items) == items
    (told,) = reply.telemetry
    assert (told.request_id, told.response_id, told.model) == ("req_1", "resp_1", "gpt-real")
    assert (told.input_tokens, told.output_tokens, told.max_output_tokens) == (7, 3, 99)
    assert (told.container_id, told.memory_limit, told.streamed) == ("cntr_a", "1g", streams)


async def test_a_stream_tells_code_words_and_output_in_order() -> None:
    vendor = ScriptedVendor("openai", [response(ran("print(1)", "1\n"), said("done"))])
    async with adapter(vendor) as openai:
        events = [event async for event in openai.stream("go")]
    told = [
        event.text if isinstance(event, HostedCodeChunk | CodeExecutionOutputChunk) else event.content
        for event in events
        if isinstance(event, HostedCodeChunk | CodeExecutionOutputChunk | ResponseChunk)
    ]
    assert told == ["prin", "t(1)", "1\n", "do", "ne"]
    assert [type(event).__name__ for event in events[:2]] == ["RunStarted", "HostedCodeChunk"]
    assert len({event.run_id for event in events}) == 1
    assert sum(isinstance(event, HostedCodeEnded) for event in events) == 1


@pytest.mark.parametrize(
    ("status", "success", "ours"),
    [("completed", None, "unknown"), ("failed", False, "failed"), ("incomplete", False, "interrupted"),
     ("in_progress", False, "interrupted"), ("interpreting", False, "interrupted"), ("newest", None, "unknown")],
)  # fmt: skip
async def test_every_status_of_code(status: str, success: bool | None, ours: str) -> None:
    vendor = ScriptedVendor("openai", [response(ran(status=status, logs=None), said("x"))])
    async with adapter(vendor) as openai:
        reply = await openai.run("go")
    (code,) = reply.codes
    assert (code.status, code.success, reply.tool_results[0].success) == (ours, success, success)
    assert (code.stdout, code.stderr, code.exit_code, code.logs) == (None, None, None, None)
    if success is False:
        with pytest.raises(CodeRuntimeError, match=f"ended as {ours}"):
            code.as_execution()
    else:
        assert code.as_execution().tier == "vendor"


async def test_handlers_in_their_order_with_one_context() -> None:
    seen: list[Any] = []

    def on_output(result: CodeInterpreterResult, context: ToolContext) -> ToolResult[CodeInterpreterResult]:
        seen.append((result.output_text, context))
        return ToolResult("mine", result, True)

    def standard(params: Any, *, context: ToolContext) -> ToolResult[None]:
        seen.append((params, context))
        return ToolResult("standard", None)

    async def plain(result: dict[str, Any], context: ToolContext) -> ToolResult[dict[str, Any]]:
        return ToolResult(str(result.get("output_text")), result, True)

    replies: list[HostedReply] = []
    for settings in (
        {"handle_provider_output": on_output, "handler": standard},
        {"handler": standard},
        {"handle_provider_output": plain},
        {},
    ):
        vendor = ScriptedVendor("openai", [response(ran(), said("x"))])
        async with adapter(vendor, tools=[OpenAICodeInterpreterTool(**settings)]) as openai:
            replies.append(await openai.run("go", name="a prompt"))
            assert all(context.adapter is openai for _, context in seen[len(replies) - 1 :])
    assert [reply.tool_results[0].message for reply in replies] == ["mine", "standard", "1\n", "1\n"]
    assert replies[2].tool_results[0].value["citations"] == []
    assert seen[0][0] == "1\n"
    context: ToolContext = seen[0][1]
    assert (context.prompt.text, context.prompt.name, context.prompt.model) == ("go", "a prompt", "gpt-test")
    assert context.session is replies[0].session
    assert context.run_id
    assert context.call_id == "ci_print(1)"


async def test_a_tool_of_another_vendor_is_refused_before_any_request() -> None:
    other: Any = ProviderTool(name="code", provider="gemini")
    vendor = ScriptedVendor("openai")
    with pytest.raises(InvalidTool, match="runs at gemini, this adapter speaks with openai"):
        adapter(vendor, tools=[other])
    with pytest.raises(InvalidSetting, match="tools takes several, not one OpenAICodeInterpreterTool"):
        adapter(vendor, tools=OpenAICodeInterpreterTool())
    with pytest.raises(InvalidSetting, match="deadline is in seconds and above 0, not 0"):
        adapter(vendor, deadline=0)
    with pytest.raises(InvalidTool, match="one code tool"):
        adapter(vendor, tools=[OpenAICodeInterpreterTool(), OpenAICodeInterpreterTool(name="b")])
    with pytest.raises(InvalidSetting, match="AsyncOpenAI"):
        OpenAIAdapter("m", client=OpenAI(api_key="k"))
    assert vendor.requests == []


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"type": "auto", "memory_limit": "2g"}, "memory_limit is one of 1g, 4g, 16g, 64g, not '2g'"),
        ({"id": ""}, "named by its id"),
        ({"id": None}, "named by its id"),
        ({"type": "other"}, "not of type 'other'"),
        ({"id": "c", "memory_limit": "2g"}, "not '2g'"),
        ({"type": "auto", "volume": 1}, "has no volume"),
        ({"type": "auto", "file_ids": [""]}, "file_ids"),
        ({"network_policy": {"type": "open"}}, "'disabled' or 'allowlist'"),
        ({"network_policy": {"allowed_domains": ["http://x"]}}, "bare host name"),
        ({"network_policy": {"allowed_domains": "a.org"}}, "allowed_domains takes several, not one str"),
        ({"network_policy": {"type": "disabled", "allowed_domains": ["a.org"]}}, "'disabled', or an 'allowlist' with"),
        ({"network_policy": {"type": "allowlist"}}, "'disabled', or an 'allowlist' with"),
        ({"network_policy": {"domains": ["a.org"]}}, "a network policy has no domains"),
        ({"network_policy": "disabled"}, "a network policy is a NetworkPolicy, not 'disabled'"),
        ({"network_policy": {"allowed_domains": ["a.org"], "domain_secrets": [{"value": "s3"}]}}, "a name and a value"),
        ({"network_policy": {"allowed_domains": ["a.org"], "domain_secrets": {"value": "s3"}}}, "not one dict"),
        ({"type": "auto", "file_ids": "file_1"}, "file_ids takes several, not one str"),
        ({"type": "auto", "host_mounts": HostMount(host_path="a")}, "host_mounts takes several, not one HostMount"),
        ({"type": "auto", "host_mounts": [{"path": "a"}]}, "a host mount is not given like this"),
        ({"type": "auto", "expires_after_minutes": 0}, "expires_after_minutes is at least 1"),
        (5, "not 5"),
    ],
)
def test_containers_that_are_none(given: Any, wrong: str) -> None:
    with pytest.raises(InvalidSetting, match=wrong) as told:
        OpenAICodeInterpreterTool(container=given)
    assert told.value.hint
    assert "s3" not in str(told.value)


def test_containers_as_the_vendor_takes_them() -> None:
    secret = DomainSecret(domain="a.org", name="KEY", value="s3cret")
    policy = NetworkPolicy(allowed_domains=("a.org",), domain_secrets=(secret,))
    auto = AutoContainerConfig(memory_limit="16g", file_ids=("file_1",), network_policy=policy)
    assert OpenAICodeInterpreterTool(container=auto).declaration() == {
        "type": "code_interpreter",
        "container": {
            "type": "auto",
            "memory_limit": "16g",
            "file_ids": ["file_1"],
            "network_policy": {
                "type": "allowlist",
                "allowed_domains": ["a.org"],
                "domain_secrets": [{"domain": "a.org", "name": "KEY", "value": "s3cret"}],
            },
        },
    }
    assert "s3cret" not in repr(auto)
    plain = auto.payload()["network_policy"]
    assert AutoContainerConfig(network_policy=plain).network_policy == policy  # type: ignore[arg-type]
    assert AutoContainerConfig(network_policy=NetworkPolicy()).payload()["network_policy"] == {"type": "disabled"}
    existing = {"id": "cntr_9", "memory_limit": "4g"}
    assert OpenAICodeInterpreterTool(container=existing).declaration()["container"] == "cntr_9"
    assert OpenAICodeInterpreterTool(container="cntr_9").container == ExistingContainerRef(id="cntr_9")
    as_dict = {"type": "auto", "host_mounts": [{"host_path": "a", "mount_path": "/w/a", "include_glob": ["*.py"]}]}
    mount = OpenAICodeInterpreterTool(container=as_dict).container.host_mounts[0]
    assert mount == HostMount(host_path="a", mount_path=VfsPath(("w", "a")), include_glob=("*.py",))


async def test_host_files_are_uploaded_once_and_the_model_is_told_where_they_lie(tmp_path: Path) -> None:
    (tmp_path / "sunfish" / "data").mkdir(parents=True)
    (tmp_path / "sunfish" / "a.py").write_text("a")
    (tmp_path / "sunfish" / "data" / "same.py").write_text("a")
    (tmp_path / "sunfish" / "skip.bin").write_text("b")
    mount = HostMount(host_path="sunfish", mount_path=VfsPath(("workspace", "sunfish")), include_glob=("*.py",))
    tool = OpenAICodeInterpreterTool(container=AutoContainerConfig(memory_limit="4g", host_mounts=(mount,)))
    vendor = ScriptedVendor("openai", [response(said("x"))] * 3)
    events: list[AgentEvent] = []
    settings = {
        "tools": [tool],
        "allowed_host_roots": [tmp_path],
        "on_event": events.append,
        "instructions": "Be brief.",
    }
    async with adapter(vendor, **settings) as openai:
        first = await openai.run("one")
        await openai.run("two", session=first.session)
        await openai.run("three")  # a session of its own: the files are there, the container is not
    paths = [f"{request.method} {request.path}" for request in vendor.requests]
    assert paths.count("POST /v1/files") == 1
    assert paths.count("POST /v1/containers") == 2
    assert paths.count("POST /v1/containers/cntr_2/files") == 2  # in the second turn they were there already
    uploads = [event for event in events if isinstance(event, UploadProgress)]
    assert [(event.name, event.done, event.total, event.reused) for event in uploads[:2]] == [
        ("workspace/sunfish/a.py", 1, 2, False),
        ("workspace/sunfish/data/same.py", 2, 2, True),
    ]
    made = next(request for request in vendor.requests if request.path == "/v1/containers")
    assert made.body == {"name": "hatchway", "memory_limit": "4g"}
    assert vendor.asked[0]["tools"][0]["container"] == "cntr_2"
    assert "host_mounts" not in json.dumps(vendor.asked)
    assert vendor.asked[0]["instructions"] == (
        "Be brief.\n\nFiles for your code, by their name and where they really lie:\n"
        "- workspace/sunfish/a.py: /mnt/data/file_1\n- workspace/sunfish/data/same.py: /mnt/data/file_1"
    )


async def test_programs_may_have_the_interpreter_run() -> None:
    tool = OpenAICodeInterpreterTool(allowed_callers=("direct", "programmatic"))
    code = ran(caller={"type": "program", "caller_id": "p"})
    async with adapter(vendor := ScriptedVendor("openai", [response(code, said("x"))]), tools=[tool]) as openai:
        reply = await openai.run("go")
    interpreter, programs = vendor.asked[0]["tools"]
    assert interpreter["allowed_callers"] == ["direct", "programmatic"]
    assert programs == {"type": "programmatic_tool_calling"}
    assert reply.codes[0].call.caller == "program"
    with pytest.raises(InvalidSetting, match="'direct' and 'programmatic', not everybody"):
        OpenAICodeInterpreterTool(allowed_callers=("everybody",))  # type: ignore[arg-type]


async def test_structured_output_beside_the_tool() -> None:
    schema = {"type": "object", "properties": {"mean": {"type": "number"}}}
    script = [response(ran(), said('{"mean": 2.5}')), response(said("no json"))]
    async with adapter(vendor := ScriptedVendor("openai", script)) as openai:
        assert (await openai.run("go", output_schema=schema)).output == {"mean": 2.5}
        with pytest.raises(AnswerWithheld, match="no JSON"):
            await openai.run("go", output_schema=schema)
    assert vendor.asked[0]["text"]["format"]["schema"] == schema
    assert vendor.asked[0]["tools"][0]["type"] == "code_interpreter"


def cut_short(reason: str) -> dict[str, Any]:
    return response(status="incomplete", incomplete_details={"reason": reason})


def refused() -> dict[str, Any]:
    return response({**said(""), "content": [{"type": "refusal", "refusal": "I will not"}]})


@both_ways
@pytest.mark.parametrize(
    ("sent", "kind", "words"),
    [
        (cut_short("content_filter"), AnswerWithheld, "content_filter"),
        (cut_short("max_output_tokens"), AnswerWithheld, "raise max_output_tokens"),
        (response(status="failed", error={"code": "x", "message": "oh"}), SandboxCrashed, "openai failed: x: oh"),
        (refused(), AnswerWithheld, "refusal: I will not"),
    ],
)
async def test_no_whole_answer(streams: bool, sent: Any, kind: type[Exception], words: str) -> None:
    async with adapter(ScriptedVendor("openai", [sent])) as openai:
        session = openai.session()
        with pytest.raises(kind, match=words) as caught:
            await asked(openai, streams=streams, session=session)
    assert isinstance(caught.value, AssertionError) == (kind is AnswerWithheld)
    assert session.history == []
    assert not session.is_busy


@both_ways
@pytest.mark.parametrize(
    "error",
    [
        (404, "Container with id 'cntr_a' not found.", {}),
        (404, "No container found with id 'cntr_a'.", {}),
        (404, "Not found", {"code": "container_not_found"}),
        (410, "gone", {"param": "tools[0].container"}),
        (400, "Expected container_id: cntr_b", {}),
        (400, "The container is no longer available", {}),
        (200, "Container with id 'cntr_a' not found.", {"code": "invalid_request_error"}),
        (200, "The container is expired", {"code": "server_error"}),
    ],
    ids=str,
)
async def test_a_container_that_is_gone_is_replaced_once(streams: bool, error: tuple[int, str, Any]) -> None:
    status, message, more = error
    gone: Any = VendorReply(
        status=status, body={"error": {"message": message, "type": "invalid_request_error", **more}}
    )
    if status == 200:  # found out when its code was about to run
        gone = response(status="failed", error={"message": message, **more})
    reasoning = {"type": "reasoning", "id": "rs", "summary": []}
    vendor = ScriptedVendor(
        "openai",
        [
            response(reasoning, ran("x = 1", "one"), said("there", cites=(("f", "x.png"),))),
            gone,
            response(ran("x = 2", "two", container="cntr_b"), said("again", container="cntr_b")),
            response(said("and on")),
        ],
    )
    events: list[AgentEvent] = []
    async with adapter(vendor, on_event=events.append) as openai:
        session = openai.session()
        await asked(openai, streams=streams, session=session)
        assert (await asked(openai, streams=streams, session=session)).text == "again"
        assert (await asked(openai, streams=streams, session=session)).text == "and on"
    lost = [event for event in events if isinstance(event, ContainerLost)]
    assert [(event.container_id, message in event.reason) for event in lost] == [("cntr_a", True)]
    containers = [body["tools"][0]["container"] for body in vendor.asked]
    auto = {"type": "auto", "memory_limit": "1g"}
    assert containers == [auto, "cntr_a", auto, "cntr_b"]
    clean = json.dumps(vendor.asked[2]["input"])
    assert "cntr_a" not in clean
    assert "reasoning" not in clean
    assert "x = 1" in clean
    assert "It printed:\\none" in clean
    assert "cntr_a" not in json.dumps(session.history)


async def test_a_response_that_fails_for_its_container_twice_is_told() -> None:
    gone = response(status="failed", error={"code": "server_error", "message": "Container is expired."})
    vendor = ScriptedVendor("openai", [gone, gone, response(said("fine"))])
    async with adapter(vendor) as openai:
        session = openai.session()
        with pytest.raises(SandboxCrashed, match="openai failed: server_error: Container is expired"):
            await openai.run("go", session=session)
        assert (await openai.run("go", session=session)).text == "fine"


async def test_a_container_gone_twice_is_an_error_and_the_session_stays_usable() -> None:
    gone = VendorReply(status=404, body={"error": {"message": "Container not found"}})
    vendor = ScriptedVendor("openai", [gone, gone, response(said("fine"))])
    tool = OpenAICodeInterpreterTool(container=ExistingContainerRef(id="cntr_z", memory_limit="64g"))
    async with adapter(vendor, tools=[tool]) as openai:
        session = openai.session()
        with pytest.raises(SandboxUnavailable, match="Container not found"):
            await openai.run("go", session=session)
        assert (await openai.run("go", session=session)).text == "fine"
    containers = [body["tools"][0]["container"] for body in vendor.asked]
    assert containers == ["cntr_z", {"type": "auto", "memory_limit": "64g"}, {"type": "auto", "memory_limit": "64g"}]


@pytest.mark.parametrize("status", [404, 429, 500])
async def test_errors_of_a_download(status: int) -> None:
    bad = VendorReply(status=status, body={"error": {"message": "Container is expired"}}, headers={"retry-after": "0"})
    vendor = ScriptedVendor("openai", [response(ran(), said("x", cites=(("f", "x"),)))], routes={"GET .*": bad})
    async with adapter(vendor) as openai:
        reply = await openai.run("go")
        with pytest.raises(SandboxUnavailable, match="expired"):
            await openai.download(reply.citations[0])


async def test_a_mount_into_a_container_that_is_gone(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    gone = VendorReply(status=404, body={"error": {"message": "Container not found"}})
    vendor = ScriptedVendor("openai", [response(said("x"))], routes={"POST /v1/containers/cntr_old/files": gone})
    container = ExistingContainerRef(id="cntr_old", host_mounts=(HostMount(host_path="a.txt"),))
    tools = [OpenAICodeInterpreterTool(container=container)]
    async with adapter(vendor, tools=tools, allowed_host_roots=[tmp_path]) as openai:
        reply = await openai.run("go")
    assert reply.container is not None
    assert vendor.asked[0]["tools"][0]["container"] == reply.container.id != "cntr_old"


@both_ways
async def test_kinds_that_did_not_exist_yesterday_are_kept_and_told_once(streams: bool) -> None:
    new = {"type": "hologram_call", "id": "h", "beams": [1, {"a": None}]}
    odd = ran(outputs=[{"type": "smell", "of": "roses"}])
    vendor = ScriptedVendor("openai", [response(new, odd, said("x"))] * 2)
    events: list[AgentEvent] = []
    async with adapter(vendor, on_event=events.append) as openai:
        with pytest.warns(UserWarning, match="openai sent 'hologram_call': it is kept as it came"):
            reply = await asked(openai, streams=streams)
        again = await asked(openai, streams=streams, session=reply.session)  # a second warning would be an error
    assert [event.kind for event in events if isinstance(event, UnknownItem)] == ["hologram_call"] * 2
    assert reply.items[0] == again.items[0] == new
    assert vendor.asked[1]["input"][1] == new
    assert reply.codes[0].opaque["outputs"] == [{"type": "smell", "of": "roses"}]


async def test_rubbish_instead_of_a_response() -> None:
    async with adapter(ScriptedVendor("openai", [VendorReply(body=b"<html>")])) as openai:
        with pytest.raises(TransportError, match="no JSON"):
            await openai.run("go")
    odd = {"id": 5, "status": "completed", "output": [7, {"type": "message", "content": "x"}, ran(outputs={"a": 1})]}
    async with adapter(ScriptedVendor("openai", [odd])) as openai:
        assert (await openai.run("go")).text == ""
    huge = response(ran(logs="x" * 5_000_000), said("y"))
    async with adapter(ScriptedVendor("openai", [huge]), limits=Limits(output_bytes=1000)) as openai:
        reply = await openai.run("go")
    assert "4999000 bytes cut" in reply.stdout
    assert len(reply.codes[0].logs or "") == 5_000_000


async def test_a_session_answers_one_request_at_a_time() -> None:
    async with adapter(ScriptedVendor("openai", [response(said("x"))])) as openai:
        session = openai.session()
        session.is_busy = True
        with pytest.raises(InvalidSetting, match="answering another request"):
            await openai.run("go", session=session)
        with pytest.raises(InvalidSetting, match="tool_choice"):
            await openai.run("go", tool_choice="nothing_like_it")


async def test_two_requests_at_once_do_not_mix() -> None:
    def echo(request: VendorRequest) -> dict[str, Any]:
        return response(said(request.body["input"][0]["content"][0]["text"]))

    vendor = ScriptedVendor("openai", [echo] * 8)
    events: list[AgentEvent] = []
    async with adapter(vendor, on_event=events.append) as openai:
        replies = await asyncio.gather(*[asked(openai, f"n{number}", streams=number % 2 == 0) for number in range(8)])
    assert [reply.text for reply in replies] == [f"n{number}" for number in range(8)]
    told = [event for event in events if isinstance(event, CodeExecutionOutput)]
    assert len({event.run_id for event in told}) == 8
    assert len({id(reply.session) for reply in replies}) == 8


async def test_leaving_a_stream_gives_the_request_up() -> None:
    vendor = ScriptedVendor("openai", [response(ran(), said("hello")), response(said("fine"))])
    async with adapter(vendor) as openai:
        session = openai.session()
        stream = openai.stream("go", session=session)
        async for event in stream:
            if isinstance(event, HostedCodeChunk):
                break
        await stream.aclose()
        assert (session.history, session.is_busy) == ([], False)
        assert (await openai.run("go", session=session)).text == "fine"


async def test_a_vendor_as_a_sandbox_of_a_mode() -> None:
    vendor = ScriptedVendor("openai", [response(ran(), said("one")), response(said("two"))])
    async with adapter(vendor) as openai, CodeMode(HostedSandbox(openai)) as mode, mode.session() as session:
        first = await session.run("go")
        assert (first.output, first.stdout, first.tier) == ("one", "1\n", "vendor")
        assert (await session.run("more")).output == "two"
    assert len(vendor.asked[1]["input"]) == 4
    with pytest.raises(InvalidSetting, match="takes no inputs"):
        await HostedSandbox(openai).execute("go", inputs={"a": 1})
    assert HostedSandbox.probe().tier == "vendor"


@pytest.mark.parametrize(
    ("package", "module", "extra"),
    [("openai", "openai", "openai"), ("anthropic", "anthropic", "anthropic"), ("google.genai", "gemini", "gemini")],
)
def test_a_missing_sdk_names_its_extra(package: str, module: str, extra: str) -> None:
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        f"import hatchway.hosted as h; h.code_tool({module!r})\n"
        "from hatchway.core.errors import MissingExtra\n"
        f"try: import hatchway.hosted.{module}.adapter\n"
        "except MissingExtra as e: print(e.hint)"
    )
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60)
    assert ran.stdout.strip() == f"pip install 'hatchway[{extra}]'", ran.stderr
