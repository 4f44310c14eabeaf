"""Gemini's code execution through the real SDK: parts, outcomes, pictures, streams, errors."""

import asyncio
import base64
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from google import genai
from google.genai import types

from hatchway.core.errors import (
    AnswerWithheld,
    CodeRuntimeError,
    CodeTimeoutError,
    InvalidSetting,
    SandboxCrashed,
    SandboxUnavailable,
    TransportError,
)
from hatchway.core.events import AgentEvent, CodeExecutionDisplay, CodeExecutionOutput, RunFailed
from hatchway.core.limits import Limits
from hatchway.hosted import (
    FileRef,
    GeminiAdapter,
    GeminiCodeExecutionTool,
    HostedCodeChunk,
    HostedCodeEnded,
    HostedReply,
    HostMount,
    UnknownItem,
)
from hatchway.hosted.gemini.interactions import read_steps
from hatchway.hosted.gemini.reading import read_codes
from hatchway.testing import ScriptedVendor, VendorReply
from hatchway.testing.vendor import sdk_client
from hatchway.testing.vendor_streams import streamed

pytestmark = pytest.mark.anyio
both_ways = pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
PNG = b"\x89PNG\xff\xfe"


def code(text: str, **more: Any) -> dict[str, Any]:
    return {"executableCode": {"code": text, "language": "PYTHON", **more}, "thoughtSignature": "+/EC"}


def result(output: str, outcome: str = "OUTCOME_OK", **more: Any) -> dict[str, Any]:
    return {"codeExecutionResult": {"outcome": outcome, "output": output, **more}}


def response(*parts: dict[str, Any], finish: str = "STOP", **more: Any) -> dict[str, Any]:
    usage = {"promptTokenCount": 7, "candidatesTokenCount": 3}
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": finish, "index": 0}
    return {"candidates": [candidate], "modelVersion": "g-real", "responseId": "r1", "usageMetadata": usage, **more}


def adapter(vendor: ScriptedVendor, **settings: Any) -> GeminiAdapter:
    settings = {"tools": [GeminiCodeExecutionTool()], "retries": 0} | settings
    return GeminiAdapter("g-test", client=vendor.client(), **settings)


async def asked(adapter: GeminiAdapter, streams: bool, prompt: str = "go", **options: Any) -> HostedReply:
    if not streams:
        return await adapter.run(prompt, **options)
    last: Any = None
    events: AsyncGenerator[AgentEvent, None] = adapter.stream(prompt, **options)
    async for event in events:
        last = event
    assert isinstance(last, CodeExecutionOutput), last
    assert isinstance(last.result, HostedReply)
    return last.result


@both_ways
async def test_a_whole_exchange_with_pictures(streams: bool) -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": base64.b64encode(PNG).decode()}}
    parts = [
        {"text": "hm", "thought": True},
        code("plot()"),
        result("drawn\n"),
        picture,
        code("1/0", id="c2"),
        result("ZeroDivisionError", "OUTCOME_FAILED", id="c2"),
        {"text": "here it is"},
    ]
    vendor = ScriptedVendor("gemini", [response(*parts), response({"text": "more"})])
    events: list[AgentEvent] = []
    async with adapter(vendor, on_event=events.append, max_output_tokens=50, instructions="Be brief.") as gemini:
        reply = await asked(gemini, streams, output_schema=None)
        await asked(gemini, streams, session=reply.session)
    assert vendor.asked[0] == {
        "contents": [{"role": "user", "parts": [{"text": "go"}]}],
        "tools": [{"codeExecution": {}}],
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "generationConfig": {"maxOutputTokens": 50},
    }
    assert vendor.asked[1]["contents"][1]["parts"] == parts
    assert (reply.text, reply.stdout, reply.stderr) == ("here it is", "drawn\n", "ZeroDivisionError")
    assert [(each.call.code, each.status, each.success) for each in reply.codes] == [
        ("plot()", "ok", True),
        ("1/0", "failed", False),
    ]
    assert reply.codes[0].opaque == {"thoughtSignature": "+/EC"}
    assert [image.content for image in reply.images] == [PNG]
    assert len([event for event in events if isinstance(event, CodeExecutionDisplay)]) == 1
    assert len([event for event in events if isinstance(event, HostedCodeEnded)]) == 2
    with pytest.raises(CodeRuntimeError, match="ZeroDivisionError"):
        reply.codes[1].as_execution()
    told = reply.telemetry[0]
    assert (told.model, told.response_id, told.input_tokens, told.output_tokens) == ("g-real", "r1", 7, 3)
    if streams:
        assert [event.text for event in events if isinstance(event, HostedCodeChunk)] == ["plot()", "1/0"]


