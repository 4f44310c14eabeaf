"""A plain interpreter that has nothing but the transport's `stub_code` and two environment variables."""

import asyncio
import inspect
import itertools
import random
import shutil
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hatchway.core.calls import FunctionCall, FunctionSignature
from hatchway.core.errors import CodeRuntimeError, CodeSyntaxError, ToolDenied, TransportError
from hatchway.core.transport import Completed, Failed, Idle, TransportConfig
from hatchway.transports.http import HttpCallbackTransport
from hatchway.transports.http.stub import program

pytestmark = pytest.mark.anyio


def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    raise NotImplementedError


FUNCTIONS = [
    FunctionSignature(
        name="add",
        parameters=inspect.signature(add),
        stub='def add(a: int, b: int = 2) -> int:\n    """Add two numbers."""\n    ...',
    ),
    FunctionSignature(name="fetch", is_async=True),
    FunctionSignature(name="files.read", parameters=inspect.signature(lambda path, *, limit=10: None)),
]


class Run:
    """A program under way."""

    def __init__(self, transport: HttpCallbackTransport, process: asyncio.subprocess.Process) -> None:
        self.transport, self.process = transport, process
        self.calls: list[FunctionCall] = []

    async def serve(self, answer: Callable[[FunctionCall], Any]) -> Completed | Failed:
        """Answer each call as it comes, until the code ends."""
        while True:
            match await self.transport.receive():
                case FunctionCall() as call:
                    self.calls.append(call)
                    try:
                        await self.transport.send_result(answer(call), call_id=call.call_id)
                    except ArithmeticError as e:
                        await self.transport.send_error(e, call_id=call.call_id)
                case Idle():
                    pass
                case Completed() | Failed() as end:
                    return end

    async def printed(self) -> str:
        assert self.process.stdout is not None
        return (await self.process.stdout.read()).decode()


Source = Callable[[TransportConfig], str]


def whole(code: str) -> Source:
    return lambda config: program(config, code)


def below(code: str) -> Source:
    """As a sandbox that knows nothing of ours would do it."""
    return lambda config: config.stub_code + "\n" + code


