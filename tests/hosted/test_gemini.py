"""Gemini's code execution through the real SDK: parts, outcomes, pictures, streams, errors."""

import base64
import warnings
from pathlib import Path
from typing import Any

import pytest

from hatchway.core.errors import (
    AnswerWithheld,
    CodeRuntimeError,
    CodeTimeoutError,
    InvalidSetting,
    SandboxCrashed,
    TransportError,
)
from hatchway.core.events import AgentEvent, CodeExecutionDisplay
from hatchway.core.results import ExecFile
from hatchway.hosted import (
    DomainSecret,
    FileRef,
    GeminiAdapter,
    GeminiCodeExecutionTool,
    HostedCodeChunk,
    HostedCodeEnded,
    HostMount,
    NetworkPolicy,
    UnknownItem,
)
from hatchway.hosted.gemini.environments import GeminiEnvironments
from hatchway.hosted.gemini.interactions import read_steps
from hatchway.hosted.gemini.reading import read_codes
from hatchway.testing import ScriptedVendor, VendorReply
from hatchway.testing.vendor_client import asked

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
        reply = await asked(gemini, streams=streams, output_schema=None)
        await asked(gemini, streams=streams, session=reply.session)
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
async def test_a_picture_that_no_code_made(streams: bool) -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": base64.b64encode(PNG).decode()}}
    vendor = ScriptedVendor("gemini", [response({"text": "look"}, picture, code("plot()"), result("x"), picture)])
    told: list[AgentEvent] = []
    async with adapter(vendor, on_event=told.append) as gemini:
        reply = await asked(gemini, streams=streams)
    assert [image.content for image in reply.images] == [PNG, PNG]
    assert [len(each.images) for each in reply.codes] == [1]
    assert [event.display.content for event in told if isinstance(event, CodeExecutionDisplay)] == [PNG, PNG]


@pytest.mark.parametrize("data", ["@@@!", "", None])
async def test_a_picture_that_cannot_be_read_is_told_and_kept(data: str | None) -> None:
    broken = {"inlineData": {"mimeType": "image/png", **({} if data is None else {"data": data})}}
    vendor = ScriptedVendor("gemini", [response(code("plot()"), result("x"), broken, {"text": "there"})] * 2)
    told: list[AgentEvent] = []
    async with adapter(vendor, on_event=told.append) as gemini:
        with pytest.warns(UserWarning, match="^gemini sent 'inlineData that cannot be read': it is kept as it came$"):
            reply = await gemini.run("go")
        await gemini.run("go")  # a second warning would be an error
    assert (reply.text, reply.images, reply.codes[0].images) == ("there", (), ())
    assert [event.kind for event in told if isinstance(event, UnknownItem)] == ["inlineData that cannot be read"] * 2
    assert broken in reply.items[0]["parts"]


@both_ways
@pytest.mark.parametrize(
    ("outcome", "status"),
    [("OUTCOME_OK", "ok"), ("OUTCOME_FAILED", "failed"), ("OUTCOME_DEADLINE_EXCEEDED", "timeout"),
     ("OUTCOME_UNSPECIFIED", "unknown")],
)  # fmt: skip
async def test_every_outcome(streams: bool, outcome: str, status: str) -> None:
    vendor = ScriptedVendor("gemini", [response(code("x"), result("out", outcome), {"text": "a"})])
    async with adapter(vendor) as gemini:
        reply = await asked(gemini, streams=streams)
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
            await asked(gemini, streams=streams)


@both_ways
async def test_a_prompt_that_is_blocked(streams: bool) -> None:
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}, "responseId": "r"}
    async with adapter(ScriptedVendor("gemini", [blocked])) as gemini:
        with pytest.raises(AnswerWithheld, match="SAFETY"):
            await asked(gemini, streams=streams)
    async with adapter(ScriptedVendor("gemini", [{"responseId": "r"}])) as gemini:
        with pytest.raises((SandboxCrashed, TransportError)):
            await asked(gemini, streams=streams)


