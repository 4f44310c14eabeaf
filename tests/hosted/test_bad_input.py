"""What can go wrong at a vendor, each thing at each vendor it happens at: told clearly, and the session is usable."""

import asyncio
import json
import os
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hatchway import tool
from hatchway.core.errors import (
    AnswerWithheld,
    CodeTimeoutError,
    InvalidSetting,
    InvalidTool,
    SandboxUnavailable,
    TransportError,
)
from hatchway.core.events import AgentEvent, RunFailed
from hatchway.core.limits import Limits
from hatchway.core.results import ExecFile
from hatchway.hosted import (
    AnthropicAdapter,
    FileRef,
    GeminiAdapter,
    HostedAdapter,
    HostedRequestEnded,
    HostMount,
    OpenAIAdapter,
    UnknownItem,
    code_tool,
)
from hatchway.testing import CallsTool, RanCode, ScriptedVendor, VendorReply, VendorSays
from hatchway.testing.vendor_client import asked, sdk_client
from hatchway.testing.vendor_streams import streamed

pytestmark = pytest.mark.anyio
ADAPTERS: dict[str, Any] = {"openai": OpenAIAdapter, "anthropic": AnthropicAdapter, "gemini": GeminiAdapter}
VENDORS = list(ADAPTERS)
every_vendor = pytest.mark.parametrize("provider", VENDORS)
both_ways = pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
KINDS = {
    400: InvalidSetting,
    401: SandboxUnavailable,
    404: InvalidSetting,
    429: SandboxUnavailable,
    500: SandboxUnavailable,
}
BUSY = (429, 500)
PLACES = [
    ("openai", "POST /v1/files"),
    ("openai", "POST /v1/containers"),
    ("openai", "POST /v1/containers/[^/]+/files"),
    ("anthropic", "POST /v1/files"),
]
"""Where files are brought, besides the request itself; to Gemini they go along in it."""
DOWNLOADS = [
    ("openai", "GET /v1/containers/[^/]+/files/[^/]+/content"),
    ("anthropic", "GET /v1/files/[^/]+/content"),
    ("anthropic", "GET /v1/files/[^/]+"),
]
"""Where files are had, and their names."""


def failing(status: int, words: str = "no") -> VendorReply:
    """An error as each of the vendors words it."""
    body = {"type": "error", "error": {"type": "some_error", "code": status, "message": words, "status": "X"}}
    return VendorReply(status=status, body=body, headers={"retry-after": "0", "x-request-id": "r9", "request-id": "r9"})


def an_adapter(vendor: ScriptedVendor, **settings: Any) -> HostedAdapter:
    given = {"tools": [code_tool(vendor.provider)], "retries": 2} | settings
    return ADAPTERS[vendor.provider]("m", client=vendor.client(), **given)


def mounting(provider: str, name: str) -> Any:
    """The vendor's code tool with a file of this machine."""
    return code_tool(provider, host_mounts=(HostMount(host_path=name),))


@pytest.mark.parametrize("tier", ["2g", "", "4G", 4, None])
def test_an_unknown_memory_tier(tier: Any) -> None:
    with pytest.raises(InvalidSetting, match=f"memory_limit is one of 1g, 4g, 16g, 64g, not {tier!r}"):
        code_tool("openai", container={"type": "auto", "memory_limit": tier})
    for other in ("anthropic", "gemini"):  # they have none
        with pytest.raises(InvalidSetting, match=f"the code tool of {other} takes no memory_limit"):
            code_tool(other, memory_limit="4g")


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize("given", ["", " ", {"id": None}])
def test_a_missing_container_id(provider: str, given: Any) -> None:
    with pytest.raises(InvalidSetting, match="named by its id"):
        code_tool(provider, container=given)


