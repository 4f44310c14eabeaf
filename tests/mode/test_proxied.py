"""Requests through the jail's proxy are calls: rules, people, limits and events hold for them as for any other."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hatchway import ApprovalRequired, CodeMode, Deny, Edit, Limits
from hatchway.core.errors import CodeTimeoutError
from hatchway.core.events import AgentEvent, ApprovalRequest, CallDecided, CallFailed, CallStarted, ToolOutput
from hatchway.gate.rules import Rule
from hatchway.mode.fetch import fetch_tool
from hatchway.sandboxes.jail import JailSandbox

pytestmark = pytest.mark.anyio

GET = "import urllib.request\nurllib.request.urlopen('{url}').read()"
POST = """
import urllib.request, urllib.error
try:
    told = urllib.request.urlopen('{url}', data=b'x').read()
except urllib.error.HTTPError as e:
    told = e.code, e.reason
told
"""


@pytest.fixture(scope="module", autouse=True)
def _usable() -> None:
    seen = JailSandbox.probe()
    if seen.tier != "namespaces":
        pytest.skip(f"{seen.reason} {seen.hint}")


def granted(*domains: Any) -> JailSandbox:
    return JailSandbox(tier="namespaces", allowed_domains=domains, spares=0)


async def test_a_request_is_told_as_a_call_with_its_arguments(web: Any) -> None:
    events: list[AgentEvent] = []
    async with granted(web.target) as jail, CodeMode(jail, on_event=events.append) as mode:
        result = await mode.run(GET.format(url=web.url + "/x"))
    assert (result.output, result.usage.calls) == (b"hello", 1)
    started = next(event for event in events if isinstance(event, CallStarted))
    assert started.call.function_name == "fetch"
    arguments = dict(started.call.kwargs)
    assert arguments.pop("headers")["user-agent"].startswith("Python-urllib")
    assert arguments == {"url": f"{web.url}/x", "method": "GET", "body": None, "follow_redirects": False}
    done = next(event for event in events if isinstance(event, ToolOutput))
    assert (done.call_id, done.content["status"], done.content["body"]) == (started.call.call_id, 200, b"hello")


async def test_a_refusal_is_told_with_its_reason_also_of_a_tunnel(web: Any) -> None:
    events: list[AgentEvent] = []
    code = (
        POST.format(url="https://evil.test/")
        .replace("urllib.error.HTTPError", "Exception")
        .replace("e.code, e.reason", "str(e)")
    )
    async with granted((web.target, "GET")) as jail, CodeMode(jail, on_event=events.append) as mode:
        refused = (await mode.run(POST.format(url=web.url))).output
        tunnel = (await mode.run(code)).output
    assert refused == (403, f"POST {web.url} is refused: only GET is allowed there")
    why = f"https://evil.test is refused: it is not among the allowed domains ({web.target})"
    assert tunnel == f"<urlopen error Tunnel connection failed: 403 {why}>"
    failed = [event for event in events if isinstance(event, CallFailed)]
    assert [(event.error, event.denied, event.tool_name) for event in failed] == [
        (refused[1], True, "fetch"),
        (why, True, "fetch"),
    ]
    assert web.seen == []


async def test_rules_of_the_gate_hold(web: Any) -> None:
    rules = [Rule("deny", "fetch", {"method": "POST"}, "reading only")]
    async with granted(web.target) as jail, CodeMode(jail, rules=rules) as mode:
        assert (await mode.run(POST.format(url=web.url))).output == (403, "reading only")
        assert (await mode.run(GET.format(url=web.url))).output == b"hello"
    assert web.seen == ["GET "] or web.seen == ["GET /"]


async def test_a_callback_decides_and_may_edit(web: Any) -> None:
    def approve(call: Any) -> Any:
        if call.kwargs["method"] == "POST":
            return Deny("not today")
        return Edit({**call.kwargs, "url": f"{web.url}/missing"})

    events: list[AgentEvent] = []
    async with granted(web.target) as jail, CodeMode(jail, approve=approve, on_event=events.append) as mode:
        assert (await mode.run(POST.format(url=web.url))).output == (403, "not today")
        code = POST.format(url=f"{web.url}/x").replace(", data=b'x'", "")
        assert (await mode.run(code)).output == (404, "Not Found")
    assert [event.by for event in events if isinstance(event, CallDecided)] == ["callback", "callback"]
    assert web.seen == ["GET /missing"]


async def test_a_request_can_wait_for_a_person_past_the_deadline(web: Any) -> None:
    limits = Limits(wall_seconds=1.0)
    async with granted(web.target) as jail:
        fetch = fetch_tool(jail.network)
        asking = type(fetch).from_function(fetch.func, name="fetch", approval="ask")
        async with CodeMode(jail, tools=[asking], limits=limits) as mode:
            with pytest.raises(ApprovalRequired) as asked:
                await mode.run(GET.format(url=web.url + "/x"))
            (call,) = asked.value.pending
            assert (call.function_name, call.kwargs["url"], web.seen) == ("fetch", f"{web.url}/x", [])
            await asyncio.sleep(1.5)
            result = await mode.resume(asked.value.run_id, {call.call_id: True})
    assert (result.output, web.seen) == (b"hello", ["GET /x"])


async def test_a_run_goes_on_in_another_process_and_sends_nothing_twice(web: Any, tmp_path: Path) -> None:
    rules = [Rule("ask", "fetch", {"method": "POST"})]
    code = f"""
