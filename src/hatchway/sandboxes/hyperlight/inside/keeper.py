"""The keeper: a process of the host that owns one Hyperlight sandbox and runs one action after the other in it.

A process, because the sandbox may be used by the thread that made it alone, has no deadline of its own, and cannot be
stopped: killing the process stops it. Between actions the sandbox goes back to its first snapshot. It speaks JSON lines
on stdin and stdout: an order in; then output, calls and one end out, with an answer in for each call.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from importlib.resources import files
from typing import Any, TextIO

from hatchway.core import codec


def main() -> None:
    """Serve orders until stdin is closed."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever the package prints must not mix with ours
    settings = json.loads(sys.stdin.readline())
    keeper = Keeper(settings, sys.stdin, answers)
    for line in sys.stdin:
        keeper.serve(line)


class Keeper:
    """Owns the sandbox.

    Args:
        settings: `make` (arguments of `Sandbox`) and `domains`.
        orders: Where orders and answers come from.
        told: Where what happens is told.
    """

    def __init__(self, settings: dict[str, Any], orders: TextIO, told: TextIO) -> None:
        self._orders, self._told = orders, told
        self._has_ended = False
        sandbox_class: Any = import_module("hyperlight_sandbox").Sandbox
        self._sandbox: Any = sandbox_class(**settings["make"])
        self._sandbox.register_tool("hatchway", self._on_message)
        for target, methods in settings["domains"]:
            self._sandbox.allow_domain(target, methods)
        self._sandbox.run("None")  # starts it; what fails here is told by our exit
        self._clean = self._sandbox.snapshot()
        self._tell({"type": "ready"})

    def serve(self, order: str) -> None:
        """Run one action, then forget it."""
        self._has_ended = False
        head = f"ORDER = {order.strip()!r}\nCODEC = {_source('core', 'codec.py')!r}\n"
        head += f"ACTION = {_source('transports', 'guest/action.py')!r}\n"
        result = self._sandbox.run(head + _source("sandboxes", "hyperlight/inside/program.py"))
        if not self._has_ended:
            self._tell({"type": "end", "kind": "died", "told": str(result.stderr)[-2000:]})
        self._sandbox.restore(self._clean)
        self._tell({"type": "ready"})

    def _on_message(self, message: str = "") -> str:
        told = codec.loads(message.encode())
        kind = told["type"]
        if self._has_ended:
            return '{"value":null}'
        self._has_ended = kind == "end"
        self._told.write(message.replace("\n", " ") + "\n")  # between JSON tokens only: a line is a message
        self._told.flush()
        stands = kind == "wait" or (kind == "call" and told.get("stands") is True)
        return self._orders.readline().strip() if stands else '{"value":null}'

    def _tell(self, message: dict[str, Any]) -> None:
        self._told.write(json.dumps(message) + "\n")
        self._told.flush()


def _source(package: str, name: str) -> str:
    return files(f"hatchway.{package}").joinpath(name).read_text(encoding="utf-8")


if __name__ == "__main__":
    main()
