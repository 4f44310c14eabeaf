"""What every test may use."""

import os
import runpy
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hatchway.core.errors import SandboxUnavailable
from hatchway.sandboxes.jail import JailSandbox
from hatchway.testing.postgres import Postgres, postgres_server

WEB: dict[str, Any] = runpy.run_path(str(Path(__file__).parent / "web" / "server.py"))
SHARING: dict[str, Any] = runpy.run_path(str(Path(__file__).parent / "engine" / "sharing.py"))


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
