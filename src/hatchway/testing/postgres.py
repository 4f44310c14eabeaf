"""A private PostgreSQL server for tests and benches: own folder, Unix socket only, gone at the end.

It refuses to run as root, so a root caller runs it as another user.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

from hatchway.core.errors import SandboxUnavailable

START_SECONDS = 30.0
_FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=300", "shared_buffers=32MB")
_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Postgres:
    """A running server."""

    folder: str
    """Where its socket is."""

    def url(self, database: str = "postgres") -> str:
        """Where a database of it is."""
        return f"postgresql://postgres@/{database}?host={self.folder}"

    @contextmanager
    def database(self) -> Generator[str]:
        """The URL of a fresh, empty database."""
        name = f"test_{os.getpid()}_{next(_numbers)}"
        self._run(f"CREATE DATABASE {name}")
        try:
            yield self.url(name)
        finally:
            self._run(f"DROP DATABASE {name} WITH (FORCE)")

    def _run(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(statement.encode())


@contextmanager
def postgres_server() -> Generator[Postgres]:
    """A server of this process's own.

    Raises:
        SandboxUnavailable: PostgreSQL or its driver is not installed, or there is nobody to run it as.
    """
    programs, who = _programs(), _runner()
    folder = tempfile.mkdtemp(prefix="hatchway-pg-", dir="/tmp")  # a socket's path must be short
    process: subprocess.Popen[Any] | None = None
    try:
        if who:
            os.chown(folder, pwd.getpwnam(who["user"]).pw_uid, -1)
        data = f"{folder}/data"
        initdb = [
            programs / "initdb",
            "-D",
            data,
            "-U",
            "postgres",
            "-A",
            "trust",
            "-N",
            "--no-instructions",
            "-E",
            "UTF8",
        ]
        subprocess.run(initdb, check=True, capture_output=True, cwd=folder, **who)
        settings = [option for setting in (*_FAST, "listen_addresses=") for option in ("-c", setting)]
        command = [programs / "postgres", "-D", data, "-k", folder, *settings]
        with open(f"{folder}/log", "wb") as log:
            process = started = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=folder, start_new_session=True, **who
            )
        _wait_until_ready(started, folder)
        yield Postgres(folder)
    finally:
        if process is not None:
            process.send_signal(signal.SIGQUIT)
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    if find_spec("psycopg") is None:
        raise SandboxUnavailable("psycopg is not installed", hint="pip install 'hatchway[postgres]'")
    installed = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    if found := shutil.which("initdb"):
        installed.insert(0, Path(found).parent)
    for folder in installed:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise SandboxUnavailable("PostgreSQL is not installed", hint="apt install postgresql")


def _runner() -> dict[str, Any]:
    """The arguments that run a program as somebody who is not root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": name, "extra_groups": []}
    raise SandboxUnavailable("PostgreSQL refuses root, and there is no user to run it as", hint="useradd postgres")


def _wait_until_ready(process: subprocess.Popen[Any], folder: str) -> None:
    import psycopg

    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            psycopg.connect(Postgres(folder).url()).close()
            return
        except psycopg.Error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise SandboxUnavailable(
                    f"PostgreSQL did not start: {Path(folder, 'log').read_text()[-500:]}"
                ) from None
            time.sleep(0.05)
