"""How a guest reads a response: whatever a proxy makes of it, and never half of it."""

import importlib.util
import socket
import threading
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from hatchway.transports.http.stub import GUEST

Answer = Callable[[list[bytes]], Any]


def _module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("guest_http_connection", GUEST / "http_connection.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


guest: Any = _module()


@pytest.fixture
def connected() -> Iterator[Answer]:
    """A connection whose other side sends these pieces and closes."""
    opened: list[Any] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def connect(pieces: list[bytes]) -> Any:
            connection = guest.Connection("127.0.0.1", server.getsockname()[1], False)
            connection.send(b"request")
            there, _ = server.accept()
            thread = threading.Thread(target=answer, args=(there, pieces))
            thread.start()
            opened.extend([connection, thread])
            return connection

        def answer(there: socket.socket, pieces: list[bytes]) -> None:
            with there:
                assert there.recv(100) == b"request"
                for piece in pieces:
                    there.sendall(piece)

        yield connect
        for connection, thread in zip(opened[::2], opened[1::2], strict=True):
            thread.join()
            connection.close()


OK = b"HTTP/1.1 200 OK\r\n"
LENGTH = b"Content-Length: %d\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("pieces", "status", "body", "stays"),
    [
        ([OK + LENGTH % 2 + b"{}"], 200, b"{}", True),
        ([b"HTTP/1.1 202 Accepted\r\ncontent-length:0\r\n\r\n"], 202, b"", True),
        ([b"HTTP/1.0 503 X\r\nConnection: close\r\n" + LENGTH % 1 + b"x"], 503, b"x", False),
        ([b"HTTP/1.1 100 Continue\r\n\r\n" + OK + LENGTH % 1 + b"x"], 200, b"x", True),
        ([bytes([byte]) for byte in OK + LENGTH % 3 + b"abc"], 200, b"abc", True),
        (
            [OK + CHUNKED, b"3\r\nab", b"c\r\nA;x=y\r\n0\r\n\r\n", b"98765\r\n", b"0\r\n\r\n"],
            200,
            b"abc0\r\n\r\n98765",
            True,
        ),
        ([OK + LENGTH % 1 + b"x and more"], 200, b"x", False),
    ],
)
def test_a_whole_response(connected: Answer, pieces: list[bytes], status: int, body: bytes, stays: bool) -> None:
    connection = connected(pieces)
    assert connection.response() == (status, body)
    assert connection.is_open == stays


@pytest.mark.parametrize(
    ("pieces", "problem"),
    [
        ([], "the connection was closed"),
        ([OK + b"Content-Le"], "the connection was closed"),
        ([OK + LENGTH % 3 + b"ab"], "the connection was closed"),
        ([OK + CHUNKED + b"3\r\nab"], "the connection was closed"),
        ([OK + CHUNKED + b"z\r\n0\r\n\r\n"], "a chunk is malformed"),
        ([OK + b"X: y\r\n\r\n{}"], "the response does not say how long it is"),
        ([b"SSH-2.0-x\r\n\r\n"], "the response is not HTTP"),
        ([b"x" * 70_000], "the response has no head"),
    ],
)
def test_half_a_response_is_none(connected: Answer, pieces: list[bytes], problem: str) -> None:
    connection = connected(pieces)
    with pytest.raises(guest.Cut) as e:
        connection.response()
    assert str(e.value) == problem
    assert not connection.is_open


def test_looking_for_a_response_does_not_wait(connected: Answer) -> None:
    go = threading.Event()

    class Later(list[bytes]):
        def __iter__(self) -> Iterator[bytes]:
            yield b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{"
            go.wait(10)
            yield b"}"

    connection = connected(Later())
    assert not connection.has_response()
    go.set()
    assert connection.response() == (200, b"{}")
