"""The HTTP callback transport against real sockets: its endpoints, ids asked for again, limits, restart."""

import asyncio
import http.client
import json
import socket
import urllib.request
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hatchway.core.calls import FunctionCall
from hatchway.core.errors import (
    CodeRuntimeError,
    CodeSyntaxError,
    InvalidSetting,
    ToolDenied,
    TransportError,
    ValueNotPortable,
)
from hatchway.core.transport import Completed, Failed, Idle
from hatchway.transports.http import TOKEN_VARIABLE, URL_VARIABLE, HttpCallbackTransport
from hatchway.transports.http import calls as http_calls
from hatchway.transports.http import exchange as http_exchange
from hatchway.transports.http import inbox as http_inbox

pytestmark = pytest.mark.anyio

TEN_MB = 10 * 1024 * 1024


class Guest:
    """Posts what a test tells it to."""

    def __init__(self, transport: HttpCallbackTransport, env_vars: Any) -> None:
        self.transport = transport
        self.url, self.token = env_vars[URL_VARIABLE], env_vars[TOKEN_VARIABLE]
        self.port = int(self.url.rpartition(":")[2])
        self.threads = ThreadPoolExecutor(50)

    def post_now(self, path: str, body: Any) -> tuple[int, Any]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request("POST", path, data, {"Authorization": f"Bearer {self.token}"})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def post(self, path: str, body: Any) -> asyncio.Future[tuple[int, Any]]:
        return asyncio.get_running_loop().run_in_executor(self.threads, self.post_now, path, body)

    async def begin(self, path: str, body: Any, *, send: int | None = None) -> asyncio.StreamWriter:
        """Send a request, or its first bytes, and leave the rest to the test."""
        data = json.dumps(body).encode()
        headers = f"Host: a\r\nAuthorization: Bearer {self.token}\r\nContent-Length: {len(data)}"
        head = f"POST {path} HTTP/1.1\r\n{headers}\r\n\r\n"
        _, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write((head.encode() + data)[:send])
        await writer.drain()
        return writer


@asynccontextmanager
async def started(**settings: Any) -> AsyncIterator[Guest]:
    transport = HttpCallbackTransport(**settings)
    guest = Guest(transport, (await transport.start(["add"])).env_vars)
    try:
        yield guest
    finally:
        await transport.stop()
        guest.threads.shutdown()


def call(call_id: str = "1", name: str = "add", *args: Any, **kwargs: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "function_name": name, "args": args, "kwargs": kwargs}


async def nothing_more(transport: HttpCallbackTransport) -> bool:
    try:
        await asyncio.wait_for(transport.receive(), 0.1)
    except TimeoutError:
        return True
    return False


async def test_a_call_is_held_open_until_it_is_answered() -> None:
    async with started() as guest:
        response = guest.post("/call", call("1", "add", 1, b=2))
        assert await guest.transport.receive() == FunctionCall(
            call_id="1", function_name="add", args=(1,), kwargs={"b": 2}
        )
        await asyncio.sleep(0.1)
        assert not response.done()
        await guest.transport.send_result({"sum": (3,)})
        assert await response == (200, {"result": {"sum": {"$": "tuple", "v": [3]}}})


async def test_an_error_is_the_answer_too() -> None:
    async with started() as guest:
        for call_id, error, kind, message in (
            ("1", ToolDenied("no"), "ToolDenied", "no"),
            ("2", ZeroDivisionError("by zero"), "ZeroDivisionError", "by zero"),
            ("3", KeyError("k"), "KeyError", "k"),
        ):
            response = guest.post("/call", call(call_id))
            await guest.transport.wait_for_call()
            await guest.transport.send_error(error, call_id=call_id)
            assert await response == (200, {"error": {"type": kind, "message": message}})


async def test_the_end_of_the_code() -> None:
    async with started() as guest:
        end = {"type": "execution_complete", "output": [1, {"$": "set", "v": [2]}]}
        assert await guest.post("/complete", end) == (200, {"ok": True})
        assert await guest.post("/complete", end) == (200, {"ok": True})
        assert await guest.transport.receive() == Completed([1, {2}])
        with pytest.raises(EOFError, match=r"^the code has ended$"):
            await guest.transport.receive()
        status, body = await guest.post("/call", call())
        assert (status, body["error"]["message"]) == (410, "this execution has ended")
        status, _ = await guest.post("/complete", {"type": "execution_complete", "output": 2})
        assert status == 410


