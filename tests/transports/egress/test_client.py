"""The checking client against a real server on loopback; refusals are told before anything is sent."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hatchway.core.errors import ToolDenied, ToolError
from hatchway.core.network import NetworkRules
from hatchway.transports.egress.client import CheckedClient

pytestmark = pytest.mark.anyio


class Server:
    """An HTTP server that answers by path and remembers what it was sent."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.port = 0
        self.serving: set[asyncio.Task[None]] = set()

    def answer(self, path: str) -> bytes:
        replies = {
            "/": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\n\r\nhello",
            "/big": b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100_000,
            "/away": b"HTTP/1.1 302 Found\r\nLocation: http://evil.test/x\r\nContent-Length: 0\r\n\r\n",
            "/here": b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n",
            "/loop": b"HTTP/1.1 302 Found\r\nLocation: /loop\r\nContent-Length: 0\r\n\r\n",
            "/junk": b"\x00\x01garbage\r\n\r\n",
        }
        return replies.get(path, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.serving.add(task)
        try:
            await self.respond(reader, writer)
        except (asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.serving.discard(task)
            writer.close()

    async def respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.requests.append(head)
        path = head.split(" ")[1]
        if path == "/slow":
            await asyncio.sleep(5)
        writer.write(self.answer(path))
        await writer.drain()


@asynccontextmanager
async def serving() -> AsyncGenerator[Server]:
    server = Server()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for task in tuple(server.serving):
            task.cancel()
        await asyncio.gather(*server.serving)


def leading_to(address: str) -> Any:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return [address]

    return resolve


async def no_connection(address: str, port: int, timeout: float | None) -> Any:
    raise AssertionError(f"a connection to {address} was opened")


async def test_a_request_and_a_redirect_within_the_rules() -> None:
    async with serving() as server:
        client = CheckedClient(NetworkRules.of([f"127.0.0.1:{server.port}"]))
        reply = await client.request("get", f"http://127.0.0.1:{server.port}/here", headers=[("X-Mine", "1")])
        assert (reply.status, reply.body, reply.url) == (200, b"hello", f"http://127.0.0.1:{server.port}/")
        assert ("X-A", "b") in reply.headers
        assert "X-Mine: 1" in server.requests[0]
        assert f"Host: 127.0.0.1:{server.port}" in server.requests[0]


async def test_a_redirect_out_of_the_rules_is_refused_and_nothing_is_sent() -> None:
    async with serving() as server:
        client = CheckedClient(NetworkRules.of([f"127.0.0.1:{server.port}"]))
        with pytest.raises(ToolDenied, match=r"http://evil\.test is refused: it is not among the allowed domains"):
            await client.request("GET", f"http://127.0.0.1:{server.port}/away")
        assert len(server.requests) == 1


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.169.254", "10.0.0.7", "::1", "::ffff:192.168.0.1"])
async def test_a_name_that_leads_inside_is_refused_before_a_connection(address: str) -> None:
    rules = NetworkRules.of(["public.test"])
    client = CheckedClient(rules, resolve=leading_to(address), connect=no_connection)
    with pytest.raises(ToolDenied, match="which is not a public address"):
        await client.request("GET", "https://public.test/")


async def test_one_bad_address_among_good_ones_is_enough_to_refuse() -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["140.82.121.3", "127.0.0.1"]

    client = CheckedClient(NetworkRules.of(["public.test"]), resolve=resolve, connect=no_connection)
    with pytest.raises(ToolDenied, match=r"resolves to 127\.0\.0\.1"):
        await client.request("GET", "https://public.test/")


async def test_the_connection_goes_to_the_address_that_was_checked() -> None:
    asked: list[tuple[str, int]] = []

    async def connect(address: str, port: int, timeout: float | None) -> Any:
        asked.append((address, port))
        raise OSError("no route")

    client = CheckedClient(NetworkRules.of(["public.test"]), resolve=leading_to("140.82.121.3"), connect=connect)
    with pytest.raises(ToolError, match=r"https://public\.test cannot be reached"):
        await client.request("GET", "https://public.test/")
    assert asked == [("140.82.121.3", 443)]


async def test_a_method_that_is_not_granted_is_refused() -> None:
    client = CheckedClient(NetworkRules.of([("public.test", "GET")]), connect=no_connection)
    with pytest.raises(ToolDenied, match=r"POST https://public\.test is refused: only GET is allowed there"):
        await client.request("POST", "https://public.test/")


async def test_size_time_loops_and_rubbish_have_their_own_errors() -> None:
    async with serving() as server:
        base = f"http://127.0.0.1:{server.port}"
        client = CheckedClient(NetworkRules.of([f"127.0.0.1:{server.port}"]), max_bytes=1000, seconds=0.3)
        with pytest.raises(ToolError, match="answered with more than 1000 bytes"):
            await client.request("GET", base + "/big")
        with pytest.raises(ToolError, match=r"took longer than 0\.3 s"):
            await client.request("GET", base + "/slow")
        with pytest.raises(ToolError, match="was redirected more than 10 times"):
            await client.request("GET", base + "/loop")
        with pytest.raises(ToolError, match="cannot be reached"):
            await client.request("GET", base + "/junk")
        with pytest.raises(ToolError, match="the body is larger than 1000 bytes"):
            await client.request("PUT", base + "/", body=b"x" * 1001)
        with pytest.raises(ToolError, match="the header 'X\\\\r\\\\nY' is not valid"):
            await client.request("GET", base + "/", headers=[("X\r\nY", "1")])


async def test_a_name_that_changes_its_address_gains_nothing() -> None:
    answers = [["140.82.121.3"], ["127.0.0.1"]]
    opened: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        return answers.pop(0)

    async def connect(address: str, port: int, timeout: float | None) -> Any:
        opened.append(address)
        raise OSError("no route")

    client = CheckedClient(NetworkRules.of(["public.test"]), resolve=resolve, connect=connect)
    with pytest.raises(ToolError, match="cannot be reached"):
        await client.request("GET", "http://public.test/")
    with pytest.raises(ToolDenied, match=r"it resolves to 127\.0\.0\.1"):
        await client.request("GET", "http://public.test/")
    assert opened == ["140.82.121.3"]


async def test_refusals_look_nothing_up() -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        raise AssertionError(f"{host} was resolved")

    rules = NetworkRules.of([("public.test", "GET")], denied=["*.public.test"])
    client = CheckedClient(rules, resolve=resolve, connect=no_connection)
    refused = [("POST", "http://public.test/"), ("GET", "http://x.public.test/"), ("GET", "http://public.test:81/"),
               ("GET", "ftp://public.test/"), ("TRACE", "http://public.test/")]  # fmt: skip
    for method, url in refused:
        with pytest.raises(ToolDenied, match="refused"):
            await client.request(method, url)


async def test_tls_is_checked_for_the_name_that_was_asked_for(secure_web: Any) -> None:
    rules = NetworkRules.of([secure_web.target, "localhost:" + secure_web.target.partition(":")[2]])
    client = CheckedClient(rules, ssl_context=secure_web.trusts)
    assert (await client.request("GET", secure_web.url + "/")).body == b"hello"
    with pytest.raises(ToolError, match=r"cannot be reached: .*(not valid for|Hostname mismatch)"):
        await client.request("GET", secure_web.url.replace("127.0.0.1", "localhost") + "/")
    with pytest.raises(ToolError, match="CERTIFICATE_VERIFY_FAILED"):
        await CheckedClient(rules).request("GET", secure_web.url + "/")
    assert secure_web.seen == ["GET /"]


async def test_what_is_sent_is_made_of_what_was_checked(web: Any) -> None:
    client = CheckedClient(NetworkRules.of([web.target]))
    await client.request("GET", f"{web.url}/a b#c".replace(" ", "%20") + "é?q=ü#f", headers=[("Host", "evil.test")])
    assert web.seen == ["GET /a%20b"]
    reply = await client.request("POST", f"{web.url}/echo?q=ü", headers=[("Host", "evil.test"), ("X", "1")])
    assert f'"Host": "{web.target}"'.encode() in reply.body
    assert b'"Content-Length": "0"' in reply.body
    assert web.seen[1] == "POST /echo?q=%C3%BC"


async def test_so_many_at_a_time_and_no_more(web: Any) -> None:
    client = CheckedClient(NetworkRules.of([web.target]))
    many = await asyncio.gather(*(client.request("GET", f"{web.url}/?seconds=0.05") for _ in range(40)))
    assert [reply.status for reply in many] == [200] * 40


async def test_settings_of_the_host_are_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    netrc = tmp_path / ".netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(netrc))
    async with serving() as server:
        client = CheckedClient(NetworkRules.of([f"127.0.0.1:{server.port}"]))
        assert (await client.request("GET", f"http://127.0.0.1:{server.port}/")).status == 200
        assert "authorization" not in server.requests[0].lower()
