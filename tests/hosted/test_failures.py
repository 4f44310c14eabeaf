"""What errors of a vendor mean: over the HTTP library its SDK takes by itself, and none mistaken for another."""

import json
import re
import socket
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from google.genai.errors import ClientError

from hatchway.core.errors import InvalidSetting, SandboxUnavailable, TransportError
from hatchway.core.events import AgentEvent
from hatchway.core.results import ExecFile
from hatchway.hosted import (
    AnthropicAdapter,
    AutoContainerConfig,
    ContainerLost,
    GeminiAdapter,
    HostMount,
    OpenAIAdapter,
    OpenAICodeInterpreterTool,
    code_tool,
)
from hatchway.hosted.failures import Failure, seconds
from hatchway.hosted.gemini.vendor import GeminiVendor
from hatchway.testing import RanCode, ScriptedVendor, VendorReply, VendorSays
from hatchway.testing.vendor_client import asked, sdk_client
from hatchway.testing.vendor_streams import streamed

pytestmark = pytest.mark.anyio
ADAPTERS: dict[str, Any] = {"openai": OpenAIAdapter, "anthropic": AnthropicAdapter, "gemini": GeminiAdapter}
every_vendor = pytest.mark.parametrize("provider", list(ADAPTERS))
both_ways = pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
FINE = VendorSays(RanCode("print(1)", "1\n"), "fine")


@asynccontextmanager
async def over_loopback(provider: Any, address: str, **settings: Any) -> Any:
    """The adapter over a client as a user makes it: with the HTTP library the SDK chooses, not one given to it."""
    client = sdk_client(provider, address)
    async with ADAPTERS[provider]("m", client=client, tools=[code_tool(provider)], **settings) as adapter:
        yield adapter
    await (client.aio.aclose() if provider == "gemini" else client.close())


@both_ways
@every_vendor
async def test_nobody_is_there(provider: Any, streams: bool) -> None:
    with socket.socket() as taken:  # bound, and not listened at
        taken.bind(("127.0.0.1", 0))
        async with over_loopback(provider, f"http://127.0.0.1:{taken.getsockname()[1]}", retries=0) as adapter:
            with pytest.raises(TransportError) as caught:
                await asked(adapter, streams=streams)
    assert caught.value.hint == "check the network and base_url, then ask again"


@every_vendor
async def test_a_stream_that_breaks_off_over_loopback(provider: Any) -> None:
    events = streamed(provider, FINE.response(provider))
    vendor = ScriptedVendor(provider, [VendorReply(body=events[:-1], is_cut=True), FINE])
    with vendor.serve() as address:
        async with over_loopback(provider, address) as adapter:
            session = adapter.session()
            with pytest.raises(TransportError, match=f"^{provider}: the stream broke off") as caught:
                await asked(adapter, streams=True, session=session)
            assert caught.value.hint == "ask again; the session is as it was before"
            assert (len(vendor.asked), session.history) == (1, [])  # not begun again by itself
            assert (await asked(adapter, streams=True, session=session)).text == "fine"


@every_vendor
async def test_a_stream_that_breaks_off_before_it_told_anything_is_asked_for_again(provider: Any) -> None:
    vendor = ScriptedVendor(provider, [VendorReply(body=[], is_cut=True), FINE])
    with vendor.serve() as address:
        async with over_loopback(provider, address) as adapter:
            reply = await asked(adapter, streams=True)
    assert (reply.text, reply.telemetry[0].attempts) == ("fine", 2)


@every_vendor
async def test_a_stream_of_rubbish(provider: Any) -> None:
    kind = {"content-type": "text/event-stream"}
    for rubbish in (b"event: x\ndata: {not json\n\n", b"event: x\ndata: \xff\xfe\n\n", b'data: "' + b"x" * 5_000_000):
        vendor = ScriptedVendor(provider, [VendorReply(body=rubbish, headers=kind), FINE])
        with vendor.serve() as address:
            async with over_loopback(provider, address) as adapter:
                with pytest.raises(TransportError, match=f"^{provider}: "):
                    await asked(adapter, streams=True)
                assert (await asked(adapter, streams=True)).text == "fine"


