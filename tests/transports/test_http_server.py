"""The HTTP server against raw sockets: strict, bounded, and nothing is looked at without the token."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hatchway.transports.http import connection as http_connection
from hatchway.transports.http import server as http_server
from hatchway.transports.http.connection import Body, Reply
from hatchway.transports.http.server import HttpServer

pytestmark = pytest.mark.anyio

TOKEN = "the-token"
MAX_BODY = 1000
HEAD = b"POST /echo HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer the-token\r\nContent-Length: %d\r\n\r\n"


class Client:
    """One raw connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, raw: bytes) -> None:
        self.writer.write(raw)

    def post(self, body: bytes = b"{}", *, path: str = "/echo", token: str = TOKEN, more: str = "") -> None:
        headers = f"Host: a\r\nAuthorization: Bearer {token}\r\nContent-Length: {len(body)}\r\n{more}"
        self.send(f"POST {path} HTTP/1.1\r\n{headers}\r\n".encode() + body)

    async def status(self) -> int:
        return (await self.answer())[0]

    async def answer(self) -> tuple[int, Any]:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.lower().split("content-length: ")[1].split("\r\n")[0])
        return int(head.split(" ")[1]), json.loads(await self.reader.readexactly(length))

    async def refusal(self) -> tuple[int, str]:
        status, body = await self.answer()
        return status, body["error"]["message"]

    async def is_closed(self) -> bool:
        try:
            return await self.reader.read(1) == b""
        except ConnectionResetError:
            return True