@pytest.mark.parametrize(
    ("kind", "error"), [("syntax", CodeSyntaxError), ("runtime", CodeRuntimeError), ("value", CodeRuntimeError)]
)
async def test_the_code_failed(kind: str, error: type[Exception]) -> None:
    async with started() as guest:
        await guest.post("/complete", {"type": "execution_failed", "kind": kind, "message": "Trace"})
        with pytest.raises(error, match=r"^Trace$"):
            await guest.transport.wait_for_completion()


async def test_a_guest_of_the_plain_form_needs_no_ids() -> None:
    def program(url: str, token: str) -> Any:
        def call_host(name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
            payload = {"type": "function_call", "function_name": name, "args": args, "kwargs": kwargs}
            return post("/call", payload)["result"]

        def post(path: str, payload: Any) -> Any:
            headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
            request = urllib.request.Request(url + path, json.dumps(payload).encode(), headers, method="POST")
            with urllib.request.urlopen(request, timeout=20) as response:
                return json.loads(response.read())

        weather = call_host("get_weather", [], {"city": "London"})
        again = call_host("get_weather", [], {"city": "London"})
        return post("/complete", {"type": "execution_complete", "output": [weather, again]})

    async with started() as guest:
        running = asyncio.create_task(asyncio.to_thread(program, guest.url, guest.token))
        for answer in ({"temp": 20}, {"temp": 21}):
            made = await guest.transport.wait_for_call()
            assert (made.function_name, made.kwargs) == ("get_weather", {"city": "London"})
            await guest.transport.send_result(answer)
        assert (await guest.transport.wait_for_completion()).output == [{"temp": 20}, {"temp": 21}]
        assert await running == {"ok": True}


async def test_a_call_asked_for_twice_is_one_call() -> None:
    async with started() as guest:
        first, second = guest.post("/call", call()), guest.post("/call", call())
        await guest.transport.wait_for_call()
        assert await nothing_more(guest.transport)
        await guest.transport.send_result("once")
        assert await first == await second == (200, {"result": "once"})
        assert await guest.post("/call", call()) == (200, {"result": "once"})
        assert await nothing_more(guest.transport)


async def test_a_connection_dropped_before_the_request_is_whole() -> None:
    async with started() as guest:
        for size in (10, 120, 190):
            (await guest.begin("/call", call(), send=size)).close()
        assert await nothing_more(guest.transport)
        response = guest.post("/call", call())
        await guest.transport.wait_for_call()
        await guest.transport.send_result(1)
        assert await response == (200, {"result": 1})


async def test_a_connection_dropped_while_the_host_works() -> None:
    async with started() as guest:
        writer = await guest.begin("/call", call())
        await guest.transport.wait_for_call()
        writer.close()
        await asyncio.sleep(0.05)
        response = guest.post("/call", call())
        await asyncio.sleep(0.05)
        await guest.transport.send_result("kept")
        assert await response == (200, {"result": "kept"})
        assert await nothing_more(guest.transport)


async def test_an_answer_given_while_nobody_is_connected_is_kept() -> None:
    async with started() as guest:
        writer = await guest.begin("/call", call())
        await guest.transport.wait_for_call()
        writer.close()
        await asyncio.sleep(0.05)
        await guest.transport.send_result("kept")
        assert await guest.post("/call", call()) == (200, {"result": "kept"})


async def test_a_call_that_waits_for_long_is_asked_for_again() -> None:
    async with started(poll_seconds=0.1) as guest:
        assert await guest.post("/call", call()) == (202, {"pending": True})
        assert await guest.post("/call", call()) == (202, {"pending": True})
        await guest.transport.wait_for_call()
        response = guest.post("/call", call())
        await guest.transport.send_result(1)
        assert await response == (200, {"result": 1})
        assert await guest.post("/answers", {"received": 0}) == (202, {"pending": True})


async def test_one_id_for_two_different_calls_ends_the_execution() -> None:
    async with started() as guest:
        pending = guest.post("/call", call("1", "add", 1))
        await guest.transport.wait_for_call()
        message = "the call id 1 came twice, with different calls"
        status, body = await guest.post("/call", call("1", "add", 2))
        assert (status, body["error"]["message"]) == (409, message)
        for _ in range(2):
            with pytest.raises(TransportError, match=f"^{message}$"):
                await guest.transport.receive()
        await guest.transport.stop()
        assert (await pending)[0] == 410


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/call", b"", "a message is not readable"),
        ("/call", b"{", "a message is not readable"),
        ("/call", b"[1]", "a message is not an object"),
        ("/call", b'{"call_id": "1", ', "a message is not readable"),
        ("/call", b'{"call_id": NaN}', "a message is not readable"),
        ("/call", b"\xff\xfe", "a message is not readable"),
        ("/call", b"[" * 5000 + b'"call_id"', "a message is not readable"),
        ("/call", {"type": "nonsense", "call_id": "1"}, "a message of unknown type"),
        ("/call", call("x" * 65), "a call without a proper id"),
        ("/call", call("1", ""), "a call without a proper function name"),
        ("/call", {**call(), "args": {}}, "a call without proper arguments"),
        ("/call", {**call(), "kwargs": []}, "a call without proper arguments"),
        ("/call", {**call(), "idle": -1}, "an idle claim without a proper count"),
        ("/call", {**call(), "args": [{"$": "pickle", "v": ""}]}, "a message is not readable"),
        ("/complete", b"nonsense", "a message is not readable"),
        ("/complete", {"type": "execution_failed", "kind": "x"}, "a failure without its kind or message"),
        ("/messages", b'{"type": "idle"}', "an idle message without its count"),
    ],
)
async def test_what_is_no_message_ends_the_execution(path: str, body: Any, message: str) -> None:
    async with started() as guest:
        status, answer = await guest.post(path, body)
        told = answer["error"]["message"]
        assert (status, told.partition(":")[0]) == (400, message)
        with pytest.raises(TransportError) as e:
            await guest.transport.receive()
        assert e.value.message == told


