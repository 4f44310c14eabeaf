"""Secrets: what the host has, its environment and its open files, is not there inside."""

from __future__ import annotations

import os
import secrets
import tempfile
from pathlib import Path

from hatchway.core.sandbox import CodeSandbox
from hatchway.testing.conformance.checks import FULL_LIBRARY, check
from hatchway.testing.conformance.drive import run
from hatchway.testing.conformance.expect import fail

PLAIN_ENVIRONMENT = {
    "PATH", "HOME", "LANG", "LANGUAGE", "TZ", "PWD", "OLDPWD", "TMPDIR", "SHLVL", "USER", "LOGNAME", "SHELL", "TERM",
    "HOSTNAME", "_",
}  # fmt: skip
"""Names a guest may share with the host without a secret being in them."""
READ_ENVIRONMENT = """
    import os
    initial = ""
    try:
        with open("/proc/self/environ") as f:
            initial = f.read()
    except OSError:
        pass
    [dict(os.environ), initial]
"""


@check("the host's environment is not visible inside", needs=(FULL_LIBRARY,), fresh=True)
async def check_environment(sandbox: CodeSandbox) -> None:
    name, value = "CONFORMANCE_API_KEY", secrets.token_hex(8)
    os.environ[name] = value
    try:
        inside, initial = (await run(sandbox, READ_ENVIRONMENT)).output
    finally:
        os.environ.pop(name, None)
    if name in inside or value in initial:
        fail("a variable of the host's environment is visible inside")
    shared = {k for k, v in inside.items() if os.environ.get(k) == v} - PLAIN_ENVIRONMENT
    if shared := {k for k in shared if not k.startswith("LC_")}:
        fail(f"variables of the host are visible inside: {sorted(shared)}")


@check("files the host has open are not inherited", needs=(FULL_LIBRARY,), fresh=True)
async def check_descriptors(sandbox: CodeSandbox) -> None:
    with tempfile.TemporaryDirectory() as folder:
        secret = Path(folder) / "secret.txt"
        secret.write_text("s3cr3t")
        descriptor = os.open(secret, os.O_RDONLY)
        try:
            os.set_inheritable(descriptor, True)
            code = """
                import os
                seen = []
                for fd in range(0, 256):
                    try:
                        status = os.fstat(fd)
                        seen.append([status.st_dev, status.st_ino])
                    except OSError:
                        pass
                seen
            """
            seen = (await run(sandbox, code)).output
        finally:
            os.close(descriptor)
        status = secret.stat()
    if [status.st_dev, status.st_ino] in seen:
        fail("a file the host has open is open inside as well")