class Served:
    """A server with one path that echoes its body and one that answers when told."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.cancelled = 0
        self.go = asyncio.Event()
        self.clients: list[Client] = []
        handlers = {"/echo": self.echo, "/wait": self.wait, "/fail": self.fail}
        self.server = HttpServer(handlers, token=TOKEN, max_body_bytes=MAX_BODY)

    async def echo(self, body: Body) -> Reply:
        self.bodies.append(body.data)
        return Reply(200, b'{"size": %d}' % len(body.data))

    async def wait(self, body: Body) -> Reply:
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return Reply(200, b'"done"')

    async def fail(self, body: Body) -> Reply:
        raise RuntimeError("a bug")

    async def client(self) -> Client:
        client = Client(*await asyncio.open_connection("127.0.0.1", self.server.port))
        self.clients.append(client)
        return client


@asynccontextmanager
async def served() -> AsyncIterator[Served]:
    it = Served()
    await it.server.open("127.0.0.1", 0)
    try:
        yield it
    finally:
        await it.server.close()
        for client in it.clients:
            client.writer.close()
            try:
                await client.writer.wait_closed()
            except ConnectionError:
                pass


async def test_a_connection_serves_many_requests() -> None:
    async with served() as it:
        client = await it.client()
        for size in (0, 1, MAX_BODY):
            client.post(b"x" * size)
            assert await client.answer() == (200, {"size": size})
        client.post(b"x", more="Connection: close\r\n")
        assert await client.answer() == (200, {"size": 1})
        assert await client.is_closed()


async def test_a_request_may_come_byte_by_byte() -> None:
    async with served() as it:
        client = await it.client()
        raw = HEAD % 3 + b"abc"
        for i in range(len(raw)):
            client.send(raw[i : i + 1])
            await asyncio.sleep(0)
        assert await client.answer() == (200, {"size": 3})
        assert it.bodies == [b"abc"]


async def test_pipelined_requests_are_answered_in_order() -> None:
    async with served() as it:
        client = await it.client()
        for size in (1, 2, 3):
            client.post(b"x" * size)
        assert [await client.answer() for _ in range(3)] == [(200, {"size": size}) for size in (1, 2, 3)]


async def test_requests_piled_up_behind_one_that_waits_are_not_stored() -> None:
    async with served() as it:
        client = await it.client()
        client.post(path="/wait")
        await asyncio.sleep(0.05)
        for _ in range(40):
            client.post(b"x" * MAX_BODY)
        assert await client.is_closed()
        assert it.bodies == []


async def test_expect_100_continue() -> None:
    async with served() as it:
        client = await it.client()
        client.send(
            b"POST /echo HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer the-token\r\n"
            b"Content-Length: 2\r\nExpect: 100-continue\r\n\r\n"
        )
        assert await client.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.send(b"ok")
        assert await client.answer() == (200, {"size": 2})


@pytest.mark.parametrize(
    "authorization",
    ["", "Authorization: Bearer wrong\r\n", "Authorization: the-token\r\n", "Authorization: Bearer the-token2\r\n"],
)
async def test_without_the_token_nothing_is_read(authorization: str) -> None:
    async with served() as it:
        client = await it.client()
        client.send(f"POST /echo HTTP/1.1\r\nHost: a\r\n{authorization}Content-Length: 5\r\n\r\n".encode())
        assert await client.refusal() == (401, "the bearer token is missing or wrong")
        client.send(b"hello")
        client.post(b"second")
        assert await client.is_closed()
        assert it.bodies == []


async def test_a_stranger_does_not_learn_which_paths_exist() -> None:
    async with served() as it:
        client = await it.client()
        client.post(path="/nowhere", token="wrong")
        assert await client.status() == 401


@pytest.mark.parametrize(
    ("request_line", "headers", "status", "message"),
    [
        ("POST /nowhere", "Content-Length: 2", 404, "no such path; there are /echo, /wait, /fail"),
        ("POST /echo?x", "Content-Length: 2", 404, "no such path; there are /echo, /wait, /fail"),
        ("GET /echo", "Content-Length: 2", 405, "this path takes POST only"),
        ("POST /echo", "X: y", 411, "Content-Length is missing"),
        ("POST /echo", "Transfer-Encoding: chunked", 501, "transfer codings are not accepted: send Content-Length"),
        ("POST /echo", "Content-Length: 1001", 413, "the body has 1001 bytes, 1000 are accepted"),
        ("POST /echo", "Content-Length: x", 400, "Content-Length is not a number"),
        ("POST /echo", "X: " + "y" * 20_000, 431, "the head has more than 16384 bytes"),
    ],
)
async def test_refusals_say_why(request_line: str, headers: str, status: int, message: str) -> None:
    async with served() as it:
        client = await it.client()
        headers = f"Host: a\r\nAuthorization: Bearer {TOKEN}\r\n{headers}"
        client.send(f"{request_line} HTTP/1.1\r\n{headers}\r\n\r\n{{}}".encode())
        assert await client.refusal() == (status, message)
        assert await client.is_closed()
        assert it.bodies == []


async def test_a_refused_client_that_is_still_sending_can_read_why() -> None:
    async with served() as it:
        client = await it.client()
        client.post(b"x" * 5_000_000)
        assert await client.refusal() == (413, "the body has 5000000 bytes, 1000 are accepted")


@pytest.mark.parametrize("garbage", [b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", b"\r\n\r\n", b"\x00" * 20_000])
async def test_garbage_is_refused_and_the_next_client_served(garbage: bytes) -> None:
    async with served() as it:
        client = await it.client()
        client.send(garbage)
        assert await client.status() in (400, 431)
        assert await client.is_closed()
        client = await it.client()
        client.post(b"abc")
        assert await client.answer() == (200, {"size": 3})


async def test_a_slow_head_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connection, "HEAD_SECONDS", 0.2)
    async with served() as it:
        silent, slow = await it.client(), await it.client()
        slow.send(b"POST /echo HTTP/1.1\r\n")
        for _ in range(4):
            await asyncio.sleep(0.07)
            slow.send(b"X: y\r\n")
        assert await slow.refusal() == (408, "the request was not complete in time")
        assert await silent.is_closed()


async def test_a_body_that_stands_still_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connection, "BODY_SECONDS", 0.1)
    async with served() as it:
        client = await it.client()
        client.send(HEAD % 9 + b"half")
        assert await client.refusal() == (408, "the request was not complete in time")
        assert it.bodies == []


async def test_no_timeout_ends_a_request_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HEAD_SECONDS", "BODY_SECONDS", "IDLE_SECONDS"):
        monkeypatch.setattr(http_connection, name, 0.05)
    async with served() as it:
        client = await it.client()
        client.post(path="/wait")
        await asyncio.sleep(0.3)
        it.go.set()
        assert await client.answer() == (200, "done")
        assert await client.is_closed()


async def test_a_handler_is_cancelled_when_its_client_leaves() -> None:
    async with served() as it:
        client = await it.client()
        client.post(path="/wait")
        await asyncio.sleep(0.05)
        client.writer.close()
        await asyncio.sleep(0.05)
        assert it.cancelled == 1


async def test_one_connection_too_many_is_told_to_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "MAX_CONNECTIONS", 2)
    async with served() as it:
        for _ in range(2):
            client = await it.client()
            client.post(b"x")
            assert await client.status() == 200
        third = await it.client()
        assert await third.refusal() == (503, "2 connections are open: try again later")
        client.post(b"x")
        assert await client.status() == 200


async def test_strangers_do_not_keep_the_guest_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "MAX_CONNECTIONS", 2)
    async with served() as it:
        strangers = [await it.client() for _ in range(3)]
        guest = await it.client()
        guest.post(b"x")
        assert await guest.status() == 200
        assert [await stranger.is_closed() for stranger in strangers[:2]] == [True, True]


async def test_bodies_held_are_bounded_together() -> None:
    async with served() as it:
        clients = [await it.client() for _ in range(http_server.BODIES_AT_ONCE + 1)]
        for client in clients:
            client.send(HEAD % MAX_BODY)
            await asyncio.sleep(0.02)
        assert await clients[-1].refusal() == (503, "too many large bodies at once: try again later")
        clients[0].writer.close()
        await asyncio.sleep(0.05)
        late = await it.client()
        late.post(b"x" * MAX_BODY)
        assert await late.status() == 200


async def test_a_body_is_held_until_its_handler_drops_it() -> None:
    async with served() as it:
        bodies: list[Body] = []

        async def keep(body: Body) -> Reply:
            bodies.append(body)
            await it.go.wait()
            return Reply(200, b"1")

        it.server._handlers = {"/keep": keep}  # pyright: ignore[reportPrivateUsage]
        clients = [await it.client() for _ in range(http_server.BODIES_AT_ONCE)]
        for client in clients:
            client.post(b"x" * MAX_BODY, path="/keep")
        await asyncio.sleep(0.05)
        late = await it.client()
        late.post(b"x", path="/keep")
        assert await late.status() == 503
        bodies[0].drop()
        late = await it.client()
        late.post(b"x", path="/keep")
        await asyncio.sleep(0.05)
        it.go.set()
        assert await late.status() == 200


async def test_a_bug_in_a_handler_is_reported_and_answered() -> None:
    problems: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
    async with served() as it:
        client = await it.client()
        client.post(path="/fail")
        assert await client.refusal() == (500, "the host failed to answer")
    assert [str(p["exception"]) for p in problems] == ["a bug"]


async def test_closing_ends_every_connection_and_frees_the_port() -> None:
    async with served() as it:
        idle, waiting, half = await it.client(), await it.client(), await it.client()
        waiting.post(path="/wait")
        half.send(b"POST /echo HT")
        await asyncio.sleep(0.05)
        port = it.server.port
        await it.server.close()
        assert [await client.is_closed() for client in (idle, waiting, half)] == [True, True, True]
        assert it.cancelled == 1
        await it.server.open("127.0.0.1", port)
        assert it.server.port == port


async def test_closing_does_not_wait_for_a_client_that_never_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "LINGER_SECONDS", 0.1)
    async with served() as it:

        async def large(body: Body) -> Reply:
            return Reply(200, b"x" * 20_000_000)

        it.server._handlers = {"/large": large}  # pyright: ignore[reportPrivateUsage]
        client = await it.client()
        client.post(path="/large")
        await asyncio.sleep(0.1)
        await it.server.close()
        assert not it.server._connections  # pyright: ignore[reportPrivateUsage]