@both_ways
@pytest.mark.parametrize(
    ("outcome", "status"),
    [("OUTCOME_OK", "ok"), ("OUTCOME_FAILED", "failed"), ("OUTCOME_DEADLINE_EXCEEDED", "timeout"),
     ("OUTCOME_UNSPECIFIED", "unknown")],
)  # fmt: skip
async def test_every_outcome(streams: bool, outcome: str, status: str) -> None:
    vendor = ScriptedVendor("gemini", [response(code("x"), result("out", outcome), {"text": "a"})])
    async with adapter(vendor) as gemini:
        reply = await asked(gemini, streams)
    (ran,) = reply.codes
    assert (ran.status, ran.text, ran.exit_code) == (status, "out", None)
    if status == "timeout":
        with pytest.raises(CodeTimeoutError):
            ran.as_execution()


def test_code_without_its_result_and_results_out_of_order() -> None:
    parts = [code("a", id="1"), code("b", id="2"), result("B", id="2"), result("A", id="1"), code("c")]
    assert [(each.call.code, each.stdout, each.status) for each in read_codes(parts, "r")] == [
        ("a", "A", "ok"),
        ("b", "B", "ok"),
        ("c", None, "interrupted"),
    ]
    (lone,) = read_codes([result("late", id="9")], "r")
    assert (lone.call.call_id, lone.stdout) == ("9", "late")


@both_ways
@pytest.mark.parametrize("finish", ["MAX_TOKENS", "SAFETY", "RECITATION", "MALFORMED_FUNCTION_CALL", "OTHER"])
async def test_no_whole_answer(streams: bool, finish: str) -> None:
    async with adapter(ScriptedVendor("gemini", [response({"text": "half"}, finish=finish)])) as gemini:
        with pytest.raises(AnswerWithheld, match=f"gemini gave no whole answer: {finish}: half"):
            await asked(gemini, streams)


@both_ways
async def test_a_prompt_that_is_blocked(streams: bool) -> None:
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}, "responseId": "r"}
    async with adapter(ScriptedVendor("gemini", [blocked])) as gemini:
        with pytest.raises(AnswerWithheld, match="SAFETY"):
            await asked(gemini, streams)
    async with adapter(ScriptedVendor("gemini", [{"responseId": "r"}])) as gemini:
        with pytest.raises((SandboxCrashed, TransportError)):
            await asked(gemini, streams)


@both_ways
@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, InvalidSetting), (403, SandboxUnavailable), (404, InvalidSetting), (429, SandboxUnavailable),
     (500, SandboxUnavailable)],
)  # fmt: skip
async def test_errors_of_the_vendor(streams: bool, status: int, kind: type[Exception]) -> None:
    body = {"error": {"code": status, "message": "no", "status": "X"}}
    bad = VendorReply(status=status, body=body, headers={"retry-after": "0", "x-request-id": "r9"})
    vendor = ScriptedVendor("gemini", [bad] * 3)
    async with adapter(vendor, retries=2) as gemini:
        with pytest.raises(kind, match=rf"gemini: HTTP {status}: no \(request r9\)"):
            await asked(gemini, streams)
    assert len(vendor.asked) == (3 if status in (429, 500) else 1)


@pytest.mark.parametrize("is_cut", [False, True], ids=["ended", "cut"])
async def test_a_stream_that_breaks_off(is_cut: bool) -> None:
    events = streamed("gemini", response({"text": "a"}, {"text": "b"}))[:1]
    vendor = ScriptedVendor("gemini", [VendorReply(body=events, is_cut=is_cut), response({"text": "fine"})])
    async with adapter(vendor, retries=2) as gemini:
        session = gemini.session()
        with pytest.raises(TransportError, match="stream"):
            await asked(gemini, True, session=session)
        assert session.history == []
        assert (await asked(gemini, True, session=session)).text == "fine"


async def test_parts_that_did_not_exist_yesterday() -> None:
    new = {"hologram": {"beams": [1]}}
    vendor = ScriptedVendor("gemini", [response(new, {"text": "x"}), response({"text": "y"})])
    events: list[AgentEvent] = []
    async with adapter(vendor, on_event=events.append) as gemini:
        with pytest.warns(UserWarning, match="gemini sent 'hologram'"):
            reply = await gemini.run("go")
        await gemini.run("more", session=reply.session)
    assert vendor.asked[1]["contents"][1]["parts"][0] == new
    assert [event.kind for event in events if isinstance(event, UnknownItem)] == ["hologram"]