@every_vendor
@pytest.mark.parametrize("other", VENDORS)
def test_the_wrong_provider_for_a_tool(provider: Any, other: Any) -> None:
    vendor = ScriptedVendor(provider)
    if other == provider:
        an_adapter(vendor, tools=[code_tool(other)])
        return
    with pytest.raises(InvalidTool, match=f"runs at {other}, this adapter speaks with {provider}") as told:
        an_adapter(vendor, tools=[code_tool(other)])
    assert told.value.hint == f"give it to the adapter of {other}, or take code_tool({provider!r})"
    assert vendor.requests == []


def test_two_tools_of_one_name() -> None:
    """The model's call of one would run the other. The same function may be called by both."""

    @tool
    def pay(euro: int) -> int:
        """Pay."""
        return euro

    @tool(name="pay")
    def other(euro: int) -> int:
        """Pay otherwise."""
        return -euro

    vendor = ScriptedVendor("anthropic")
    an_adapter(vendor, tools=[code_tool("anthropic", tools=[pay]), pay])
    for unlike in (other, tool(pay, approval="ask")):
        with pytest.raises(InvalidTool, match="two tools are named 'pay' at the vendor") as told:
            an_adapter(vendor, tools=[code_tool("anthropic", tools=[pay]), unlike])
        assert told.value.hint == "give each its own name, tool(fn, name=…), or the very same tool to both"
    with pytest.raises(InvalidTool, match=r"'bank__pay' at the vendor: 'bank.pay' and 'bank__pay'"):
        an_adapter(vendor, tools=[tool(pay.func, name="bank.pay"), tool(other.func, name="bank__pay")])


@every_vendor
def test_no_key(provider: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("OPENAI_", "ANTHROPIC_", "GEMINI_", "GOOGLE_")):
            monkeypatch.delenv(name)
    with pytest.raises(InvalidSetting, match=f"^{provider}: ") as told:
        ADAPTERS[provider]("m", tools=[code_tool(provider)])
    assert told.value.hint == f"export {provider.upper()}_API_KEY=…, or give a client"


@every_vendor
async def test_a_file_of_another_vendor(provider: Any) -> None:
    other: Any = VENDORS[VENDORS.index(provider) - 1]
    async with an_adapter(ScriptedVendor(provider)) as adapter:
        with pytest.raises(InvalidSetting, match=f"is at {other}, this adapter speaks with {provider}"):
            await adapter.download(FileRef(provider=other, file_id="f"))


@both_ways
async def test_an_unsupported_type_of_file(streams: bool, tmp_path: Path) -> None:
    """OpenAI alone takes some types only; both ways in are checked before anything is sent."""
    (tmp_path / "a.exe").write_text("x")
    vendor = ScriptedVendor("openai")
    async with an_adapter(vendor, tools=[mounting("openai", "a.exe")], allowed_host_roots=[tmp_path]) as adapter:
        with pytest.raises(InvalidSetting, match=r"'a.exe': files of type \.exe are not supported"):
            await asked(adapter, streams=streams)
    given = [ExecFile(name="b.exe", content=b"x", mime_type="application/octet-stream")]
    async with an_adapter(vendor) as adapter:
        with pytest.raises(InvalidSetting, match=r"'b.exe': files of type \.exe are not supported"):
            await asked(adapter, streams=streams, files=given)
    assert vendor.requests == []


@every_vendor
async def test_a_file_of_600_mb(provider: Any, tmp_path: Path) -> None:
    with open(tmp_path / "huge.csv", "wb") as f:
        f.truncate(600 * 1024 * 1024)  # sparse: it takes no room, and is refused before it is read
    vendor = ScriptedVendor(provider)
    async with an_adapter(vendor, tools=[mounting(provider, "huge.csv")], allowed_host_roots=[tmp_path]) as adapter:
        with pytest.raises(InvalidSetting, match=r"'huge\.csv' has 629145600 bytes; a file may have \d+"):
            await adapter.run("go")
    assert vendor.requests == []


