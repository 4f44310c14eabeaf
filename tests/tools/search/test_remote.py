"""A remote embedder: a server of this machine that speaks as OpenAI does, asked from any thread and loop."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from hatchway.core.errors import ToolError
from hatchway.tools.functions import Tool
from hatchway.tools.search.discovery import Finder
from hatchway.tools.search.settings import SearchSettings

pytestmark = pytest.mark.anyio
TOPICS = ("water", "fire", "earth")


class Embeddings(BaseHTTPRequestHandler):
    """A vector tells which of three words a text has."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        rows = [
            {"object": "embedding", "index": n, "embedding": [float(topic in text.lower()) + 0.1 for topic in TOPICS]}
            for n, text in enumerate(asked["input"])
        ]
        told = {
            "object": "list",
            "data": rows,
            "model": asked["model"],
            "usage": {"prompt_tokens": 1, "total_tokens": 1},
        }
        body = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> Iterator[SearchSettings]:
    pytest.importorskip("openai")
    with ThreadingHTTPServer(("127.0.0.1", 0), Embeddings) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        yield SearchSettings(database=None, embedder="openai:small", dimensions=3, bm25_weight=0.0)
        server.shutdown()


def offered(settings: SearchSettings) -> Finder:
    said = {"a.pour": "Water.", "a.burn": "Fire.", "a.dig": "Earth."}
    schema = {"type": "object", "properties": {}}
    finder = Finder("hybrid", settings)
    finder.offer({name: Tool(name=name, description=text, parameters=schema, func=int) for name, text in said.items()})
    return finder


async def test_searches_from_a_loop_and_from_threads(remote: SearchSettings) -> None:
    finder = offered(remote)
    assert finder.search("where is the fire", 1)[0].name == "a.burn"  # the thread of a loop that runs
    for query, name in (("some water", "a.pour"), ("the earth", "a.dig")):
        found = await asyncio.to_thread(finder.search, query, 1)
        assert found[0].name == name
    finder.close()


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("nonsense", "the embedder 'nonsense' gave nothing: You must provide a provider prefix"),
        ("openai:small", "the embedder 'openai:small' gave nothing: "),
    ],
)
async def test_an_embedder_that_cannot_be_had(model: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openai")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    finder = offered(SearchSettings(database=None, embedder=model, dimensions=3))
    for _ in range(2):  # and no search after it finds nothing in an index that was never filled
        with pytest.raises(ToolError) as raised:
            finder.search("fire")
    assert raised.value.message.startswith(said)
    assert raised.value.hint == "or set PYTOOLS_EMBEDDING_MODEL=wordllama"
    finder.close()