async def test_a_part_the_sdk_empties_in_a_stream_is_told() -> None:
    vendor = ScriptedVendor("gemini", [response({"hologram": {}}, {"text": "x"})])
    async with adapter(vendor) as gemini:
        with pytest.warns(UserWarning, match="gemini sent 'part without content'"):
            assert (await asked(gemini, True)).text == "x"


async def test_files_go_along_in_the_request(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,2")
    tool = GeminiCodeExecutionTool(host_mounts=(HostMount(host_path="a.csv"),))
    vendor = ScriptedVendor("gemini", [response({"text": "x"})])
    async with adapter(vendor, tools=[tool], allowed_host_roots=[tmp_path]) as gemini:
        reply = await gemini.run("go")
        with pytest.raises(InvalidSetting, match="is at openai"):
            await gemini.download(FileRef(provider="openai", file_id="f"))
    data = base64.b64encode(b"1,2").decode()
    assert vendor.asked[0]["contents"][0]["parts"][0] == {"inlineData": {"mimeType": "text/csv", "data": data}}
    assert "a.csv: file 1 of the request" in vendor.asked[0]["systemInstruction"]["parts"][0]["text"]
    assert reply.files_made == ()


async def test_structured_output_and_choices() -> None:
    vendor = ScriptedVendor("gemini", [response({"text": '{"a": 1}'})])
    async with adapter(vendor) as gemini:
        assert (await gemini.run("go", output_schema={"type": "object"}, tool_choice="none")).output == {"a": 1}
        with pytest.raises(InvalidSetting, match="cannot be made to run code"):
            await gemini.run("go", tool_choice="code_execution")
    told = vendor.asked[0]["generationConfig"]
    assert told == {"responseMimeType": "application/json", "responseJsonSchema": {"type": "object"}}
    assert vendor.asked[0]["toolConfig"] == {"functionCallingConfig": {"mode": "NONE"}}
    with pytest.raises(InvalidSetting, match=r"genai\.Client or its aio, not object"):
        GeminiAdapter("m", client=object())
    with pytest.raises(InvalidSetting, match="runs at gemini"):
        GeminiCodeExecutionTool(provider="openai")


async def test_the_deadline_in_the_midst_of_a_stream() -> None:
    async def half(request: Any) -> Any:
        async def body() -> AsyncGenerator[bytes, None]:
            yield f"data: {json.dumps(streamed('gemini', response({'text': 'a'}, {'text': 'b'}))[0])}\n\n".encode()
            await asyncio.Event().wait()

        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=body())

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(half))
    client = genai.Client(api_key="k", http_options=types.HttpOptions(httpx_async_client=http))
    async with GeminiAdapter("m", client=client, limits=Limits(wall_seconds=2.0)) as gemini:
        told = [event async for event in gemini.stream("go")]
    assert isinstance(told[-1], RunFailed)
    assert isinstance(told[-1].error, CodeTimeoutError)


async def test_against_a_server_on_loopback() -> None:
    vendor = ScriptedVendor("gemini", [response({"text": "whole"}), response({"text": "streamed"})])
    with vendor.serve() as address:
        client = sdk_client("gemini", address)
        async with GeminiAdapter("m", client=client) as gemini:
            assert (await asked(gemini, False)).text == "whole"
            assert (await asked(gemini, True)).text == "streamed"
        await client.aio.aclose()


async def test_the_code_of_an_interaction() -> None:
    steps = [
        {
            "type": "code_execution_call",
            "id": "1",
            "arguments": {"language": "python", "code": "a"},
            "signature": "AAEC",
        },
        {"type": "code_execution_result", "call_id": "1", "result": "A", "is_error": False, "signature": "AAED"},
        {"type": "code_execution_call", "id": "2", "arguments": {"language": "python", "code": "b"}},
        {"type": "code_execution_result", "call_id": "2", "result": "oh", "is_error": True},
        {"type": "code_execution_call", "id": "3", "arguments": {"language": "python", "code": "c"}},
    ]
    body = {
        "id": "i",
        "status": "completed",
        "steps": steps,
        "created": "2026-01-01T00:00:00Z",
        "updated": "2026-01-01T00:00:00Z",
    }
    vendor = ScriptedVendor("gemini", routes={"POST .*interactions": VendorReply(body=body)})
    came = await vendor.client().aio.interactions.create(model="g", input="go")
    for found in (read_steps(came.steps), read_steps(steps)):
        assert [(each.call.code, each.status, each.text) for each in found] == [
            ("a", "ok", "A"),
            ("b", "failed", "oh"),
            ("c", "interrupted", ""),
        ]
        assert found[0].opaque == {"call_signature": "AAEC", "result_signature": "AAED"}
