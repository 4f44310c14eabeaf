"""What every test may use."""

import os
import runpy
import signal
import time
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.weaker_wall import no_agent

from hatchway.core.errors import SandboxUnavailable
from hatchway.sandboxes.jail import JailSandbox
from hatchway.sandboxes.process.inside.tree import children
from hatchway.testing.postgres import Postgres, postgres_server

WEB: dict[str, Any] = runpy.run_path(str(Path(__file__).parent / "web" / "server.py"))
SHARING: dict[str, Any] = runpy.run_path(str(Path(__file__).parent / "engine" / "sharing.py"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a shell's background jobs, and whatever they start
    signal.signal(signal.SIGINT, signal.default_int_handler)

DYING_SECONDS = 3.0
"""How long a process that was told to end may take on a busy machine."""


@pytest.fixture(scope="module", autouse=True)
def nothing_stays() -> Iterator[None]:
    """Fails the last test of a file that leaves a process behind: set up first, it comes last, when all was closed.

    Not each test by itself: a sandbox that a whole file shares starts workers when it needs them, and keeps them.
    """
    before = set(children(os.getpid()))
    yield
    deadline = time.monotonic() + DYING_SECONDS
    while (left := _strangers(before)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not left, f"a test of this file left processes behind: {left}"


@pytest.fixture(scope="session")
def agent_jail() -> None:
    """What an agent's code runs in; skips where there is none."""
    if why := no_agent():
        pytest.skip(why)


def _strangers(before: set[int]) -> dict[int, str]:
    """The children that were not there before, with their command lines."""
    new = {pid: _command(pid) for pid in set(children(os.getpid())) - before}
    return {pid: " ".join(command) for pid, command in new.items() if command and not _is_kept(command)}


def _command(pid: int) -> list[str]:
    """Empty for a process that is gone or waits to be reaped."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def _is_kept(command: list[str]) -> bool:
    """Whether it outlives a test on purpose: the database of the whole run, and what starts programs of executors."""
    is_starter = command[-1] == "" and command[-3].endswith("process/inside/__main__.py")
    return Path(command[0]).name == "postgres" or is_starter


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio."""
    return "asyncio"


@cache
def _is_root_without_namespaces() -> bool:
    return os.geteuid() == 0 and JailSandbox.probe().tier == "landlock"


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """As pytest makes it; open to all where root's code runs as a uid of its own and sees the folder itself."""
    if _is_root_without_namespaces():
        for folder in (tmp_path, *tmp_path.parents[:3]):
            folder.chmod(0o777)
    return tmp_path


@pytest.fixture
def web() -> Iterator[Any]:
    """A web server on loopback: `url`, `target` (host and port), `seen` (what it was sent)."""
    with WEB["serving"](secure=False) as server:
        yield server


@pytest.fixture
def secure_web() -> Iterator[Any]:
    """As `web`, with TLS; `trusts` is what a client needs to believe it."""
    with WEB["serving"](secure=True) as server:
        yield server


@pytest.fixture(scope="session")
def private_engine(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[str]:
    """The address of a Docker engine of this run alone, shared by its workers; the default image is in it."""
    if reason := SHARING["reason_to_skip"]():
        pytest.skip(reason)
    own = tmp_path_factory.getbasetemp()
    with SHARING["engine"](own if worker_id == "master" else own.parent) as told:
        if "error" in told:
            pytest.skip(told["error"])
        yield told["host"]


@pytest.fixture
def docker_engine(private_engine: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """As `private_engine`, and it is the one that `docker` finds."""
    monkeypatch.setenv("DOCKER_HOST", private_engine)
    return private_engine


@pytest.fixture(scope="session")
def postgres() -> Generator[Postgres]:
    """A private PostgreSQL; skips where there is none."""
    try:
        with postgres_server() as server:
            yield server
    except SandboxUnavailable as e:
        pytest.skip(str(e))


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[str]:
    """Where a fresh journal can be made, on each database, with a key of the test's own."""
    monkeypatch.setenv("HATCHWAY_KEY_FILE", str(tmp_path / "key"))
    if request.param == "sqlite":
        yield str(tmp_path / "journal.db")
    else:
        server: Postgres = request.getfixturevalue("postgres")
        with server.database() as url:
            yield url


@pytest.fixture
def doomed_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """An engine of one test alone, which `docker` finds; the pid of its daemon, for a test that kills it."""
    if reason := SHARING["reason_to_skip"]():
        pytest.skip(reason)
    with SHARING["engine"](tmp_path) as told:
        if "error" in told:
            pytest.skip(told["error"])
        monkeypatch.setenv("DOCKER_HOST", told["host"])
        yield int(Path(told["host"].removeprefix("unix://")).with_name("engine.pid").read_text())


@pytest.fixture
def spans() -> Iterator[Any]:
    """What is traced while a test runs: an `InMemorySpanExporter`."""
    from opentelemetry import trace  # here: it takes longer to load than most tests to run
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):  # a process has one, and another test may have set it
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield exporter
    exporter.shutdown()  # the provider keeps it, and it takes no more