@both_ways
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_a_citation_with_a_hostile_name(provider: Any, streams: bool, tmp_path: Path) -> None:
    names = {"f1": "../../x", "f2": "/etc/passwd", "f3": "..", "f4": "a\x1b[31m.txt"}
    vendor = ScriptedVendor(
        provider, [VendorSays(RanCode("x", files=names), "here")], files=dict.fromkeys(names, b"hi")
    )
    async with an_adapter(vendor) as adapter:
        reply = await asked(adapter, streams=streams)
        written = await adapter.download_all(reply, tmp_path / "deep" / "out")
    assert {key: path.name for key, path in written.items()} == {
        "f1": "x", "f2": "passwd", "f3": "f3", "f4": "a__31m.txt",
    }  # fmt: skip
    assert all(path.parent == tmp_path / "deep" / "out" and path.read_bytes() == b"hi" for path in written.values())
    assert sorted(os.listdir(tmp_path)) == ["deep"]


@both_ways
@every_vendor
async def test_a_kind_that_did_not_exist_yesterday(provider: Any, streams: bool) -> None:
    new = {"hologram": {"beams": [1]}} if provider == "gemini" else {"type": "hologram", "beams": [1, {"a": None}]}
    vendor = ScriptedVendor(provider, [VendorSays(new, "x")] * 2)
    events: list[AgentEvent] = []
    word = "part without content" if provider == "gemini" and streams else "hologram"  # its SDK empties such parts
    async with an_adapter(vendor, on_event=events.append) as adapter:
        with pytest.warns(UserWarning, match=f"{provider} sent '{word}': it is kept as it came"):
            reply = await asked(adapter, streams=streams)
        await asked(adapter, streams=streams, session=reply.session)  # a second warning would be an error
    assert [event.kind for event in events if isinstance(event, UnknownItem)] == [word] * 2
    assert reply.text == "x"
    if word == "hologram":
        assert json.dumps(new) in json.dumps(reply.items)
        assert json.dumps(new) in json.dumps(vendor.asked[1])