async def test_a_message_at_the_wrong_place_is_refused() -> None:
    async with started() as guest:
        status, body = await guest.post("/call", {"type": "idle", "answers": 0, "call_id": ""})
        assert (status, body["error"]["message"]) == (400, "only calls are posted here")
        status, body = await guest.post("/answers", {"received": "all"})
        assert (status, body["error"]["message"]) == (400, 'the body has to be {"received": N}')


async def test_a_stranger_changes_nothing() -> None:
    async with started() as guest:
        token, guest.token = guest.token, "wrong"
        assert (await guest.post("/call", call()))[0] == 401
        assert (await guest.post("/complete", b"garbage"))[0] == 401
        guest.token = token
        response = guest.post("/call", call())
        await guest.transport.wait_for_call()
        await guest.transport.send_result(1)
        assert await response == (200, {"result": 1})


async def test_ten_megabytes_each_way() -> None:
    async with started() as guest:
        text, table = "x" * TEN_MB, [{"row": i, "name": f"n{i}"} for i in range(200_000)]
        response = guest.post("/call", call("1", "add", text))
        assert (await guest.transport.wait_for_call()).args == (text,)
        await guest.transport.send_result(text)
        assert await response == (200, {"result": text})
        response = guest.post("/call", call("2", "add", table))
        assert (await guest.transport.wait_for_call()).args == (table,)
        await guest.transport.send_result(table)
        assert await response == (200, {"result": table})


async def test_what_is_too_large_is_refused_and_nothing_else_is() -> None:
    async with started(max_body_bytes=1000) as guest:
        status, body = await guest.post("/call", call("1", "add", "x" * 1000))
        assert (status, body["error"]["message"]) == (413, "the body has 1093 bytes, 1000 are accepted")
        response = guest.post("/call", call())
        await guest.transport.wait_for_call()
        with pytest.raises(ValueNotPortable, match=r"^the result takes 1003 bytes on the wire, 1000 are accepted$"):
            await guest.transport.send_result("x" * 1001)
        with pytest.raises(ValueNotPortable, match=r"^result\['f'\] is function, which cannot cross"):
            await guest.transport.send_result({"f": call})
        await guest.transport.send_result("still pending")
        assert await response == (200, {"result": "still pending"})