@asynccontextmanager
async def running(
    source: Source, *, python: str = sys.executable, proxy: "Proxy | None" = None, env: Any = None, **settings: Any
) -> AsyncIterator[Run]:
    transport = HttpCallbackTransport(**settings, public_url=proxy.url if proxy else None)
    config = await transport.start(FUNCTIONS)
    if proxy is not None:
        proxy.target = transport.port
    process = await asyncio.create_subprocess_exec(
        python,
        *("-I", "-W", "error", "-c", source(config)),
        env={**config.env_vars, **(env or {})},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        yield Run(transport, process)
    finally:
        await transport.stop()
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_calls_errors_and_completion_one_after_the_other() -> None:
    code = """
weather = add(1, b=2)
try:
    add(1, 0)
except ZeroDivisionError as e:
    caught = str(e)
try:
    files.read("x", limit=1)
except ToolDenied as e:
    denied = str(e)
_hatchway_complete({"weather": weather, "caught": caught, "denied": denied})
"""
    async with running(below(code)) as run:
        call = await run.transport.wait_for_call()
        assert (call.function_name, call.args, call.kwargs) == ("add", (1,), {"b": 2})
        await run.transport.send_result({"temp": 20})
        call = await run.transport.wait_for_call()
        assert (call.function_name, call.args, call.kwargs) == ("add", (1, 0), {})
        await run.transport.send_error(ZeroDivisionError("zero"))
        call = await run.transport.wait_for_call()
        assert (call.function_name, call.args, call.kwargs) == ("files.read", ("x",), {"limit": 1})
        await run.transport.send_error(ToolDenied("not today"))
        result = await run.transport.wait_for_completion()
        assert result.output == {"weather": {"temp": 20}, "caught": "zero", "denied": "not today"}
        assert await run.process.wait() == 0
        assert await run.printed() == ""


async def test_the_value_of_the_last_expression() -> None:
    async with running(whole("x = add(1)\nprint('hello')\n[x, {1}]")) as run:
        assert await run.serve(lambda call: 3) == Completed([3, {1}])
        assert await run.process.wait() == 0
        assert await run.printed() == "hello\n"


async def test_tools_have_signatures_and_docstrings() -> None:
    code = """
import inspect, os
{
    "add": str(inspect.signature(add)), "doc": add.__doc__, "repr": repr(add),
    "read": str(inspect.signature(files.read)), "env": sorted(os.environ),
    "async": inspect.iscoroutinefunction(fetch),
}
"""
    async with running(whole(code)) as run:
        end = await run.serve(lambda call: None)
        assert isinstance(end, Completed)
        assert end.output["add"] == "(a: 'int', b: 'int' = 2) -> 'int'"
        assert end.output["doc"] == "Add two numbers."
        assert end.output["repr"] == "<tool add(a: int, b: int = 2) -> int>"
        assert end.output["read"] == "(path, *, limit=10)"
        assert not [name for name in end.output["env"] if name.startswith("HATCHWAY")]


async def test_a_lone_call_says_that_nothing_else_can_go_on() -> None:
    async with running(whole("add(1)\nadd(2)")) as run:
        for answers in range(2):
            assert isinstance(await run.transport.receive(), FunctionCall)
            assert await run.transport.receive() == Idle(answers)
            await run.transport.send_result(None)
        assert await run.transport.receive() == Completed(None)


async def test_gathered_calls_are_all_there_before_one_is_answered() -> None:
    code = "import asyncio\nawait asyncio.gather(*(fetch(i) for i in range(100)))"
    async with running(whole(code)) as run:
        calls = [await run.transport.receive() for _ in range(100)]
        assert [call.args for call in calls if isinstance(call, FunctionCall)] == [(i,) for i in range(100)]
        assert await run.transport.receive() == Idle(0)
        for call in reversed(calls):
            assert isinstance(call, FunctionCall)
            await run.transport.send_result(call.args[0] * 2, call_id=call.call_id)
        assert (await run.transport.wait_for_completion()).output == [i * 2 for i in range(100)]


async def test_a_program_with_an_event_loop_of_its_own() -> None:
    code = """
import asyncio
async def main():
    slow = asyncio.create_task(fetch("slow"))
    for i in range(5):
        await fetch(i)
    return await slow
_hatchway_complete(asyncio.run(main()))
"""
    async with running(below(code)) as run:
        slow = ""
        for _ in range(6):
            call = await run.transport.wait_for_call()
            if call.args == ("slow",):
                slow = call.call_id
            else:
                await run.transport.send_result(None, call_id=call.call_id)
        await run.transport.send_result("at last", call_id=slow)
        assert (await run.transport.wait_for_completion()).output == "at last"


async def test_fifty_threads() -> None:
    code = """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(50) as pool:
    out = list(pool.map(add, range(50)))
out
"""
    async with running(whole(code)) as run:
        calls = [await run.transport.wait_for_call() for _ in range(50)]
        for call in calls:
            await run.transport.send_result(call.args[0] + 1, call_id=call.call_id)
        assert (await run.transport.wait_for_completion()).output == list(range(1, 51))


@pytest.mark.parametrize("source", [below, whole])
async def test_an_error_in_the_code_is_told_with_its_own_line_numbers(source: Callable[[str], Source]) -> None:
    async with running(source("def f():\n    return add(1) / 0\n\nf()\n")) as run:
        call = await run.transport.wait_for_call()
        await run.transport.send_result(1, call_id=call.call_id)
        with pytest.raises(CodeRuntimeError) as e:
            await run.transport.wait_for_completion()
        lines = e.value.message.splitlines()
        shown = [line.partition(", ")[2] for line in lines if line.startswith("  File")]
        assert shown == ["line 4, in <module>", "line 2, in f"]
        assert lines[-1] == "ZeroDivisionError: division by zero"
        assert await run.process.wait() == 1
        assert (await run.printed()).endswith("ZeroDivisionError: division by zero\n")


async def test_code_that_does_not_parse() -> None:
    async with running(whole("x = (")) as run:
        with pytest.raises(CodeSyntaxError, match=r"^  File \"<action>\", line 1"):
            await run.transport.wait_for_completion()


@pytest.mark.parametrize(
    ("code", "source", "end"),
    [
        ("import sys; sys.exit()", whole, Completed(None)),
        ("", whole, Completed(None)),
        (
            "import sys; sys.exit(3)",
            below,
            Failed(
                kind="runtime",
                message="the program ended without saying so: it called exit, or nothing told its output",
            ),
        ),
    ],
)
async def test_a_program_that_exits(code: str, source: Callable[[str], Source], end: Any) -> None:
    async with running(source(code)) as run:
        assert await run.serve(lambda call: None) == end


async def test_an_output_that_cannot_cross() -> None:
    async with running(whole("{'f': [object()]}")) as run:
        end = await run.serve(lambda call: None)
        assert isinstance(end, Failed)
        assert (end.kind, end.message.partition(",")[0]) == ("value", "output['f'][0] is object")


async def test_ten_megabytes_each_way() -> None:
    async with running(whole("len(add('x' * 10_000_000))")) as run:
        assert await run.serve(lambda call: call.args[0] + "y") == Completed(10_000_001)


async def test_arguments_past_the_limit_are_an_error_in_the_code() -> None:
    code = "try:\n    add('x' * 2000)\nexcept ValueError as e:\n    out = str(e)\n[out, add(1)]"
    async with running(whole(code), max_body_bytes=1500) as run:
        end = await run.serve(lambda call: 1)
        assert isinstance(end, Completed)
        assert end.output[0].startswith("add(): the arguments take ")
        assert end.output[1] == 1


async def test_a_body_the_host_refuses_is_an_error_in_the_code() -> None:
    code = "try:\n    add('x' * 1450)\nexcept RuntimeError as e:\n    out = str(e)\n[out, add(1)]"
    async with running(whole(code), max_body_bytes=1500) as run:
        end = await run.serve(lambda call: 1)
        assert isinstance(end, Completed)
        assert end.output[0].startswith("the host refused a message (HTTP 413): the body has 15")


async def test_a_fork_does_not_speak_for_its_parent() -> None:
    code = """
import os
child = os.fork()
if child == 0:
    try:
        add(1)
    except RuntimeError:
        os._exit(7)
status = os.waitpid(child, 0)[1]
[os.WEXITSTATUS(status), add(2)]
"""
    async with running(whole(code)) as run:
        assert await run.serve(lambda call: call.args[0]) == Completed([7, 2])
        assert len(run.calls) == 1


async def test_a_call_that_waits_is_asked_for_again_and_again() -> None:
    code = "import asyncio\n[add(1), await asyncio.gather(fetch(2), fetch(3))]"
    async with running(whole(code), poll_seconds=0.05) as run:
        for _ in range(3):
            call = await run.transport.wait_for_call()
            await asyncio.sleep(0.3)
            await run.transport.send_result(call.args[0], call_id=call.call_id)
        assert (await run.transport.wait_for_completion()).output == [1, [2, 3]]


async def test_a_restarted_server_is_found_again() -> None:
    code = "import asyncio\n[add(1), await asyncio.gather(fetch(2), fetch(3))]"
    async with running(whole(code)) as run:
        call = await run.transport.wait_for_call()
        await run.transport.restart()
        await run.transport.send_result("one", call_id=call.call_id)
        two, three = await run.transport.wait_for_call(), await run.transport.wait_for_call()
        await run.transport.restart()
        await run.transport.send_result("three", call_id=three.call_id)
        await run.transport.restart()
        await run.transport.send_result("two", call_id=two.call_id)
        assert (await run.transport.wait_for_completion()).output == ["one", ["two", "three"]]


async def test_a_stopped_host_ends_the_call() -> None:
    async with running(whole("add(1)")) as run:
        await run.transport.wait_for_call()
        await run.transport.stop()
        assert "EOFError: the host has ended this execution" in await run.printed()


async def test_a_host_that_stays_away_is_given_up() -> None:
    def impatient(config: TransportConfig) -> str:
        return program(config, "add(1)").replace("GIVE_UP_SECONDS = 60.0", "GIVE_UP_SECONDS = 0.3")

    async with proxied(itertools.repeat((0, "refuse"))) as proxy, running(impatient, proxy=proxy) as run:
        assert "HostUnreachable: the host cannot be reached: " in await run.printed()


async def test_a_wrong_token_is_not_retried() -> None:
    def mistaken(config: TransportConfig) -> str:
        return "import os\nos.environ['HATCHWAY_CALLBACK_TOKEN'] = 'wrong'\n" + program(config, "add(1)")

    async with running(mistaken) as run:
        printed = await run.printed()
        assert "the host refused a message (HTTP 401): the bearer token is missing or wrong" in printed


async def test_the_oldest_python_a_guest_may_have() -> None:
    found = shutil.which("python3.9")
    if found is None:
        pytest.skip("no python3.9 on PATH")
    ran = subprocess.run([found, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True)
    if ran.returncode:
        pytest.skip(f"{found} does not run")
    python = ran.stdout.strip()
    code = "import asyncio\n[add(1), await asyncio.gather(fetch(2), fetch(3))]"
    async with running(whole(code), python=python) as run:
        assert await run.serve(lambda call: call.args[0]) == Completed([1, [2, 3]])


class Proxy:
    """Stands between guest and host, and does to each connection what its plan says."""

    def __init__(self, plan: Iterable[tuple[int, str]]) -> None:
        self.plan = iter(plan)
        self.faults = 0
        self.target = 0
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        skip, fault = next(self.plan, (0, "none"))
        try:
            if fault == "refuse":
                self.faults += 1
            else:
                await self._forward(skip, fault, reader, writer)
        except OSError:
            pass
        finally:
            writer.close()

    async def _forward(self, skip: int, fault: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        theirs, host = await asyncio.open_connection("127.0.0.1", self.target)
        ways = [
            asyncio.create_task(self._copy(reader, host, skip, {"half a head": 30, "half a body": 250}.get(fault))),
            asyncio.create_task(self._copy(theirs, writer, skip, {"no answer": 0, "half an answer": 40}.get(fault))),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            host.close()

    async def _copy(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, skip: int, limit: int | None
    ) -> None:
        """Copy; with a limit, only so many bytes of the piece after the first `skip` ones, and then no more."""
        while data := await reader.read(100_000):
            is_cut = limit is not None and skip == 0
            skip -= 1
            writer.write(data[:limit] if is_cut else data)
            await writer.drain()
            if is_cut:
                self.faults += 1
                return


@asynccontextmanager
async def proxied(plan: Iterable[tuple[int, str]] = (), tls: ssl.SSLContext | None = None) -> AsyncIterator[Proxy]:
    proxy = Proxy(plan)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, ssl=tls)
    scheme, port = "https" if tls else "http", server.sockets[0].getsockname()[1]
    proxy.url = f"{scheme}://127.0.0.1:{port}"
    try:
        yield proxy
    finally:
        server.close()
        await server.wait_closed()


FAULTS = ["refuse", "half a head", "half a body", "no answer", "half an answer"]


@pytest.mark.parametrize("fault", FAULTS)
async def test_each_fault_is_survived_and_the_host_sees_one_call(fault: str) -> None:
    async with proxied([(0, fault)]) as proxy, running(whole("add(1, b='x' * 300)"), proxy=proxy) as run:
        assert await run.serve(lambda call: "y" * 300) == Completed("y" * 300)
        assert (len(run.calls), proxy.faults) == (1, 1)


@pytest.mark.parametrize("seed", range(3))
async def test_a_line_that_keeps_breaking(seed: int) -> None:
    code = """
import asyncio
from concurrent.futures import ThreadPoolExecutor
out = [add(i) for i in range(5)]
out += await asyncio.gather(*(fetch(i) for i in range(5, 15)))
with ThreadPoolExecutor(5) as pool:
    out += pool.map(add, range(15, 20))
out
"""
    chance = random.Random(seed)
    plan = ((chance.randrange(3), chance.choice(FAULTS)) for _ in range(12))
    async with proxied(plan) as proxy, running(whole(code), proxy=proxy) as run:
        assert await run.serve(lambda call: call.args[0] * 10) == Completed([i * 10 for i in range(20)])
        assert sorted(call.args[0] for call in run.calls) == list(range(20))
        assert proxy.faults > 3


async def test_through_a_proxy_that_speaks_tls(tmp_path: Path) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl to make a certificate with")
    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "certificate.pem")
    ask = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate]
    subprocess.run([openssl, *ask.split(), *names], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    code = """
import asyncio
async def later():
    await asyncio.sleep(0.1)
    return await fetch("second")
[add("x" * 200_000), await asyncio.gather(fetch("first"), later())]
"""
    async with proxied(tls=tls) as proxy:
        async with running(whole(code), proxy=proxy, env={"SSL_CERT_FILE": certificate}) as run:
            call = await run.transport.wait_for_call()
            await run.transport.send_result(call.args[0], call_id=call.call_id)
            first, second = await run.transport.wait_for_call(), await run.transport.wait_for_call()
            assert second.args == ("second",)
            for call in (second, first):
                await run.transport.send_result(call.args[0], call_id=call.call_id)
            end = await run.transport.wait_for_completion()
            assert end.output == ["x" * 200_000, ["first", "second"]]
        async with running(whole("add(1)"), proxy=proxy) as run:
            assert "the host's certificate is not trusted: " in await run.printed()


async def test_a_violation_by_the_code_ends_its_execution() -> None:
    code = "add.__self__ if False else None\nadd._exchange.channel.send(b'nonsense\\n')"
    async with running(whole(code)) as run:
        with pytest.raises(TransportError, match=r"^a message is not readable: "):
            await run.transport.receive()