@every_vendor
@pytest.mark.parametrize("is_cut", [False, True], ids=["ended", "cut"])
async def test_a_truncated_stream(provider: Any, is_cut: bool) -> None:
    whole = VendorSays(RanCode("print(1)", "1\n"), "one", "two").response(provider)
    events = streamed(provider, whole)
    for kept in {1, len(events) // 2, len(events) - 1}:
        vendor = ScriptedVendor(provider, [VendorReply(body=events[:kept], is_cut=is_cut), VendorSays("fine")])
        async with an_adapter(vendor) as adapter:
            session = adapter.session()
            with pytest.raises(TransportError, match="stream"):
                await asked(adapter, streams=True, session=session)
            assert (session.history, session.is_busy) == ([], False)
            assert (await asked(adapter, streams=True, session=session)).text == "fine"
        assert len(vendor.asked) == 2  # it was not begun again by itself


@both_ways
@every_vendor
@pytest.mark.parametrize("status", list(KINDS))
async def test_an_error_instead_of_an_answer(provider: Any, streams: bool, status: int) -> None:
    vendor = ScriptedVendor(provider, [failing(status)] * (3 if status in BUSY else 1) + [VendorSays("fine")])
    async with an_adapter(vendor) as adapter:
        session = adapter.session()
        with pytest.raises(KINDS[status], match=rf"{provider}: HTTP {status}: .*no.*\(request r9\)") as told:
            await asked(adapter, streams=streams, session=session)
        assert getattr(told.value, "hint", "")
        assert len(vendor.asked) == (3 if status in BUSY else 1)
        assert (session.history, session.is_busy) == ([], False)
        assert (await asked(adapter, streams=streams, session=session)).text == "fine"


@both_ways
@every_vendor
@pytest.mark.parametrize("status", [400, 404, 429, 500])
async def test_an_error_after_a_call(provider: Any, streams: bool, status: int) -> None:
    """In the second request of a turn, once a tool has run: it is not run again, and the session is as before."""
    ran: list[str] = []

    @tool
    def price(item: str) -> int:
        """What an item costs."""
        ran.append(item)
        return 3

    script = [VendorSays(CallsTool("price", {"item": "tea"})), *[failing(status)] * 3, VendorSays("fine")]
    vendor = ScriptedVendor(provider, script)
    async with an_adapter(vendor, tools=[code_tool(provider), price]) as adapter:
        session = adapter.session()
        with pytest.raises(KINDS[status], match=f"HTTP {status}"):
            await asked(adapter, streams=streams, session=session)
        assert (ran, session.history, session.is_busy) == (["tea"], [], False)
        vendor.script = vendor.script[-1:]
        assert (await asked(adapter, streams=streams, session=session)).text == "fine"


@both_ways
@every_vendor
async def test_a_busy_vendor_is_asked_again(provider: Any, streams: bool) -> None:
    vendor = ScriptedVendor(provider, [failing(429), failing(500), VendorSays("fine")])
    events: list[AgentEvent] = []
    async with an_adapter(vendor, on_event=events.append) as adapter:
        assert (await asked(adapter, streams=streams)).text == "fine"
    (told,) = [event.telemetry for event in events if isinstance(event, HostedRequestEnded)]
    assert told.attempts == 3


@pytest.mark.parametrize("status", [400, 404, 429, 500])
@pytest.mark.parametrize(("provider", "place"), PLACES)
async def test_an_error_while_files_are_brought(provider: Any, place: str, status: int, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    vendor = ScriptedVendor(provider, [VendorSays("fine")], routes={place: failing(status)})
    settings = {"tools": [mounting(provider, "a.txt")], "allowed_host_roots": [tmp_path]}
    async with an_adapter(vendor, **settings) as adapter:
        session = adapter.session()
        with pytest.raises(KINDS[status], match=f"HTTP {status}: .*no"):
            await adapter.run("go", session=session)
        tried = sum(re.fullmatch(place, f"{each.method} {each.path}") is not None for each in vendor.requests)
        assert tried == (3 if status in BUSY else 1)
        vendor.routes.clear()
        assert (await adapter.run("go", session=session)).text == "fine"


@pytest.mark.parametrize("status", [400, 404, 429, 500])
@pytest.mark.parametrize(("provider", "place"), DOWNLOADS)
async def test_an_error_of_a_download(provider: Any, place: str, status: int, tmp_path: Path) -> None:
    says = VendorSays(RanCode("x", files={"f": "a.txt"}), "here")
    vendor = ScriptedVendor(provider, [says], files={"f": b"hi"}, routes={place: failing(status)})
    async with an_adapter(vendor) as adapter:
        reply = await adapter.run("go")
        with pytest.raises(KINDS[status], match=f"{provider}: HTTP {status}: .*no"):
            await adapter.download_all(reply, tmp_path / "out")
        vendor.routes.clear()
        (path,) = (await adapter.download_all(reply, tmp_path / "out")).values()
    assert (path.name, path.read_bytes()) == ("a.txt", b"hi")


@every_vendor
async def test_an_error_within_a_stream(provider: Any) -> None:
    """It has the status 200; Gemini words it as a chunk."""
    errors: dict[Any, dict[str, Any]] = {
        "openai": {"type": "error", "code": "server_error", "message": "it burst", "sequence_number": 0},
        "anthropic": {"type": "error", "error": {"type": "overloaded_error", "message": "it burst"}},
        "gemini": {"error": {"code": 503, "message": "it burst", "status": "UNAVAILABLE"}},
    }
    first = streamed(provider, VendorSays("one", "two").response(provider))[0]
    for events, kind in (([errors[provider]], SandboxUnavailable), ([first, errors[provider]], TransportError)):
        vendor = ScriptedVendor(provider, [VendorReply(body=events), VendorSays("fine")])
        async with an_adapter(vendor, retries=0) as adapter:
            with pytest.raises(kind, match="it burst"):
                await asked(adapter, streams=True)
            assert (await asked(adapter, streams=True)).text == "fine"


@every_vendor
async def test_the_deadline_passes_in_the_midst_of_a_stream(provider: Any) -> None:
    whole = VendorSays(RanCode("print(1)", "1\n"), "one", "two").response(provider)
    events = streamed(provider, whole)[:-2]
    named = "" if provider == "gemini" else "event: {type}\n"

    async def half(request: Any) -> Any:
        async def body() -> AsyncGenerator[bytes, None]:
            for event in events:
                yield f"{named.format(**event)}data: {json.dumps(event)}\n\n".encode()
            await asyncio.Event().wait()

        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=body())

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(half))
    client = sdk_client(provider, "http://vendor.test", http_client=http)
    for settings in ({"limits": Limits(wall_seconds=1.0)}, {"deadline": 1.0}):
        async with ADAPTERS[provider]("m", client=client, tools=[code_tool(provider)], **settings) as adapter:
            session = adapter.session()
            told: list[AgentEvent] = [event async for event in adapter.stream("go", session=session)]
        last = told[-1]
        assert isinstance(last, RunFailed)
        assert isinstance(last.error, CodeTimeoutError)
        assert last.error.stdout == "1\n"  # what had come by then is not lost
        assert (session.history, session.is_busy) == ([], False)