async def test_answers_name_their_call() -> None:
    async with started() as guest:
        with pytest.raises(ValueError, match=r"^0 calls are pending: say which by call_id$"):
            await guest.transport.send_result(1)
        responses: list[Any] = []
        for i in "12":
            responses.append(guest.post("/call", call(i)))
            await guest.transport.wait_for_call()
        with pytest.raises(ValueError, match=r"^2 calls are pending: say which by call_id$"):
            await guest.transport.send_result(1)
        with pytest.raises(ValueError, match=r"^no pending call '3'\npending are 1, 2$"):
            await guest.transport.send_error(ValueError(), call_id="3")
        for i in "21":
            await guest.transport.send_result(i, call_id=i)
        assert [await r for r in responses] == [(200, {"result": "1"}), (200, {"result": "2"})]
        with pytest.raises(ValueError, match=r"^no pending call '1'\npending are none$"):
            await guest.transport.send_result(1, call_id="1")


async def test_many_calls_in_one_request_and_their_answers_in_batches() -> None:
    async with started() as guest:
        lines = [json.dumps(call(str(i))) for i in range(3)]
        lines[-1] = lines[-1][:-1] + ', "idle": 0}'
        body = "\n".join(lines).encode()
        assert await guest.post("/messages", body) == (200, {"ok": True})
        assert await guest.post("/messages", body) == (200, {"ok": True})
        said = [await guest.transport.receive() for _ in range(4)]
        assert [c.call_id for c in said if isinstance(c, FunctionCall)] == ["0", "1", "2"]
        assert said[-1] == Idle(0)
        assert await nothing_more(guest.transport)
        waiting = guest.post("/answers", {"received": 0})
        await asyncio.sleep(0.1)
        await guest.transport.send_result("b", call_id="1")
        await guest.transport.send_error(ValueError("a"), call_id="0")
        first = {"type": "result", "call_id": "1", "value": "b"}
        status, batch = await waiting
        assert (status, batch["answers"][0]) == (200, first)
        status, again = await guest.post("/answers", {"received": 0})
        assert [a["call_id"] for a in again["answers"]] == ["1", "0"]
        assert again["answers"][1] == {"type": "error", "call_id": "0", "error_type": "ValueError", "message": "a"}
        await guest.transport.send_result("c", call_id="2")
        status, last = await guest.post("/answers", {"received": 2})
        assert (last["received"], [a["call_id"] for a in last["answers"]]) == (3, ["2"])
        for received in (1, 4):
            assert (await guest.post("/answers", {"received": received}))[0] == 409


async def test_a_restarted_server_is_found_again_and_knows_its_calls() -> None:
    async with started() as guest:
        lost = guest.post("/call", call("1"))
        await guest.transport.wait_for_call()
        await guest.transport.restart()
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            await lost
        response, other = guest.post("/call", call("1")), guest.post("/call", call("2"))
        assert (await guest.transport.wait_for_call()).call_id == "2"
        await guest.transport.send_result("one", call_id="1")
        await guest.transport.send_result("two", call_id="2")
        assert (await response, await other) == ((200, {"result": "one"}), (200, {"result": "two"}))
        assert await nothing_more(guest.transport)


async def test_stopping_tells_everyone() -> None:
    transport = HttpCallbackTransport()
    guest = Guest(transport, (await transport.start(["add"])).env_vars)
    held, batch = guest.post("/call", call()), guest.post("/answers", {"received": 0})
    await transport.wait_for_call()
    asker = asyncio.create_task(transport.receive())
    await asyncio.sleep(0.1)
    await transport.stop()
    await transport.stop()
    over = {"type": "Gone", "message": "the transport was stopped"}
    assert await held == await batch == (410, {"error": over})
    with pytest.raises(EOFError, match=r"^the transport was stopped$"):
        await asker
    for use in (transport.receive(), transport.send_result(1), transport.restart()):
        with pytest.raises(TransportError, match=r"^the channel is not open$"):
            await use
    with pytest.raises(ConnectionRefusedError):
        guest.post_now("/call", call())


async def test_each_start_has_a_token_and_calls_of_its_own() -> None:
    transport = HttpCallbackTransport()
    tokens: set[str] = set()
    for _ in range(3):
        config = await transport.start(["add"])
        guest = Guest(transport, config.env_vars)
        assert guest.token not in config.stub_code
        tokens.add(guest.token)
        response = guest.post("/call", call())
        await transport.wait_for_call()
        await transport.send_result(1)
        assert await response == (200, {"result": 1})
        with pytest.raises(TransportError, match=r"^this transport already serves an execution"):
            await transport.start([])
        await transport.stop()
    assert len(tokens) == 3
    assert min(map(len, tokens)) >= 43