import urllib.request
first = urllib.request.urlopen('{web.url}/').read()
first, urllib.request.urlopen('{web.url}/echo', data=first).status
"""
    async with granted(web.target) as jail, CodeMode(jail, rules=rules, journal=tmp_path / "journal.db") as mode:
        with pytest.raises(ApprovalRequired) as asked:
            await mode.run(code)
    (call,) = asked.value.pending
    assert (call.kwargs["method"], call.kwargs["body"], web.seen) == ("POST", b"hello", ["GET /"])
    async with granted(web.target) as jail, CodeMode(jail, rules=rules, journal=tmp_path / "journal.db") as mode:
        result = await mode.resume(asked.value.run_id, {call.call_id: True})
    assert (result.output, web.seen) == ((b"hello", 200), ["GET /", "POST /echo"])


async def test_a_stream_asks_and_goes_on(web: Any) -> None:
    async with granted(web.target) as jail:
        fetch = fetch_tool(jail.network)
        asking = type(fetch).from_function(fetch.func, name="fetch", approval="ask")
        async with CodeMode(jail, tools=[asking]) as mode:
            outputs: list[Any] = []
            async for event in mode.stream(GET.format(url=web.url)):
                if isinstance(event, ApprovalRequest):
                    event.approve(True)
                if isinstance(event, ToolOutput):
                    outputs.append(event.content["status"])
    assert outputs == [200]


async def test_a_slow_answer_does_not_count_but_spinning_meanwhile_does(web: Any) -> None:
    slow = f"{web.url}/?seconds=5"
    spin = f"""
        import threading, urllib.request
        threading.Thread(target=urllib.request.urlopen, args=['{web.url}/?seconds=20']).start()
        while True:
            pass
    """
    async with granted(web.target) as jail, CodeMode(jail, limits=Limits(wall_seconds=3.0)) as mode:
        result = await mode.run(GET.format(url=slow))
        assert result.output == b"hello"
        assert result.usage.wall_seconds < 3.0
        with pytest.raises(CodeTimeoutError):
            await mode.run("\n".join(line[8:] for line in spin.splitlines()))


async def test_calls_and_requests_go_side_by_side(web: Any) -> None:
    async def double(n: int) -> int:
        await asyncio.sleep(0.05)
        return 2 * n

    code = f"""
import asyncio, urllib.request
def get(n):
    return urllib.request.urlopen('{web.url}/' + str(n)).read()
found = await asyncio.gather(*(asyncio.to_thread(get, n) for n in range(5)), *(double(n) for n in range(5)))
[*found, (await fetch('{web.url}/echo', method='PUT', body='é'))['status']]
"""
    async with granted(web.target) as jail, CodeMode(jail, tools=[double]) as mode:
        result = await mode.run(code)
    assert result.output == [b"hello"] * 5 + [0, 2, 4, 6, 8, 200]
    assert result.usage.calls == 11


async def test_an_own_fetch_serves_the_proxy_too_and_rubbish_of_it_is_an_error(web: Any) -> None:
    async def fetch(url: str, method: str, headers: dict[str, str], body: bytes | None, follow_redirects: bool) -> Any:
        if url.endswith("/rubbish"):
            return 7
        return {"status": 200, "headers": {"x-by": "hand"}, "body": url.encode()}

    async with granted("cached.test") as jail, CodeMode(jail, tools=[fetch]) as mode:
        assert (await mode.run(GET.format(url="http://cached.test/a"))).output == b"http://cached.test/a"
        code = POST.format(url="http://cached.test/rubbish")
        told = "fetch gave no reply: it must return status, headers and body"
        assert (await mode.run(code)).output == (502, told)


async def test_code_that_ends_leaves_its_requests_behind(web: Any) -> None:
    code = f"""
import threading, time, urllib.request
threading.Thread(target=urllib.request.urlopen, args=['{web.url}/?seconds=5'], daemon=True).start()
time.sleep(0.3)
'done'
"""
    async with granted(web.target) as jail, CodeMode(jail) as mode:
        assert (await mode.run(code)).output == "done"
        assert (await mode.run(GET.format(url=web.url))).output == b"hello"
