"""The jail's way to the network: real clients, unmodified, through the proxy; what was not granted is not reached."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import httpx
import pytest

from hatchway import CodeMode
from hatchway.core.errors import CodeRuntimeError, InvalidSetting
from hatchway.core.results import ExecutionResult
from hatchway.mode.fetch import fetch_tool
from hatchway.sandboxes.jail import JailSandbox

pytestmark = pytest.mark.anyio

SITE = Path(httpx.__file__).parents[1]
PACKAGES = ("requests", "urllib3", "idna", "certifi", "httpx", "httpcore", "h11", "anyio", "typing_extensions.py")
URLLIB = "import urllib.request, urllib.error\nreply = urllib.request.urlopen({url!r})\n"


@pytest.fixture(scope="module", autouse=True)
def _usable() -> None:
    seen = JailSandbox.probe()
    if seen.tier != "namespaces":
        pytest.skip(f"{seen.reason} {seen.hint}")


def granted(*domains: Any, **settings: Any) -> JailSandbox:
    return JailSandbox(tier="namespaces", allowed_domains=domains, spares=0, **settings)


def with_packages(*domains: Any) -> JailSandbox:
    """A jail that sees the HTTP clients of the tests' own environment."""
    mounts = [(f"{SITE}/{name}", f"/clients/{name}") for name in PACKAGES]
    return granted(*domains, file_mounts=mounts)


def mode_on(jail: JailSandbox, web: Any = None, **settings: Any) -> CodeMode:
    return CodeMode(jail, tools=[fetch_tool(jail.network, ssl_context=web and web.trusts)], **settings)


async def output(mode: CodeMode, code: str) -> Any:
    return (await mode.run(dedent(code))).output


async def test_urllib_reaches_what_was_granted(web: Any) -> None:
    async with granted(web.target) as jail, mode_on(jail) as mode:
        found = await output(
            mode, URLLIB.format(url=web.url + "/") + "reply.status, reply.read(), reply.headers.get_all('Set-Cookie')"
        )
    assert found == (200, b"hello", ["a=1; Path=/", "b=2"])
    assert web.seen == ["GET /"]


async def test_urllib_speaks_https_and_believes_the_jails_own_authority(secure_web: Any) -> None:
    async with granted(secure_web.target) as jail, mode_on(jail, secure_web) as mode:
        code = (
            URLLIB.format(url=secure_web.url + "/echo")
            + "import json\njson.load(reply)['method'], reply.headers['x-given']"
        )
        assert await output(mode, code) == ("GET", "yes")


async def test_methods_are_held_to_inside_tls(secure_web: Any) -> None:
    code = f"""
        import urllib.request, urllib.error
        request = urllib.request.Request({secure_web.url!r} + '/', data=b'x', method='DELETE')
        try:
            urllib.request.urlopen(request)
        except urllib.error.HTTPError as e:
            told = e.code, e.reason, e.headers['X-Hatchway-Refused'], e.read().decode()
        told, urllib.request.urlopen({secure_web.url!r} + '/').status
    """
    async with granted((secure_web.target, ["GET", "HEAD"])) as jail, mode_on(jail, secure_web) as mode:
        told, status = await output(mode, code)
    why = f"DELETE {secure_web.url} is refused: only GET, HEAD is allowed there"
    assert told == (403, why, why, why + "\n")
    assert status == 200
    assert secure_web.seen == ["GET /"]


async def test_requests_works_unmodified(web: Any, secure_web: Any) -> None:
    code = f"""
        import sys; sys.path.insert(0, '/clients')
        import requests
        with requests.Session() as session:
            got = [session.get({web.url!r} + '/').text, session.get({secure_web.url!r} + '/gzip').text]
            echo = session.post({secure_web.url!r} + '/echo', json={{'a': 1}}).json()
            moved = session.get({web.url!r} + '/redirect?to=/missing')
            head = session.head({secure_web.url!r} + '/big?bytes=1234')
        refused = requests.get('http://example.org/')
        try:
            requests.get('https://example.org/')
        except requests.exceptions.ProxyError as e:
            tunnel = str(e)
        (got, echo['body'], echo['method'], moved.status_code, len(moved.history), dict(session.cookies),
         head.headers['content-length'], refused.status_code, refused.text, tunnel)
    """
    async with with_packages(web.target, secure_web.target) as jail, mode_on(jail, secure_web) as mode:
        got, body, method, status, hops, cookies, length, refused, text, tunnel = await output(mode, code)
    assert (got, json.loads(body), method, status, hops) == (["hello", "packed"], {"a": 1}, "POST", 404, 1)
    assert (cookies, length) == ({"a": "1", "b": "2"}, "1234")
    listed = f"it is not among the allowed domains ({web.target}, {secure_web.target})"
    assert (refused, text) == (403, f"http://example.org is refused: {listed}\n")
    assert f"Tunnel connection failed: 403 https://example.org is refused: {listed}" in tunnel