async def test_fifty_calls_at_once() -> None:
    async with started() as guest:
        responses = [guest.post("/call", call(str(i), "add", i)) for i in range(50)]
        calls = [await guest.transport.wait_for_call() for _ in responses]
        for made in reversed(calls):
            await guest.transport.send_result(made.args[0] * 2, call_id=made.call_id)
        assert [await r for r in responses] == [(200, {"result": i * 2}) for i in range(50)]


async def test_a_guest_that_floods_is_told_to_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_inbox, "MAX_MESSAGES", 2)
    async with started() as guest:
        held = [guest.post("/call", call(str(i))) for i in range(2)]
        await asyncio.sleep(0.2)
        status, body = await guest.post("/call", call("2"))
        assert (status, body["error"]["message"]) == (503, "the host has not caught up: try again later")
        await guest.transport.wait_for_call()
        held.append(guest.post("/call", call("2")))
        for _ in range(2):
            await guest.transport.wait_for_call()
        for i in "012":
            await guest.transport.send_result(i, call_id=i)
        assert [(await h)[0] for h in held] == [200, 200, 200]


async def test_answers_nobody_collects_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_exchange, "MAX_UNCOLLECTED_BYTES", 100)
    async with started() as guest:
        assert (await guest.post("/messages", call()))[0] == 200
        await guest.transport.wait_for_call()
        sending = asyncio.create_task(guest.transport.send_result("x" * 200))
        await asyncio.sleep(0.05)
        assert not sending.done()
        _, batch = await guest.post("/answers", {"received": 0})
        assert not sending.done()
        asking = guest.post("/answers", {"received": batch["received"]})
        await asyncio.wait_for(sending, 5)
        await guest.transport.stop()
        assert (await asking)[0] == 410


async def test_answers_already_handed_out_are_kept_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_calls, "KEPT_ANSWERS", 2)
    async with started() as guest:
        for i in "123":
            response = guest.post("/call", call(i))
            await guest.transport.wait_for_call()
            await guest.transport.send_result(i)
            assert await response == (200, {"result": i})
        assert await guest.post("/call", call("3")) == (200, {"result": "3"})
        assert await guest.post("/call", call("2")) == (200, {"result": "2"})
        status, body = await guest.post("/call", call("1"))
        assert (status, body["error"]["message"]) == (
            404,
            "this call was answered long ago; the answer is no longer kept",
        )
        assert await nothing_more(guest.transport)


async def test_an_address_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(TransportError) as e:
            await HttpCallbackTransport(port=port).start([])
        assert str(e.value) == f"cannot listen on 127.0.0.1:{port}: Address already in use\nport=0 picks a free one"


async def test_an_address_of_another_machine() -> None:
    with pytest.raises(TransportError) as e:
        await HttpCallbackTransport(host="192.0.2.1").start([])
    assert e.value.message == "cannot listen on 192.0.2.1:0: Cannot assign requested address"
    assert e.value.hint == "host= has to be an address of this machine"


async def test_a_public_url_is_what_the_guest_is_told() -> None:
    transport = HttpCallbackTransport(host="0.0.0.0", public_url="https://tunnel.example/x")
    config = await transport.start([])
    assert config.env_vars[URL_VARIABLE] == "https://tunnel.example/x"
    await transport.stop()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"host": "0.0.0.0"}, "nobody can dial '0.0.0.0'"),
        ({"poll_seconds": 0}, "poll_seconds must be above 0 and at most 270, not 0"),
        ({"poll_seconds": 271}, "poll_seconds must be above 0 and at most 270, not 271"),
        ({"max_body_bytes": 0}, "max_body_bytes must be positive, not 0"),
    ],
)
def test_settings_are_checked(settings: Any, message: str) -> None:
    with pytest.raises(InvalidSetting) as e:
        HttpCallbackTransport(**settings)
    assert e.value.message == message


async def test_failed_is_given_as_it_is() -> None:
    async with started() as guest:
        await guest.post("/complete", {"type": "execution_failed", "kind": "memory", "message": "M"})
        assert await guest.transport.receive() == Failed(kind="memory", message="M")
