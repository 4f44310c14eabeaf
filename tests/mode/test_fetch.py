"""`fetch`: offered where a sandbox was granted domains, through the same gate as every tool."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from hatchway import CodeMode
from hatchway.sandboxes.monty import MontySandbox

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def serving() -> AsyncGenerator[int]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=latin-1\r\nContent-Length: 3\r\n\r\nn\xefl")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


def granted(*domains: str) -> MontySandbox:
    return MontySandbox(allowed_domains=domains)


async def test_code_fetches_what_was_granted() -> None:
    async with serving() as port, granted(f"127.0.0.1:{port}") as sandbox, CodeMode(sandbox) as mode:
        result = await mode.run(f"r = await fetch('http://127.0.0.1:{port}/')\n[r['status'], r['text'], r['body']]")
    assert result.output == [200, "nïl", b"n\xefl"]


async def test_a_refused_request_says_which_rule_inside_the_code() -> None:
    code = "try:\n    await fetch('http://x.test/')\nexcept RuntimeError as e:\n    text = str(e)\ntext"
    async with granted("y.test") as sandbox, CodeMode(sandbox) as mode:
        text = (await mode.run(code)).output
    assert text.endswith("http://x.test is refused: it is not among the allowed domains (y.test)")


async def test_no_fetch_without_a_grant_and_an_own_one_wins() -> None:
    async def fetch(url: str) -> str:
        return f"mine: {url}"

    async with MontySandbox() as sandbox:
        assert CodeMode(sandbox).tools == {}
    async with granted("y.test") as sandbox, CodeMode(sandbox, tools=[fetch]) as mode:
        assert (await mode.run("await fetch('u')")).output == "mine: u"
