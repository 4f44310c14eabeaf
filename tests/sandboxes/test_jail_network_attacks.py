"""What code may try with the sockets it was given. Every attack runs inside a jail; nothing of it may get out."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from hatchway import CodeMode, Limits
from hatchway.core.errors import CodeLimitError
from hatchway.mode.fetch import fetch_tool
from hatchway.sandboxes.jail import JailSandbox
from hatchway.transports.egress import connection, proxy

pytestmark = pytest.mark.anyio

INSIDE = """
import errno, socket, ssl

def dial():
    return socket.create_connection(("127.0.0.1", 3128), timeout=20)

def say(stream, data, quiet=0.4):
    try:
        stream.sendall(data)
    except OSError:
        pass
    got = b""
    stream.settimeout(10)
    try:
        while part := stream.recv(65536):
            got += part
            stream.settimeout(quiet)
    except OSError:
        pass
    return got.decode("latin-1")

def told(data, **how):
    with dial() as stream:
        return first(say(stream, data, **how))

def first(text):
    return text.partition("\\r\\n")[0]

def tunnel(target, server_name=None, quiet=0.4):
    stream = dial()
    asked = f"CONNECT {target} HTTP/1.1\\r\\nHost: {target}\\r\\n\\r\\n".encode()
    assert say(stream, asked, quiet).startswith("HTTP/1.1 200")
    stream.settimeout(20)
    context = ssl.create_default_context()
    context.check_hostname = False
    return context.wrap_socket(stream, server_hostname=server_name)

def at_once(attempt, many):
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(attempt, many))

