"""A server on loopback that speaks the chat completions API as vendors do: server-sent events, limits, broken lines."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True)
class Says:
    """Text in pieces."""

    pieces: Sequence[str]


@dataclass(frozen=True, slots=True)
class Calls:
    """A tool call, its arguments in pieces."""

    name: str
    pieces: Sequence[str]


@dataclass(frozen=True, slots=True)
class Refuses:
    """A status other than 200."""

    status: int
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: dict[str, Any] = field(default_factory=lambda: {"error": {"message": "refused", "type": "x", "code": None}})


@dataclass(frozen=True, slots=True)
class BreaksOff:
    """Some text, and then the connection is gone."""

    pieces: Sequence[str]


@dataclass(frozen=True, slots=True)
class Hangs:
    """Nothing for so many seconds."""

    seconds: float


Answer = Says | Calls | Refuses | BreaksOff | Hangs


class VendorServer:
    """Gives one answer per request, and keeps what it was sent."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self._answers = list(answers)
        self.requests: list[dict[str, Any]] = []
        self.url = ""

    def next(self, request: dict[str, Any]) -> Answer:
        self.requests.append(request)
        return self._answers[len(self.requests) - 1]


@contextmanager
def serving(answers: Sequence[Answer]) -> Iterator[VendorServer]:
    """A server for the time of the block."""
    vendor = VendorServer(answers)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            _answer(self, vendor)

        def log_message(self, format: str, *args: Any) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    vendor.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield vendor
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _answer(http: BaseHTTPRequestHandler, vendor: VendorServer) -> None:
    request = json.loads(http.rfile.read(int(http.headers["Content-Length"])))
    match vendor.next(request):
        case Refuses(status=status, headers=headers, body=body):
            content = json.dumps(body).encode()
            http.send_response(status)
            for name, value in {**headers, "Content-Type": "application/json"}.items():
                http.send_header(name, value)
            http.send_header("Content-Length", str(len(content)))
            http.end_headers()
            http.wfile.write(content)
        case Says(pieces=pieces):
            _begin(http)
            for piece in pieces:
                _chunk(http, _delta({"content": piece}))
            _end(http, "stop")
        case Calls(name=name, pieces=pieces):
            _begin(http)
            head = {"index": 0, "id": f"call_{len(vendor.requests)}", "type": "function"}
            _chunk(http, _delta({"tool_calls": [{**head, "function": {"name": name, "arguments": ""}}]}))
            for piece in pieces:
                _chunk(http, _delta({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}))
            _end(http, "tool_calls")
        case Hangs(seconds=seconds):
            time.sleep(seconds)
            http.close_connection = True
        case BreaksOff(pieces=pieces):
            _begin(http)
            for piece in pieces:
                _chunk(http, _delta({"content": piece}))
            http.close_connection = True
            http.connection.close()


def _begin(http: BaseHTTPRequestHandler) -> None:
    http.send_response(200)
    http.send_header("Content-Type", "text/event-stream")
    http.send_header("Transfer-Encoding", "chunked")
    http.end_headers()
    _chunk(http, _delta({"role": "assistant", "content": ""}))


def _delta(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {
        "id": "x", "object": "chat.completion.chunk", "created": 1, "model": "fake-model", "choices": [choice], **more
    }  # fmt: skip


def _chunk(http: BaseHTTPRequestHandler, event: dict[str, Any] | str) -> None:
    line = f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n".encode()
    http.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
    http.wfile.flush()


def _end(http: BaseHTTPRequestHandler, finish: str) -> None:
    _chunk(http, _delta({}, finish))
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    _chunk(http, {**_delta({}), "choices": [], "usage": usage})
    _chunk(http, "[DONE]")
    http.wfile.write(b"0\r\n\r\n")
