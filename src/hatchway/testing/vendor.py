"""ScriptedVendor: OpenAI, Anthropic or Gemini that says what it is told to, under their real SDKs. No network."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

from hatchway.core.errors import MissingExtra
from hatchway.hosted.code import Provider
from hatchway.hosted.wire import as_item
from hatchway.testing.vendor_client import sdk_client
from hatchway.testing.vendor_script import VendorSays
from hatchway.testing.vendor_streams import streamed

_MODEL = re.compile(r"/(?:responses|messages)$|:(?:generateContent|streamGenerateContent)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorReply:
    """What the vendor sends."""

    body: Any = field(default_factory=dict[str, Any])
    """JSON; a list is a stream of events, bytes are sent as they are."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    is_cut: bool = False
    """The connection breaks where the body ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorRequest:
    """What the vendor was asked."""

    method: str
    path: str
    body: Any
    """JSON, or bytes where it is none."""
    headers: Mapping[str, str]


Said = VendorSays | VendorReply | Mapping[str, Any] | list[Mapping[str, Any]] | Callable[[VendorRequest], Any]
"""A whole response, in the words of all vendors or of this one (streamed where a stream is asked for); the events of a
stream; a reply; or what makes one of these."""


class ScriptedVendor:
    """Answers requests to its model one after the other from a script, and keeps files and containers.

    Args:
        provider: Whose language it speaks.
        script: What it says to each request to its model.
        files: What can be downloaded, by file id.
        routes: Replies for other requests, by `"METHOD path"` as a regular expression; used before its own.
    """

    def __init__(
        self,
        provider: Provider,
        script: Iterable[Said] = (),
        *,
        files: Mapping[str, bytes] | None = None,
        routes: Mapping[str, Said] | None = None,
    ) -> None:
        self.provider: Provider = provider
        self.script = list(script)
        self.files = dict(files or {})
        self.routes = dict(routes or {})
        self.requests: list[VendorRequest] = []
        self._made = 0
        self._names: dict[str, str] = {}

    @property
    def asked(self) -> list[Any]:
        """The bodies of the requests to its model."""
        return [request.body for request in self.requests if _MODEL.search(request.path)]

    def client(self, **settings: Any) -> Any:
        """The vendor's own async client, with this vendor behind it."""
        try:
            import httpx2
        except ImportError as e:
            raise MissingExtra("the SDK of the vendor", self.provider) from e
        http = httpx2.AsyncClient(transport=httpx2.MockTransport(self._transported))
        return sdk_client(self.provider, "http://vendor.test", http_client=http, **settings)

    @contextmanager
    def serve(self) -> Generator[str]:
        """A server on loopback; its address."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def answer(self, method: str, path: str, headers: Mapping[str, str], content: bytes) -> VendorReply:
        """What it says to a request."""
        try:
            body: Any = json.loads(content) if content else {}
        except ValueError:
            body = content
        request = VendorRequest(method=method, path=path, body=body, headers=headers)
        self.requests.append(request)
        return self._as_reply(self._chosen(request), request)

    def _chosen(self, request: VendorRequest) -> Said:
        for pattern, said in self.routes.items():
            if re.fullmatch(pattern, f"{request.method} {request.path}"):
                return said
        if _MODEL.search(request.path):
            if not self.script:
                return VendorReply(status=400, body={"error": {"message": "the script is at its end"}})
            return self.script.pop(0)
        return self._stored(request)

    def _stored(self, request: VendorRequest) -> VendorReply:
        """The parts of the API that keep files and containers."""
        self._made += 1
        place = request.path.rstrip("/")
        if request.method == "DELETE":
            return VendorReply(body={"id": place.rpartition("/")[2], "deleted": True})
        if request.method == "GET" and place.endswith("/content"):
            file_id = place.split("/")[-2]
            if file_id in self.files:
                return VendorReply(body=self.files[file_id])
            return VendorReply(status=404, body={"error": {"message": f"no such file {file_id}"}})
        if request.method == "GET" and (file_id := place.rpartition("/")[2]) in self.files:
            told = {"id": file_id, "type": "file", "filename": self._names.get(file_id, ""), "mime_type": ""}
            return VendorReply(body={**told, "size_bytes": 0, "created_at": "2026-01-01T00:00:00Z"})
        if place.endswith("/containers"):
            return VendorReply(body={"id": f"cntr_{self._made}", "object": "container", "name": "hatchway"})
        if "/containers/" in place and place.endswith("/files"):
            path = f"/mnt/data/{request.body['file_id']}"
            return VendorReply(body={"id": f"cfile_{self._made}", "object": "container.file", "path": path})
        if place.endswith("/files"):
            return VendorReply(body={"id": f"file_{self._made}", "object": "file", "filename": "f"})
        return VendorReply(status=404, body={"error": {"message": f"no such place: {place}"}})

    def _as_reply(self, said: Said, request: VendorRequest) -> VendorReply:
        if callable(said):
            said = cast("Said", said(request))
        if isinstance(said, VendorSays):
            self._names |= said.files
            said = said.response(self.provider)
        if isinstance(said, VendorReply):
            return said
        is_stream = request.path.endswith("streamGenerateContent") or as_item(request.body).get("stream") is True
        whole: Any = said
        body = streamed(self.provider, whole) if is_stream and isinstance(said, Mapping) else whole
        return VendorReply(body=body, headers={"x-request-id": "req_1", "request-id": "req_1"})

    def _transported(self, request: Any) -> Any:
        import httpx2

        reply = self.answer(request.method, request.url.path, dict(request.headers), request.content)
        content, kind = _content(self.provider, reply)
        headers = {"content-type": kind, **reply.headers}
        if not reply.is_cut:
            return httpx2.Response(reply.status, headers=headers, content=content)

        async def cut() -> AsyncGenerator[bytes]:
            yield content
            raise httpx2.RemoteProtocolError("the peer closed the connection without finishing")

        return httpx2.Response(reply.status, headers=headers, content=cut())


def _content(provider: Provider, reply: VendorReply) -> tuple[bytes, str]:
    body = reply.body
    if isinstance(body, bytes):
        return body, "application/octet-stream"
    if isinstance(body, list):
        events = cast("list[Mapping[str, Any]]", body)
        return b"".join(_event(provider, event) for event in events), "text/event-stream"
    return json.dumps(body).encode(), "application/json"


def _event(provider: Provider, event: Mapping[str, Any]) -> bytes:
    named = b"" if provider == "gemini" else f"event: {event.get('type')}\n".encode()
    return named + f"data: {json.dumps(event)}\n\n".encode()


def _handler(vendor: ScriptedVendor) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            content = self.rfile.read(int(self.headers.get("content-length") or 0))
            path = self.path.partition("?")[0]
            reply = vendor.answer(self.command, path, dict(self.headers), content)
            body, kind = _content(vendor.provider, reply)
            self.send_response(reply.status)
            for name, value in {"content-type": kind, **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body) + (10 if reply.is_cut else 0)))
            self.send_header("connection", "close")  # said, so that no client sends its next request into it
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_DELETE = _serve

        def log_message(self, format: str, *args: Any) -> None:
            return None

    return Handler
