"""`fetch`: offered where a sandbox was granted domains, on every backend, through the same gate as every tool."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from hatchway import CodeMode, CodeSandbox, CodeTypeError
from hatchway.core.errors import InvalidSetting
from hatchway.core.grants import AllowedDomain
from hatchway.mode.fetch import fetch_tool
from hatchway.sandboxes.jail import JailSandbox
from hatchway.sandboxes.monty import MontySandbox
from hatchway.sandboxes.process import ProcessSandbox
from hatchway.sandboxes.wall import landlock

pytestmark = pytest.mark.anyio

BACKENDS: dict[str, Any] = {
    "monty": MontySandbox,
    "process": ProcessSandbox,
    "jail": lambda **settings: JailSandbox(tier="namespaces", spares=0, **settings),
    "landlock": lambda **settings: JailSandbox(tier="landlock", spares=0, python=_open_python(), **settings),
}


def _open_python() -> str | None:
    """For root the code runs as a uid that must be let through to its interpreter."""
    real = os.path.realpath(getattr(sys, "_base_executable", sys.executable))  # not a copy in a venv
    if os.geteuid() != 0 or all(p.stat().st_mode & 1 for p in Path(real).parents):
        return None
    if not os.path.exists("/usr/bin/python3"):
        pytest.skip(f"{real} is closed to other users, and there is no /usr/bin/python3")
    return "/usr/bin/python3"


@pytest.fixture(params=BACKENDS)
def new(request: pytest.FixtureRequest) -> Any:
    """Makes a sandbox of one backend; a wall that cannot be built here is a skip."""
    if request.param == "jail" and (seen := JailSandbox.probe()).tier != "namespaces":
        pytest.skip(f"{seen.reason} {seen.hint}")
    if request.param == "landlock" and landlock.abi() < 6:
        pytest.skip(f"needs Landlock version 6, this kernel has {landlock.abi()}")
    return BACKENDS[request.param]


async def test_code_fetches_what_was_granted(new: Any, web: Any) -> None:
    code = f"""