@every_vendor
async def test_the_deadline_passes_while_the_vendor_is_silent(provider: Any) -> None:
    async def never(request: Any) -> Any:
        await asyncio.Event().wait()

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(never))
    client = sdk_client(provider, "http://vendor.test", http_client=http)
    async with ADAPTERS[provider]("m", client=client, limits=Limits(wall_seconds=0.05)) as adapter:
        with pytest.raises(CodeTimeoutError, match=f"{provider} was not done after"):
            await adapter.run("go")


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_the_deadline_passes_while_a_file_is_downloaded(provider: Any) -> None:
    async def never(request: Any) -> Any:
        await asyncio.Event().wait()

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(never))
    client = sdk_client(provider, "http://vendor.test", http_client=http)
    async with ADAPTERS[provider]("m", client=client, deadline=0.05) as adapter:
        with pytest.raises(TransportError, match=f"{provider}: f was not there after 0.05 s") as told:
            await adapter.download(FileRef(provider=provider, file_id="f", container_id="c"))
    assert told.value.hint == "raise the deadline, or download it again"


@both_ways
@every_vendor
@pytest.mark.parametrize("stop", ["filtered", "cut"])
async def test_an_answer_that_is_withheld(provider: Any, streams: bool, stop: Any) -> None:
    vendor = ScriptedVendor(provider, [VendorSays("half", stop=stop), VendorSays("fine")])
    async with an_adapter(vendor) as adapter:
        session = adapter.session()
        with pytest.raises(AnswerWithheld, match=f"{provider} gave no whole answer") as caught:
            await asked(adapter, streams=streams, session=session)
        assert isinstance(caught.value, AssertionError)
        assert (session.history, session.is_busy) == ([], False)
        assert (await asked(adapter, streams=streams, session=session)).text == "fine"


@every_vendor
async def test_rubbish_instead_of_an_answer(provider: Any) -> None:
    for rubbish in (b"<html>", b"", b"[]", b"null"):
        async with an_adapter(ScriptedVendor(provider, [VendorReply(body=rubbish)])) as adapter:
            with pytest.raises(TransportError, match=f"{provider} sent something that is no"):
                await adapter.run("go")


@every_vendor
async def test_over_loopback(provider: Any) -> None:
    vendor = ScriptedVendor(provider, [VendorSays(RanCode("print(1)", "1\n"), "whole"), VendorSays("streamed")])
    with vendor.serve() as address:
        client = sdk_client(provider, address)
        async with ADAPTERS[provider]("m", client=client, tools=[code_tool(provider)]) as adapter:
            assert (await asked(adapter, streams=False)).text == "whole"
            assert (await asked(adapter, streams=True)).text == "streamed"
        await (client.aio.aclose() if provider == "gemini" else client.close())