async def test_a_chunk_gemini_s_sdk_refuses() -> None:
    part = {"text": "x", "thoughtSignature": "c2ln+/=="}  # no base64: its last letter has bits too many
    chunk = {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}]}
    async with GeminiAdapter("m", client=ScriptedVendor("gemini", [[chunk]]).client()) as gemini:
        with pytest.raises(TransportError, match="gemini: it sent something that cannot be read: 1 validation error"):
            await asked(gemini, streams=True)


@pytest.mark.parametrize(
    ("status", "message", "param"),
    [
        (400, "File 'file_x' not found.", "tools[0].container.file_ids"),
        (400, "Unknown parameter: 'tools[0].container.network_policy'.", "tools[0].container.network_policy"),
        (404, "No such File object: file_x", "tools[0].container.file_ids[0]"),
    ],
)
async def test_a_wrong_setting_of_a_container_is_no_container_that_is_gone(
    status: int, message: str, param: str
) -> None:
    wrong = VendorReply(status=status, body={"error": {"message": message, "param": param}})
    vendor = ScriptedVendor("openai", [VendorSays(RanCode("x", "1")), wrong, FINE])
    told: list[AgentEvent] = []
    tool = OpenAICodeInterpreterTool(container=AutoContainerConfig(file_ids=("file_x",)))
    async with OpenAIAdapter("m", client=vendor.client(), tools=[tool], on_event=told.append) as openai:
        session = openai.session()
        await openai.run("go", session=session)
        kept, history = session.container, list(session.history)
        with pytest.raises(InvalidSetting, match="HTTP"):
            await openai.run("go", session=session)
        assert (session.container, session.history) == (kept, history)
    assert not [event for event in told if isinstance(event, ContainerLost)]


async def test_a_file_that_is_not_in_its_container() -> None:
    missing = VendorReply(status=404, body={"error": {"message": "Container file not found."}})
    vendor = ScriptedVendor("openai", routes={"GET .*": missing})
    async with OpenAIAdapter("m", client=vendor.client()) as openai:
        with pytest.raises(InvalidSetting, match="Container file not found") as caught:
            await openai.download({"file_id": "f", "container_id": "c"})
    assert caught.value.hint == "check that the model, file or container it names is still there"


@pytest.mark.parametrize(("failures", "lost"), [(1, 0), (2, 1)])
async def test_a_plain_500_at_anthropic_is_asked_again_before_a_container_is_given_up(failures: int, lost: int) -> None:
    plain = VendorReply(status=500, body={"error": {"message": "Internal server error"}}, headers={"retry-after": "0"})
    vendor = ScriptedVendor("anthropic", [FINE, *[plain] * failures, FINE])
    told: list[AgentEvent] = []
    tool = code_tool("anthropic", file_ids=["file_a"])
    async with AnthropicAdapter("m", client=vendor.client(), tools=[tool], on_event=told.append) as anthropic:
        session = anthropic.session()
        await anthropic.run("go", session=session)
        assert (await anthropic.run("go", session=session)).text == "fine"
    assert len([event for event in told if isinstance(event, ContainerLost)]) == lost


async def test_without_retries_a_plain_500_gives_the_container_up_at_once() -> None:
    plain = VendorReply(status=500, body={"error": {"message": "Internal server error"}})
    vendor = ScriptedVendor("anthropic", [FINE, plain, FINE, plain])
    tool = code_tool("anthropic", file_ids=["file_a"])
    async with AnthropicAdapter("m", client=vendor.client(), tools=[tool], retries=0) as anthropic:
        session = anthropic.session()
        await anthropic.run("go", session=session)
        assert (await anthropic.run("go", session=session)).text == "fine"
        assert "container" not in vendor.asked[2]
        with pytest.raises(SandboxUnavailable):
            await anthropic.run("go")


def _said(request: Any) -> int:
    """How many files a request brings, where they are part of what is said."""
    return len(re.findall(r"container_upload|inlineData", json.dumps(request)))