async def test_files_go_along_in_the_request(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,2")
    tool = GeminiCodeExecutionTool(host_mounts=(HostMount(host_path="a.csv"),))
    vendor = ScriptedVendor("gemini", [response({"text": "x"})])
    async with adapter(vendor, tools=[tool], allowed_host_roots=[tmp_path]) as gemini:
        reply = await gemini.run("go")
        with pytest.raises(InvalidSetting, match="is at openai"):
            await gemini.download(FileRef(provider="openai", file_id="f"))
    data = base64.b64encode(b"1,2").decode()
    named, inline = vendor.asked[0]["contents"][0]["parts"][:2]
    assert named == {"text": "The file a.csv:"}
    assert inline == {"inlineData": {"mimeType": "text/csv", "data": data}}
    assert "a.csv: in the conversation, after its name" in vendor.asked[0]["systemInstruction"]["parts"][0]["text"]
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


def test_no_result_of_an_interaction_is_dropped() -> None:
    def called(call_id: str, text: str) -> dict[str, Any]:
        return {"type": "code_execution_call", "id": call_id, "arguments": {"language": "python", "code": text}}

    def gave(call_id: str, text: str) -> dict[str, Any]:
        return {
            "type": "code_execution_result",
            "call_id": call_id,
            "result": text,
            "is_error": False,
            "signature": text,
        }

    steps = [gave("earlier", "E"), called("c", "one"), called("c", "two"), *(gave("c", each) for each in "123")]
    found = read_steps(steps)
    assert [(each.call.call_id, each.call.code, each.stdout) for each in found] == [
        ("earlier", "", "E"),
        ("c", "one", "1"),
        ("c", "two", "2"),
        ("c", "", "3"),
    ]
    assert found[0].opaque == {"result_signature": "E"}


async def test_environments_are_made_looked_into_and_deleted(tmp_path: Path) -> None:
    active = {"id": "env_1", "status": "active", "file_count": 2, "size_bytes": 9}
    listed = {"name": "main.py", "path": "src/main.py", "type": "file", "size_bytes": "9"}
    pages = [{"files": [listed, {"name": "src", "path": "src", "type": "directory"}], "next_page_token": "t"}, {}]
    vendor = ScriptedVendor(
        "gemini",
        routes={
            "POST .*/environments": active,
            "GET .*/environments/env_1": {**active, "status": "expired"},
            "GET .*/environments/env_1/files/": lambda request: pages.pop(0),
            "GET .*/environments/env_1/files/src/main.py": VendorReply(body=b"print(1)"),
            "DELETE .*/environments/env_1": {},
            "GET .*/environments/gone": VendorReply(status=404, body={"error": {"code": 404, "message": "no such"}}),
        },
    )
    environments = GeminiEnvironments(vendor.client())
    policy = NetworkPolicy(allowed_domains=("a.org",))
    made = await environments.create(
        files=[ExecFile(name="a.csv", content=b"1,2", mime_type="text/csv")], network_policy=policy
    )
    assert (made.id, made.status, made.file_count) == ("env_1", "active", 2)
    await environments.create(copy_of="env_1", network_policy=NetworkPolicy())
    first, second = (request.body for request in vendor.requests)
    source = {"type": "inline", "content": "MSwy", "encoding": "base64", "target": "a.csv"}
    assert first == {"sources": [source], "network": {"allowlist": [{"domain": "a.org"}]}}
    assert second == {"from_environment": "env_1", "network": "disabled"}
    assert (await environments.get("env_1")).status == "expired"
    (file,) = await environments.files("env_1")
    assert (file.file_id, file.container_id, file.filename) == ("src/main.py", "env_1", "main.py")
    async with adapter(vendor) as gemini:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            (path,) = (await gemini.download_all([file], tmp_path)).values()
    assert path.read_bytes() == b"print(1)"
    await environments.delete("env_1")
    assert vendor.requests[-1].method == "DELETE"
    with pytest.raises(InvalidSetting, match="gemini: HTTP 404"):
        await environments.get("gone")
    with pytest.raises(InvalidSetting, match="a copy has the files"):
        await environments.create(copy_of="env_1", files=[ExecFile(name="a", content=b"", mime_type="")])
    secret = DomainSecret(domain="a.org", name="K", value="v")
    with pytest.raises(InvalidSetting, match="secrets of its own"):
        await environments.create(network_policy=NetworkPolicy(allowed_domains=("a.org",), domain_secrets=(secret,)))
