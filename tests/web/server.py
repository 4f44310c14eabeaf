"""A web server on loopback, plain or with TLS, that answers by path and remembers every request."""

from __future__ import annotations

import gzip
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from hatchway.transports.egress.authority import CertificateAuthority


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        self.server.seen.append(f"{self.command} {self.path}")
        asked = urlsplit(self.path)
        given = {name: values[0] for name, values in parse_qs(asked.query).items()}
        if "seconds" in given:
            time.sleep(float(given["seconds"]))
        self.reply(asked.path, given, body)

    def reply(self, path: str, given: dict[str, str], body: bytes) -> None:
        headers: list[tuple[str, str]] = [("X-Given", "yes"), ("Set-Cookie", "a=1; Path=/"), ("Set-Cookie", "b=2")]
        status, content = 200, b"hello"
        if path == "/echo":
            told = {"method": self.command, "headers": dict(self.headers), "body": body.decode("latin-1")}
            content = json.dumps(told).encode()
            headers.append(("Content-Type", "application/json"))
        elif path == "/redirect":
            status, content = 302, b""
            headers.append(("Location", given["to"]))
        elif path == "/big":
            content = b"x" * int(given["bytes"])
        elif path == "/gzip":
            content = gzip.compress(b"packed")
            headers += [("Content-Encoding", "gzip"), ("Content-Type", "text/plain")]
        elif path == "/missing":
            status, content = 404, b"nothing here"
        elif path == "/empty":
            status, content = 204, b""
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = answer

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.seen: list[str] = []
        """Method and path of every request."""
        self.target = f"127.0.0.1:{self.server_address[1]}"
        self.url = f"{'http' if context is None else 'https'}://{self.target}"
        self.trusts: ssl.SSLContext | None = None
        """What a client needs to believe it."""
        self.certificate = ""

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a client that went away


@contextmanager
def serving(*, secure: bool) -> Iterator[Server]:
    """A running server."""
    authority = CertificateAuthority() if secure else None
    server = Server(authority.context("127.0.0.1", lambda name: None) if authority else None)
    if authority is not None:
        server.certificate = authority.certificate
        server.trusts = ssl.create_default_context(cadata=authority.certificate)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
