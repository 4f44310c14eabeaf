"""The floor: a warm CPython child that calls over JSON lines on pipes, a blocking host, no gate and no wall."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack

from serving import Job, actions, add, serve

PYTHON = (sys.executable, "-I", "-S", "-u", "-c")
CHILD = """
import json, sys
def add(a, b):
    sys.stdout.write(json.dumps({"id": 0, "name": "add", "args": [a, b]}) + "\\n"); sys.stdout.flush()
    return json.loads(sys.stdin.readline())["result"]
for line in sys.stdin:
    names = {"add": add}
    exec(json.loads(line) + "\\nlast = total", names)
    sys.stdout.write(json.dumps({"done": names["last"]}) + "\\n"); sys.stdout.flush()
"""


def start() -> subprocess.Popen[str]:
    """The warm child."""
    return subprocess.Popen([*PYTHON, CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def drive(child: subprocess.Popen[str], code: str) -> object:
    """The value of an action in the child; its calls are answered as they come."""
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(json.dumps(code) + "\n")
    child.stdin.flush()
    for line in child.stdout:
        message = json.loads(line)
        if "done" in message:
            return message["done"]
        child.stdin.write(json.dumps({"result": add(*message["args"])}) + "\n")
        child.stdin.flush()
    raise EOFError("the child ended")


def spawn(code: str) -> object:
    """The value of an expression in a child of its own."""
    return int(subprocess.run([*PYTHON, f"print({code})"], capture_output=True, check=True).stdout)


async def jobs(stack: AsyncExitStack) -> Mapping[str, Job]:
    child = stack.enter_context(start())

    async def warm(code: str) -> object:
        return drive(child, code)

    async def fresh(code: str) -> object:
        return spawn(code)

    call = "add({}, {})".format
    return {"calls": actions(warm, call, None)["calls"], "fresh": actions(fresh, call, None)["fresh"]}


serve(jobs)