def tried(attempt):
    try:
        return attempt()
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e))
"""


@pytest.fixture(scope="module", autouse=True)
def _usable() -> None:
    seen = JailSandbox.probe()
    if seen.tier != "namespaces":
        pytest.skip(f"{seen.reason} {seen.hint}")


def granted(*domains: Any, denied: Sequence[str] = (), **settings: Any) -> JailSandbox:
    return JailSandbox(tier="namespaces", allowed_domains=domains, denied_domains=denied, spares=0, **settings)


async def resolves_to_nothing(host: str, port: int) -> Sequence[str]:
    raise AssertionError(f"{host} was resolved")


async def connects_nowhere(address: str, port: int, timeout: float | None) -> Any:
    raise AssertionError(f"a connection to {address} was opened")


def unplugged(jail: JailSandbox, **settings: Any) -> CodeMode:
    """A mode whose requests must all be refused before anything is looked up or sent."""
    tools = [fetch_tool(jail.network, resolve=resolves_to_nothing, connect=connects_nowhere)]
    return CodeMode(jail, tools=tools, **settings)


async def output(mode: CodeMode, code: str) -> Any:
    return (await mode.run(INSIDE + dedent(code))).output


async def test_only_ipv4_streams_can_be_made() -> None:
    code = """
        kinds = [(socket.AF_UNIX, socket.SOCK_STREAM), (socket.AF_UNIX, socket.SOCK_DGRAM),
                 (socket.AF_INET, socket.SOCK_DGRAM), (socket.AF_INET, socket.SOCK_RAW),
                 (socket.AF_INET6, socket.SOCK_STREAM), (socket.AF_NETLINK, socket.SOCK_RAW),
                 (socket.AF_PACKET, socket.SOCK_RAW), (socket.AF_VSOCK, socket.SOCK_STREAM)]
        made = [tried(lambda: socket.socket(*kind)) for kind in kinds]
        made, tried(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)), socket.socket().type
    """
    async with granted("example.org") as jail, unplugged(jail) as mode:
        assert await output(mode, code) == (["EPERM"] * 8, "EPERM", 1)


async def test_nothing_can_be_served_and_odd_options_are_refused() -> None:
    code = """
        def bound():
            socket.socket().bind(("127.0.0.1", 0))
        def listened():
            socket.socket().listen()
        def sent_fast():
            return socket.socket().sendto(b"x", 0x20000000, ("127.0.0.1", 80))
        def option(level, name):
            return lambda: socket.socket().setsockopt(level, name, 1)
        [tried(attempt) for attempt in (bound, listened, sent_fast, option(6, 31), option(1, 26), option(0, 35))]
    """
    async with granted("example.org") as jail, unplugged(jail) as mode:
        found = await output(mode, code)
    assert found[:2] == ["EPERM", "EPERM"]
    assert found[2] in ("ECONNREFUSED", "EACCES", "EOPNOTSUPP", "EPERM")
    assert found[3:] == ["ENOPROTOOPT"] * 3


async def test_a_paired_socket_cannot_be_aimed_at_one_of_the_host(tmp_path: Path) -> None:
    code = """
        def fresh():
            return socket.socketpair()[0]
        def alone():
            left, right = socket.socketpair()
            right.close()
            return left
        def shut():
            left, right = socket.socketpair()
            left.shutdown(socket.SHUT_RDWR)
            return left
        def unnamed():
            left, right = socket.socketpair()
            ctypes.CDLL(None).connect(left.fileno(), b"\\0" * 16, 16)
            return left
        import ctypes
        [tried(lambda: made().connect("/input/host.sock")) for made in (fresh, alone, shut, unnamed)]
    """
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "host.sock"))
        os.chmod(tmp_path / "host.sock", 0o777)
        listener.listen()
        listener.setblocking(False)
        async with granted("example.org", workspace_root=tmp_path) as jail, unplugged(jail) as mode:
            assert await output(mode, code) == ["EISCONN"] * 4
        with pytest.raises(BlockingIOError):
            listener.accept()


async def test_the_loopback_of_the_host_and_of_other_jails_is_another_one(web: Any) -> None:
    port = web.target.partition(":")[2]
    look = "import os\nos.readlink('/proc/self/ns/net')"
    code = f"""
        [tried(lambda: socket.create_connection((host, port), timeout=2).getpeername())
         for host, port in (("127.0.0.1", {port}), ("127.0.0.1", 22), ("127.0.0.2", 3128), ("10.0.0.1", 80),
                            ("169.254.169.254", 80), ("0.0.0.0", {port}))]
    """
    async with granted("example.org") as jail, unplugged(jail) as mode:
        found = await output(mode, code)
        own = [(await mode.run(look)).output for _ in range(2)]
    assert all(kind in ("EACCES", "ECONNREFUSED", "ENETUNREACH") for kind in found), found
    assert len({*own, os.readlink("/proc/self/ns/net")}) == 3
    assert web.seen == []


REFUSED_TUNNELS = [
    ("127.0.0.1:22", "https://127.0.0.1:22 is refused: it is not among the allowed domains (example.org)"),
    ("169.254.169.254:80", "https://169.254.169.254:80 is refused: it is not among the allowed domains (example.org)"),
    ("[::1]:443", "https://::1 is refused: it is not among the allowed domains (example.org)"),
    ("2130706433:443", "https://2130706433 is refused: it is not among the allowed domains (example.org)"),
    ("sub.example.org:443", "https://sub.example.org is refused: it is not among the allowed domains (example.org)"),
    ("example.org:22", "https://example.org:22 is refused: it is not among the allowed domains (example.org)"),
    ("bad.test:443", "https://bad.test is refused: bad.test is denied"),
]


async def test_tunnels_to_what_was_not_granted_are_refused_before_anything_is_sent() -> None:
    targets = [target for target, _ in REFUSED_TUNNELS]
    code = f"""
        ask = "CONNECT %s HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n"
        at_once(told, [(ask % (target, target)).encode() for target in {targets}])
    """
    async with granted("example.org", denied=["bad.test"]) as jail, unplugged(jail) as mode:
        found = await output(mode, code)
    assert found == [f"HTTP/1.1 403 {why}" for _, why in REFUSED_TUNNELS]


async def test_names_that_lead_inside_are_refused_by_their_address() -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return {"meta.test": ["169.254.169.254"], "own.test": ["127.0.0.1"], "mixed.test": ["1.1.1.1", "10.0.0.1"]}[
            host
        ]

    code = """
        def inside(host):
            with tunnel(host + ":443", host) as stream:
                return first(say(stream, f"GET / HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n".encode()))
        [inside(host) for host in ("meta.test", "own.test", "mixed.test")]
    """
    async with granted("*.test") as jail:
        tools = [fetch_tool(jail.network, resolve=resolve, connect=connects_nowhere)]
        async with CodeMode(jail, tools=tools) as mode:
            found = await output(mode, code)
    end = "which is not a public address"
    assert found == [
        f"HTTP/1.1 403 https://meta.test is refused: it resolves to 169.254.169.254, {end}",
        f"HTTP/1.1 403 https://own.test is refused: it resolves to 127.0.0.1, {end}",
        f"HTTP/1.1 403 https://mixed.test is refused: it resolves to 10.0.0.1, {end}",
    ]


async def test_tunnel_server_name_and_host_must_agree() -> None:
    code = """
        def inside(request, server_name="a.test"):
            with tunnel("a.test:443", server_name) as stream:
                return first(say(stream, request))
        at_once(lambda attempt: attempt(), [
            lambda: told(b"GET http://a.test/ HTTP/1.1\\r\\nHost: b.test\\r\\n\\r\\n"),
            lambda: told(b"GET http://a.test/ HTTP/1.1\\r\\nHost: a.test:81\\r\\n\\r\\n"),
            lambda: told(b"CONNECT a.test:443 HTTP/1.1\\r\\nHost: b.test:443\\r\\n\\r\\n"),
            lambda: inside(b"GET / HTTP/1.1\\r\\nHost: b.test\\r\\n\\r\\n"),
            lambda: inside(b"GET / HTTP/1.1\\r\\nHost: a.test\\r\\n\\r\\n", "b.test"),
            lambda: inside(b"GET http://b.test/ HTTP/1.1\\r\\nHost: a.test\\r\\n\\r\\n"),
            lambda: inside(b"CONNECT b.test:443 HTTP/1.1\\r\\nHost: b.test:443\\r\\n\\r\\n"),
        ])
    """
    async with granted("a.test", "b.test") as jail, unplugged(jail) as mode:
        found = await output(mode, code)
    assert found == [
        "HTTP/1.1 403 http://a.test is refused: the Host header names 'b.test'",
        "HTTP/1.1 403 http://a.test is refused: the Host header names 'a.test:81'",
        "HTTP/1.1 403 https://a.test is refused: the Host header names 'b.test:443'",
        "HTTP/1.1 403 https://a.test is refused: the Host header names 'b.test'",
        "HTTP/1.1 403 https://a.test is refused: the TLS server name is 'b.test'",
        "HTTP/1.1 400 inside a tunnel the target is a path",
        "HTTP/1.1 400 there is no tunnel inside a tunnel",
    ]


MALFORMED = {
    "origin form": (b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", "400 this is a proxy"),
    "absolute https": (b"GET https://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", "400 this is a proxy"),
    "asterisk": (b"OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n", "400 this is a proxy"),
    "user name": (
        b"GET http://a.test@b.test/ HTTP/1.1\r\nHost: b.test\r\n\r\n",
        "403 'http://a.test@b.test/' is refused",
    ),
    "CONNECT without a port": (
        b"CONNECT a.test HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "400 CONNECT takes a host and a port",
    ),
    "CONNECT with a path": (b"CONNECT a.test:443/x HTTP/1.1\r\nHost: a.test\r\n\r\n", "400 CONNECT takes a host"),
    "CONNECT with a fragment": (
        b"CONNECT a.test:80#:443 HTTP/1.1\r\nHost: a.test:80\r\n\r\n",
        "400 CONNECT takes a host",
    ),
    "two hosts": (
        b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n",
        "400 the request is not valid",
    ),
    "no host": (b"GET http://a.test/ HTTP/1.1\r\n\r\n", "400 the request is not valid HTTP"),
    "trace": (b"TRACE http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", "403 http://a.test is refused: 'TRACE' is not"),
    "websocket": (
        b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        "403 an upgrade to another protocol is refused",
    ),
    "both lengths": (
        b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"0\r\n\r\n",
        "400 a request has either",
    ),
    "two lengths": (
        b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd",
        "400 the request is not valid",
    ),
    "bad chunk": (
        b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
        "400 the request is not valid",
    ),
    "odd coding": (
        b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "501 the request is not valid",
    ),
    "folded": (b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX: a\r\n b\r\n\r\n", "403"),
    "blank in a name": (
        b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX : a\r\n\r\n",
        "400 the request is not valid",
    ),
    "bare line feed in a value": (b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX: a\rb\r\n\r\n", "400 the request"),
    "nul": (b"GET http://a.test/\0 HTTP/1.1\r\nHost: a.test\r\n\r\n", "400 the request is not valid"),
    "huge header": (b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX: " + b"a" * 1_000_000 + b"\r\n\r\n", "431 "),
    "rubbish": (b"\x16\x03\x01" + os.urandom(200_000), "4"),
    "plain text in a tunnel": (b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\nGET / HTTP/1.1\r\n\r\n", "200"),
}


async def test_malformed_requests_are_answered_and_nothing_is_sent() -> None:
    async with granted(("a.test", "PATCH")) as jail:
        requests = [request for request, _ in MALFORMED.values()]
        async with unplugged(jail) as mode:
            found = (await mode.run(INSIDE + "at_once(told, requests)", inputs={"requests": requests})).output
    for (name, (_, wanted)), line in zip(MALFORMED.items(), found, strict=True):
        assert line.startswith(f"HTTP/1.1 {wanted}"), (name, line)


async def test_pipelined_requests_are_answered_in_their_order(web: Any) -> None:
    request = f"GET {web.url}/%s HTTP/1.1\\r\\nHost: {web.target}\\r\\n\\r\\n"
    code = f"""
        request = "{request}"
        with dial() as stream:
            text = say(stream, (request % "missing" + request % "" + request % "empty").encode(), quiet=1)
        import re
        re.findall(r"HTTP/1.1 (\\d+)", text)
    """
    async with granted(web.target) as jail, CodeMode(jail) as mode:
        found = await output(mode, code)
    assert found == ["404", "200", "204"]
    assert web.seen == ["GET /missing", "GET /", "GET /empty"]


async def test_what_is_smuggled_in_a_body_stays_a_body(web: Any) -> None:
    code = f"""
        inner = b"GET /smuggled HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n"
        chunked = b"%x\\r\\n%s\\r\\n0\\r\\n\\r\\n" % (len(inner), inner)
        head = b"POST {web.url}/echo HTTP/1.1\\r\\nHost: {web.target}\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n"
        told(head + chunked)
    """
    async with granted(web.target) as jail, CodeMode(jail) as mode:
        assert await output(mode, code) == "HTTP/1.1 200 OK"
    assert web.seen == ["POST /echo"]


async def test_a_client_that_asks_before_it_sends_a_body_is_told_to_go_on(web: Any) -> None:
    code = f"""
        head = (b"PUT {web.url}/echo HTTP/1.1\\r\\nHost: {web.target}\\r\\n"
                b"Content-Length: 2\\r\\nExpect: 100-continue\\r\\n\\r\\n")
        with dial() as stream:
            found = first(say(stream, head)), first(say(stream, b"hi"))
        found
    """
    async with granted(web.target) as jail, CodeMode(jail) as mode:
        assert await output(mode, code) == ("HTTP/1.1 100 ", "HTTP/1.1 200 OK")


async def test_hop_by_hop_headers_and_credentials_for_the_proxy_go_no_further(web: Any) -> None:
    code = f"""
        import json
        request = (b"GET {web.url}/echo HTTP/1.1\\r\\nHost: {web.target}\\r\\nProxy-Authorization: secret\\r\\n"
                   b"Connection: close, X-Mine\\r\\nX-Mine: 1\\r\\nTE: trailers\\r\\nX-Kept: 1\\r\\n\\r\\n")
        with dial() as stream:
            body = say(stream, request).partition("\\r\\n\\r\\n")[2]
        sorted(name.lower() for name in json.loads(body)["headers"])
    """
    async with granted(web.target) as jail, CodeMode(jail) as mode:
        assert await output(mode, code) == ["host", "x-kept"]


async def test_a_slow_guest_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "REQUEST_SECONDS", 0.3)
    monkeypatch.setattr(connection, "IDLE_SECONDS", 0.3)
    code = """
        import time
        stream = dial()
        began = time.monotonic()
        sent = 0
        try:
            stream.sendall(b"GET http://a.test/ HTTP/1.1\\r\\n")
            while sent < 100:
                stream.sendall(b"X: 1\\r\\n")
                sent += 1
                time.sleep(0.1)
        except OSError:
            pass
        sent < 100, tried(lambda: dial().recv(1))
    """
    async with granted("a.test") as jail, unplugged(jail) as mode:
        assert await output(mode, code) == (True, b"")


async def test_a_flood_of_connections_holds_nobody_else_up(web: Any) -> None:
    code = f"""
        import urllib.request
        held = []
        for _ in range(150):
            try:
                stream = dial()
                stream.settimeout(1)
                held.append(stream)
            except OSError:
                break
        for stream in held:
            stream.close()
        len(held) > 60, urllib.request.urlopen("{web.url}/").read()
    """
    async with granted(web.target) as jail, CodeMode(jail) as mode, CodeMode(jail) as other:
        flood = asyncio.create_task(output(mode, code))
        for _ in range(5):
            assert (await other.run("1 + 1")).output == 2
        assert await flood == (True, b"hello")


async def test_tunnels_that_are_never_closed_hold_few_descriptors_of_the_host(
    secure_web: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy, "CLOSE_SECONDS", 0.1)
    code = f"""
        target = "{secure_web.target}"
        request = f"GET / HTTP/1.1\\r\\nHost: {{target}}\\r\\nConnection: close\\r\\n\\r\\n".encode()
        held = []
        def hold(_):
            stream = tunnel(target, quiet=0.01)
            stream.sendall(request)
            held.append(stream)
            return stream.recv(12)
        found = set(at_once(hold, range(60)))
        wait()
        found
    """
    counted: list[int] = []

    async def wait() -> None:
        await asyncio.sleep(0.3)
        counted.append(len(os.listdir("/proc/self/fd")))

    async with granted(secure_web.target) as jail:
        tools = [wait, fetch_tool(jail.network, ssl_context=secure_web.trusts)]
        async with CodeMode(jail, tools=tools) as mode:
            before = len(os.listdir("/proc/self/fd"))
            assert await output(mode, code.replace("wait()", "await wait()")) == {b"HTTP/1.1 200"}
    assert counted[0] - before < 30


async def test_five_megabytes_of_rubbish_and_a_body_that_never_ends() -> None:
    code = """
        import os
        head = b"POST http://a.test/ HTTP/1.1\\r\\nHost: a.test\\r\\nContent-Length: 99999999999\\r\\n\\r\\n"
        told(os.urandom(5_000_000)) [:10], told(head + b"x" * 20_000_000)
    """
    async with granted("a.test") as jail, unplugged(jail) as mode:
        rubbish, endless = await output(mode, code)
    assert rubbish in ("HTTP/1.1 4", "")
    assert endless == "HTTP/1.1 413 the body is larger than 16777216 bytes"


async def test_requests_count_as_calls(web: Any) -> None:
    code = f"import urllib.request\nwhile True:\n    urllib.request.urlopen('{web.url}/').read()"
    async with granted(web.target) as jail, CodeMode(jail, limits=Limits(calls=3)) as mode:
        with pytest.raises(CodeLimitError) as over:
            await mode.run(code)
    assert over.value.limit == "calls"
    assert len(web.seen) == 3


async def test_requests_count_as_calls_also_without_a_mode(web: Any) -> None:
    code = f"import urllib.request\nwhile True:\n    urllib.request.urlopen('{web.url}/').read()"
    async with granted(web.target) as jail:
        execution = await jail.execute(code, limits=Limits(calls=3))
        with pytest.raises(CodeLimitError) as over:
            await execution.next()
    assert over.value.limit == "calls"
    assert len(web.seen) == 3


async def test_a_session_reaches_nothing_between_its_actions(web: Any) -> None:
    begin = INSIDE + dedent(
        f"""
        import threading, time, urllib.request, urllib.error
        found = []
        def late():
            time.sleep(0.4)
            try:
                urllib.request.urlopen("{web.url}/")
            except urllib.error.HTTPError as e:
                found.append(e.reason)
        thread = threading.Thread(target=late)
        thread.start()
        """
    )
    async with granted(web.target) as jail, CodeMode(jail) as mode, mode.session() as session:
        await session.run(begin)
        await asyncio.sleep(0.8)
        assert (await session.run("thread.join()\nfound")).output == ["the request is refused: no action is running"]
        again = f"urllib.request.urlopen('{web.url}/').read()"
        assert (await session.run(again)).output == b"hello"
    assert web.seen == ["GET /"]


async def test_nothing_is_left_of_a_proxy_when_its_execution_is_over(web: Any) -> None:
    code = f"import urllib.request\nkept = [urllib.request.urlopen('{web.url}/') for _ in range(3)]\nlen(kept)"
    async with granted(web.target) as jail, CodeMode(jail) as mode:
        for _ in range(5):
            await mode.run(code)
        await asyncio.sleep(0.1)
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(20):
            assert (await mode.run(code)).output == 3
        await asyncio.sleep(0.1)
        assert len(os.listdir("/proc/self/fd")) <= before
        assert not [task for task in asyncio.all_tasks() if "GuestConnection" in repr(task)]