async def test_httpx_works_unmodified_also_in_parallel(web: Any, secure_web: Any) -> None:
    code = f"""
        import sys; sys.path.insert(0, '/clients')
        import asyncio, httpx
        with httpx.Client(follow_redirects=True) as client:
            put = client.put({secure_web.url!r} + '/echo', content=b'z').json()
            sync = [client.get({web.url!r} + '/').text, put['body']]
            away = client.get({web.url!r} + '/redirect?to=http://example.org/x')
        async with httpx.AsyncClient() as client:
            many = await asyncio.gather(*(client.get({secure_web.url!r} + f'/{{n}}') for n in range(12)))
        try:
            httpx.get('https://example.org')
        except httpx.ProxyError as e:
            tunnel = str(e)
        sync, away.status_code, away.headers['x-hatchway-refused'], {{r.text for r in many}}, tunnel
    """
    async with with_packages(web.target, secure_web.target) as jail, mode_on(jail, secure_web) as mode:
        sync, status, why, many, tunnel = await output(mode, code)
    assert (sync, status, many) == (["hello", "z"], 403, {"hello"})
    assert why.startswith("http://example.org is refused: it is not among the allowed domains")
    assert tunnel.startswith("403 https://example.org is refused")
    assert sorted(secure_web.seen) == sorted(["PUT /echo", *(f"GET /{n}" for n in range(12))])


async def test_without_a_mode_the_jail_makes_the_requests_itself(web: Any) -> None:
    async with granted((web.target, "GET")) as jail:
        execution = await jail.execute(URLLIB.format(url=web.url + "/") + "reply.read()")
        result = await execution.next()
        assert isinstance(result, ExecutionResult)
        assert result.output == b"hello"
        execution = await jail.execute(f"import urllib.request\nurllib.request.urlopen({web.url!r}, data=b'x')")
        with pytest.raises(CodeRuntimeError, match=f"HTTP Error 403: POST {web.url} is refused: only GET is allowed"):
            await execution.next()
    assert web.seen == ["GET /"]


async def test_big_bodies_slow_servers_and_dead_ones(web: Any) -> None:
    code = f"""
        import urllib.request, urllib.error
        def told(url, data=None):
            try:
                return len(urllib.request.urlopen(url, data).read())
            except urllib.error.HTTPError as e:
                return e.code, e.reason
        [told({web.url!r} + '/big?bytes=3000000'), told({web.url!r} + '/big?bytes=4000001'),
         told({web.url!r} + '/', b'x' * 5000000), told({web.url!r} + '/?seconds=3'), told('http://127.0.0.1:9/')]
    """
    async with granted(web.target, "127.0.0.1:9") as jail:
        tools = [fetch_tool(jail.network, max_bytes=4_000_000, seconds=1.0)]
        async with CodeMode(jail, tools=tools) as mode:
            found = await output(mode, code)
    assert found == [
        3_000_000,
        (502, f"{web.url}/big?bytes=4000001 answered with more than 4000000 bytes"),
        (502, "the body is larger than 4000000 bytes"),
        (502, f"{web.url}/?seconds=3 took longer than 1 s"),
        (502, "http://127.0.0.1:9 cannot be reached: OSError All connection attempts failed"),
    ]


async def test_subprocesses_and_forked_children_use_the_same_proxy(web: Any) -> None:
    code = f"""
        import os, subprocess, sys
        program = "import urllib.request; print(urllib.request.urlopen({web.url!r} + '/').read())"
        done = subprocess.run([sys.executable, '-I', '-c', program], capture_output=True, text=True)
        reader, writer = os.pipe()
        if not os.fork():
            import urllib.request
            os.write(writer, urllib.request.urlopen({web.url!r} + '/').read())
            os._exit(0)
        done.stdout, os.read(reader, 99)
    """
    async with granted(web.target) as jail, mode_on(jail) as mode:
        assert await output(mode, code) == ("b'hello'\n", b"hello")


async def test_a_jail_without_a_grant_has_no_socket_and_no_sign_of_a_proxy() -> None:
    code = """
        import os, socket
        try:
            socket.socket()
        except PermissionError as e:
            told = str(e)
        told, [name for name in os.environ if 'proxy' in name.lower() or 'CERT' in name], os.path.exists('/etc/ssl')
    """
    async with JailSandbox(tier="namespaces", spares=0) as jail, CodeMode(jail) as mode:
        assert await output(mode, code) == ("[Errno 1] Operation not permitted", [], False)
        assert "def fetch" not in mode.prompt()


async def test_no_library_of_the_network_is_loaded_without_a_grant() -> None:
    code = (
        "import sys\nfrom hatchway.sandboxes.jail import JailSandbox\nJailSandbox()\n"
        "print([m for m in ('cryptography', 'httpcore2', 'h11') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("bad", ["http://x.org", "x org", "", "*", "x.org:0", ("x.org", []), 5, ("x.org",)])
def test_what_is_no_domain_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidSetting, match="is not a domain"):
        JailSandbox(allowed_domains=[bad])
    with pytest.raises(InvalidSetting, match="allowed_domains takes a list, not one entry"):
        JailSandbox(allowed_domains="x.org")
    with pytest.raises(InvalidSetting, match="denied_domains takes a list of domains"):
        JailSandbox(denied_domains=[("x.org", "GET")])  # type: ignore[list-item]


async def test_the_key_of_the_authority_is_not_in_the_jail() -> None:
    code = """
        import os
        paths = [os.path.join(folder, name) for folder, _, names in os.walk('/etc/ssl') for name in names]
        found = [open(path, 'rb').read() for path in paths]
        [b'BEGIN CERTIFICATE' in text for text in found], any(b'PRIVATE' in text for text in found)
    """
    async with granted("example.org") as jail, mode_on(jail) as mode:
        assert await output(mode, code) == ([True], False)