r = await fetch('{web.url}/echo', method='PUT', headers={{'X-Mine': '1'}}, body='é')
g = await fetch('{web.url}/redirect?to=/gzip', headers={{'Accept-Encoding': 'identity'}})
s = await fetch('{web.url}/redirect?to=/missing', follow_redirects=False)
h = r['headers']
[r['status'], h['x-given'], h['set-cookie'], r['text'], g['status'], g['url'], s['status'], r['body']]
"""
    async with new(allowed_domains=[web.target]) as sandbox, CodeMode(sandbox) as mode:
        status, given, cookies, text, found, url, moved, body = (await mode.run(code)).output
    assert (status, given, cookies, found, url, moved) == (200, "yes", "a=1; Path=/\nb=2", 200, f"{web.url}/gzip", 302)
    assert '"method": "PUT"' in text
    assert '"X-Mine": "1"' in text
    assert body == text.encode()


async def test_a_refused_request_says_which_rule_inside_the_code(new: Any) -> None:
    code = "try:\n    await fetch('http://x.test/')\nexcept RuntimeError as e:\n    text = str(e)\ntext"
    async with new(allowed_domains=["y.test"]) as sandbox, CodeMode(sandbox) as mode:
        text = (await mode.run(code)).output
    assert text.endswith("http://x.test is refused: it is not among the allowed domains (y.test)")


@pytest.mark.parametrize(
    "form", ["127.0.0.1:{port}", ("127.0.0.1:{port}", "get"), AllowedDomain("127.0.0.1:{port}", ("GET",))]
)
async def test_all_three_forms_grant(new: Any, web: Any, form: Any) -> None:
    port = web.target.partition(":")[2]
    entry = form.format(port=port) if isinstance(form, str) else type(form)(*_filled(form, port))
    async with new(allowed_domains=[entry]) as sandbox, CodeMode(sandbox) as mode:
        assert (await mode.run(f"(await fetch('{web.url}/'))['status']")).output == 200


def _filled(form: Any, port: str) -> Any:
    pair = (form[0].format(port=port), form[1])
    return pair if isinstance(form, AllowedDomain) else (pair,)


async def test_denied_domains_win(new: Any, web: Any) -> None:
    code = f"try:\n    await fetch('{web.url}/')\nexcept RuntimeError as e:\n    text = str(e)\ntext"
    async with new(allowed_domains=[web.target], denied_domains=["127.0.0.1"]) as sandbox, CodeMode(sandbox) as mode:
        text = (await mode.run(code)).output
    assert text.endswith(f"{web.url} is refused: 127.0.0.1 is denied")
    assert web.seen == []


async def test_https_and_the_certificate_is_checked(new: Any, secure_web: Any) -> None:
    code = f"try:\n    r = (await fetch('{secure_web.url}/'))['status']\nexcept RuntimeError as e:\n    r = str(e)\nr"
    async with new(allowed_domains=[secure_web.target]) as sandbox:
        trusting = fetch_tool(sandbox.network, ssl_context=secure_web.trusts)
        async with CodeMode(sandbox, tools=[trusting]) as mode, CodeMode(sandbox) as strict:
            assert (await mode.run(code)).output == 200
            assert "CERTIFICATE_VERIFY_FAILED" in (await strict.run(code)).output


async def test_the_prompt_tells_what_is_allowed(new: Any) -> None:
    async with new(allowed_domains=["y.test", ("z.test", ["GET", "HEAD"])]) as sandbox, CodeMode(sandbox) as mode:
        prompt = mode.prompt()
    assert 'async def fetch(url: str, method: str = "GET"' in prompt
    assert "Allowed: y.test, z.test (GET, HEAD)." in prompt
    assert ("`urllib` and other HTTP clients reach" in prompt) == (
        sandbox.name == "jail" and sandbox.tier != "landlock"
    )


async def test_code_is_checked_against_the_stub_of_fetch() -> None:
    async with MontySandbox(allowed_domains=["y.test"]) as sandbox, CodeMode(sandbox, type_check=True) as mode:
        with pytest.raises(CodeTypeError):
            await mode.run("await fetch(5)")
        with pytest.raises(CodeTypeError):
            await mode.run("(await fetch('http://x.test/'))['nothing']")


async def test_no_fetch_without_a_grant_and_an_own_one_wins(new: Any) -> None:
    async def fetch(url: str) -> str:
        return f"mine: {url}"

    async with new() as sandbox:
        assert CodeMode(sandbox).tools == {}
    async with new(allowed_domains=["y.test"]) as sandbox, CodeMode(sandbox, tools=[fetch]) as mode:
        assert (await mode.run("await fetch('u')")).output == "mine: u"


async def test_the_landlock_tier_has_no_sockets_whatever_was_granted() -> None:
    if landlock.abi() < 6:
        pytest.skip(f"needs Landlock version 6, this kernel has {landlock.abi()}")
    code = (
        "import os, socket\ntry:\n    socket.socket()\nexcept OSError as e:\n    text = str(e)\n"
        "text, 'http_proxy' in os.environ"
    )
    async with BACKENDS["landlock"](allowed_domains=["y.test"]) as sandbox, CodeMode(sandbox) as mode:
        assert (await mode.run(code)).output == ("[Errno 1] Operation not permitted", False)
        assert not sandbox.constraints.network


@pytest.mark.parametrize("bad", ["http://x.org", "x org", "", "*", "x.org:0", ("x.org", []), ("x.org", "GET /"), 5, ()])
def test_what_is_no_domain_is_refused(bad: Any) -> None:
    for kind in (MontySandbox, ProcessSandbox, JailSandbox):
        with pytest.raises(InvalidSetting, match=r"is not a domain|are not HTTP methods"):
            kind(allowed_domains=[bad])


def test_a_sandbox_knows_what_it_grants(new: Any) -> None:
    sandbox: CodeSandbox = new(
        allowed_domains=["GitHub.com.", ("*.Example.org:8443", "get")], denied_domains=["x.github.com"]
    )
    assert sandbox.network.domains() == (AllowedDomain("github.com"), AllowedDomain("*.example.org:8443", ("GET",)))