@both_ways
@pytest.mark.parametrize("provider", ["anthropic", "gemini"])
async def test_files_that_were_said_in_vain_are_said_again(provider: Any, streams: bool, tmp_path: Path) -> None:
    """Those of the tool, whose place the model is told; not those of the request alone, which may be why it failed."""
    (tmp_path / "a.csv").write_text("1")
    given = [ExecFile(name="b.csv", content=b"2", mime_type="text/csv")]
    refused = VendorReply(status=400, body={"error": {"message": "no"}})
    vendor = ScriptedVendor(provider, [refused, FINE, refused, FINE])
    tools = [code_tool(provider, host_mounts=[HostMount(host_path="a.csv")])]
    async with ADAPTERS[provider]("m", client=vendor.client(), tools=tools, allowed_host_roots=[tmp_path]) as adapter:
        session = adapter.session()
        with pytest.raises(InvalidSetting):
            await asked(adapter, streams=streams, session=session, files=given)
        assert (session.placed, session.brought, session.is_supplied) == ({}, {}, False)
        await asked(adapter, streams=streams, session=session)
        assert list(session.placed) == ["a.csv"]
        with pytest.raises(InvalidSetting):
            await asked(adapter, streams=streams, session=session, files=given)
        assert list(session.placed) == ["a.csv"]
        await asked(adapter, streams=streams, session=session)
    assert [_said(request) for request in vendor.asked] == [2, 1, 2, 1]


@both_ways
async def test_files_come_again_after_a_container_was_given_up_in_vain(streams: bool) -> None:
    plain = VendorReply(status=500, body={"error": {"message": "Internal server error"}}, headers={"retry-after": "0"})
    vendor = ScriptedVendor("anthropic", [FINE, plain, plain, plain, FINE, FINE])
    given = [ExecFile(name=name, content=name.encode(), mime_type="text/csv") for name in ("a.csv", "b.csv")]
    async with AnthropicAdapter("m", client=vendor.client(), tools=[code_tool("anthropic")]) as anthropic:
        session = anthropic.session()
        await asked(anthropic, streams=streams, session=session, files=given)
        with pytest.raises(SandboxUnavailable):
            await asked(anthropic, streams=streams, session=session)
        assert (session.container, session.placed) == (None, {})
        for _ in range(2):
            await asked(anthropic, streams=streams, session=session)
            assert list(session.placed) == ["a.csv", "b.csv"]
    assert [_said(request) for request in vendor.asked] == [2] * 6
    assert [request.get("container") for request in vendor.asked[:5]] == [None, "cntr_1", "cntr_1", None, None]


@pytest.mark.parametrize(
    ("told", "wait"),
    [
        (None, 0.5),
        ("2", 2.0),
        ("2.5s", 2.5),
        ("-5", 0.0),
        ("inf", 30.0),
        ("nan", 0.5),
        ("²", 0.5),
        ("soon", 0.5),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 30.0),
    ],
)
def test_what_a_vendor_asks_to_wait(told: str | None, wait: float) -> None:
    assert Failure(kind="busy", message="slow", retry_after=seconds(told)).wait(1) == wait


@every_vendor
@pytest.mark.parametrize("told", ["nan", "²", "Wed, 21 Oct 2015 07:28:00 GMT"])
async def test_whatever_a_vendor_asks_to_wait_it_is_asked_again(provider: Any, told: str) -> None:
    busy = VendorReply(status=429, body={"error": {"message": "slow"}}, headers={"retry-after": told})
    vendor = ScriptedVendor(provider, [busy, FINE])
    with vendor.serve() as address:
        async with over_loopback(provider, address, deadline=5) as adapter:
            assert (await adapter.run("go")).text == "fine"


async def test_google_asks_for_a_time_in_the_body() -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0s"}]
    error = {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED", "details": details}
    client = ScriptedVendor("gemini", [VendorReply(status=429, body={"error": error})]).client()
    vendor = GeminiVendor(client)
    with pytest.raises(ClientError) as caught:
        await vendor.send({"model": "m", "body": {}})
    failure = vendor.failure(caught.value, {})
    assert failure is not None
    assert (failure.kind, failure.retry_after) == ("busy", 0.0)


@pytest.mark.parametrize("line", [b"[1, 2]", b"null", b'"word"'])
async def test_a_line_of_a_stream_that_is_no_event(line: bytes) -> None:
    vendor = ScriptedVendor("openai", [VendorReply(body=b"data: " + line + b"\n\n"), FINE])
    async with OpenAIAdapter("m", client=vendor.client(), tools=[code_tool("openai")]) as adapter:
        session = adapter.session()
        with pytest.raises(TransportError, match="openai sent something that is no event"):
            await asked(adapter, streams=True, session=session)
        assert (await asked(adapter, streams=True, session=session)).text == "fine"
