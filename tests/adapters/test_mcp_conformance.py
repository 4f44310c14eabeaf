"""Hatchway as a server before those who judge servers: the official conformance suite, and the inspector."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NODE_MODULES = Path(__file__).parents[2] / ".node" / "node_modules"
SUITE = NODE_MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
INSPECTOR = NODE_MODULES / "@modelcontextprotocol" / "inspector-cli" / "build" / "cli.js"
NODE = NODE_MODULES / "node" / "bin" / "node"
OWN_TOOLS = str(Path(__file__).with_name("conformance_server.py"))
SERVE = [sys.executable, "-m", "hatchway", "serve", "mcp", "--sandbox", "monty"]

NOT_OFFERED = {
    "completion-complete": "completes arguments of prompts and resources, and there are none",
    "tools-call-audio": "code has no way to show sound; a sound file comes as a resource",
    "tools-call-sampling": "the server never asks the client's model",
    "json-schema-2020-12": "wants its own schema listed; ours are fixed",
    "elicitation-sep1034-defaults": "the one form there is has no defaults: a person decides",
    "elicitation-sep1330-enums": "wants its own five forms; there is one",
    "server-sse-polling": "a stream is never closed before its call is answered",
    **{
        f"resources-{name}": "no resources are listed; files come with the result that made them"
        for name in ("list", "read-text", "read-binary", "templates-read", "subscribe", "unsubscribe")
    },
    **{
        f"prompts-{name}": "no prompts are offered"
        for name in ("list", "get-simple", "get-with-args", "get-embedded-resource", "get-with-image")
    },
}
OF_CODE = {
    f"tools-call-{name}": "a tool of the suite; conformance_server.py has it"
    for name in (
        "simple-text", "image", "embedded-resource", "mixed-content", "with-logging", "error", "with-progress",
        "elicitation",
    )
}  # fmt: skip


def verdicts(url: str) -> dict[str, bool]:
    """Each scenario of the suite and whether the server passed it."""
    if not SUITE.exists() or not NODE.exists():
        pytest.skip("the conformance suite is not installed: `.ci/packages` does it")
    command = [str(NODE), str(SUITE), "server", "--url", url, "--suite", "all"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, stdin=subprocess.DEVNULL)
    return {name: mark == "✓" for mark, name in re.findall(r"^([✓✗]) ([\w-]+):", done.stdout, re.MULTILINE)}


@contextmanager
def started(command: list[str], stream: str, cwd: Path) -> Iterator[str]:
    """The address a server tells on one of its streams."""
    pipes: dict[str, Any] = {stream: subprocess.PIPE}
    process = subprocess.Popen(command, text=True, cwd=cwd, stdin=subprocess.DEVNULL, **pipes)
    told = getattr(process, stream)
    try:
        yield told.readline().split()[-1]
    finally:
        process.terminate()
        process.wait()
        told.close()


def test_the_suite_on_what_code_gives(tmp_path: Path) -> None:
    with started([sys.executable, OWN_TOOLS], "stdout", tmp_path) as url:
        found = verdicts(url)
    assert {name for name, passed in found.items() if not passed} == set(NOT_OFFERED)
    assert {name for name, passed in found.items() if passed} >= set(OF_CODE)
    assert len(found) == 32


def test_the_suite_on_the_command_as_it_is(tmp_path: Path) -> None:
    with started([*SERVE, "--http", "--port", "0", "--no-token"], "stderr", tmp_path) as url:
        found = verdicts(url)
    assert {name for name, passed in found.items() if not passed} <= {*NOT_OFFERED, *OF_CODE}
    assert len(found) == 32


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (["--method", "tools/list"], "execute_code"),
        (["--method", "tools/call", "--tool-name", "execute_code", "--tool-arg", "code=6 * 7"], "42"),
    ],
)
def test_the_inspector(asked: list[str], answer: str, tmp_path: Path) -> None:
    if not INSPECTOR.exists() or shutil.which("node") is None:
        pytest.skip("the inspector is not installed: `.ci/packages` does it")
    command = ["node", str(INSPECTOR), "--cli", *SERVE, *asked]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=True, cwd=tmp_path, stdin=subprocess.DEVNULL
    )
    told = json.loads(done.stdout)
    assert answer in [each.get("name") or each.get("text") for each in told.get("tools") or told["content"]]
