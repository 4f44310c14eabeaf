"""The host's disk is full when the files of an action are taken: said as what it is, and the sandbox works on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SCRIPT = """
import asyncio, os, sys, tempfile
from hatchway.core.errors import SandboxCrashed, SandboxUnavailable
from hatchway.sandboxes.jail import JailSandbox
from hatchway.sandboxes.process import ProcessSandbox

async def main(name, given, scratch):
    make = {
        "process": lambda: ProcessSandbox(workspace_root=given, scratch_root=scratch),
        "jail": lambda: JailSandbox(tier="namespaces", workspace_root=given, spares=0),
    }[name]
    async with make() as sandbox:
        for code in ("open('output/large', 'wb').write(bytes(6 << 20))", "open('output/small', 'w').write('x')"):
            try:
                result = await (await sandbox.execute(code)).next()
                print(result.files[0].name, result.files[0].content)
            except SandboxCrashed as e:
                print(e.message, "|", e.hint)
            except SandboxUnavailable as e:
                sys.exit(f"{e.message} {e.hint}")
    print(os.listdir(scratch), os.listdir(tempfile.gettempdir()))

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("name", ["process", "jail"])
def test_the_disk_is_full_while_files_are_taken(name: str, tmp_path: Path) -> None:
    """The spool lies in a file system of 3 MB that only the one process sees."""
    for folder in ("small", "given", "scratch"):
        (tmp_path / folder).mkdir()
    done = subprocess.run(
        [*_own_mounts(), "sh", "-c", 'mount -t tmpfs -o size=3m none "$0" && exec "$@"', str(tmp_path / "small"),
         sys.executable, "-c", textwrap.dedent(SCRIPT), name, str(tmp_path / "given"), str(tmp_path / "scratch")],
        env={**os.environ, "TMPDIR": str(tmp_path / "small")}, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        assert name == "jail", done.stderr
        pytest.skip(done.stderr.strip())
    assert done.stdout.splitlines() == [
        "/output cannot be taken: No space left on device | see `df` and `ulimit -n`",
        "small b'x'",
        "[] []",
    ]


FILLED = """
import asyncio, sys
from hatchway.core.errors import CodeRuntimeError, SandboxUnavailable
from hatchway.sandboxes.jail import JailSandbox

async def main():
    async with JailSandbox(tier="landlock", python=sys.argv[1] or None, spares=0) as jail:
        for code in ("open('large', 'wb').write(bytes(6 << 20))", "open('small', 'w').write('x')"):
            try:
                print((await (await jail.execute(code)).next()).output)
            except CodeRuntimeError as e:
                print(e.message.splitlines()[-1], "|", e.hint)
            except SandboxUnavailable as e:
                sys.exit(f"{e.message} {e.hint}")

asyncio.run(main())
"""


def test_the_disk_is_full_while_the_code_writes(reachable_python: str | None) -> None:
    """In the landlock tier scratch files lie on the host's disk: that it is full is no limit of the code's."""
    done = subprocess.run(
        [*_own_mounts(), "sh", "-c", 'mount -t tmpfs -o size=3m,mode=1777 none /tmp && exec "$@"', "sh",
         sys.executable, "-c", FILLED, reachable_python or ""],
        env={**os.environ, "TMPDIR": "/tmp"}, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        pytest.skip(done.stderr.strip())
    assert done.stdout.splitlines() == [
        "OSError: [Errno 28] No space left on device | the host's disk is full: see `df`, or set TMPDIR to another",
        "1",
    ]


def _own_mounts() -> list[str]:
    """The command that gives a program mounts of its own; skips where there can be none."""
    if shutil.which("unshare") is None:
        pytest.skip("needs the command unshare")
    command = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    tried = subprocess.run([*command, "mount", "-t", "tmpfs", "none", "/tmp"], capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"no file system can be mounted here: {tried.stderr.strip()}")
    return command
