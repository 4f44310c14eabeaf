"""A program in a plain interpreter that has tools: what its host is told about its end.

It has two names more than its tools: `_hatchway_complete(value)` tells the host the output, and `_hatchway_run(source)`
runs an action as every guest does (value of the last expression, top-level `await`, its own line numbers) and tells
how it ended. An error nobody catches is told as well.
"""

import atexit
import builtins
import os
import re
import sys

from . import action as actions
from . import codec, report, tools

OVER = "the program has told the host that it is over"
UNSAID = "the program ended without saying so: it called exit, or nothing told its output"


class Program:
    """The program whose globals are `namespace`; `host.post(path, message)` tells its end."""

    def __init__(self, namespace, specs, host, exchange, stub_lines):
        self._namespace = namespace
        self._styles = {spec["name"]: spec["is_async"] for spec in specs}
        self._host = host
        self._exchange = exchange
        self._stub_lines = stub_lines
        self._owner = os.getpid()
        self._is_over = False
        builtins.ToolError, builtins.ToolDenied = tools.ToolError, tools.ToolDenied
        namespace["_hatchway_complete"], namespace["_hatchway_run"] = self.complete, self.run
        self._print_error, sys.excepthook = sys.excepthook, self._on_error
        atexit.register(self._on_exit)

    def complete(self, output=None):
        """Tell the host that the code ended, and its output."""
        try:
            packed = codec.uncrowded(codec.dumps(output))
        except codec.NotPortable as e:
            self._fail("value", "%s %s" % (e.path("output"), e.reason))
        else:
            self._end(b'{"type":"execution_complete","output":%s}' % packed)

    def run(self, source):
        """Run an action and tell the host how it ended."""
        try:
            action = actions.Action(source, "<action>")
        except (SyntaxError, ValueError, RecursionError) as e:
            self._stop("syntax", report.syntax_failure(e))
        try:
            output = action.run(self._namespace, _run_coroutine)
        except BaseException as e:
            if not isinstance(e, SystemExit) or e.code not in (None, 0):
                self._stop(*report.failure(e, self._styles))
            output = None
        self.complete(output)

    def _stop(self, kind, text):
        sys.stderr.write(text + "\n")
        self._fail(kind, text)
        sys.exit(1)

    def _fail(self, kind, text):
        try:
            self._end(codec.dumps({"type": "execution_failed", "kind": kind, "message": text}))
        except (EOFError, OSError, RuntimeError):
            pass  # the host has ended this execution itself, or is gone

    def _end(self, message):
        if not self._is_over and self._owner == os.getpid():
            self._is_over = True
            flush()
            self._exchange.close(OVER)
            self._host.post("/complete", message)

    def _on_error(self, kind, error, trace):
        self._print_error(kind, error, trace)
        failed, text = report.failure(error, self._styles)
        self._fail(failed, re.sub(r'(File "<string>", line )(\d+)', self._own_line, text))

    def _own_line(self, shown):
        """The action's text begins below ours in the same string."""
        line = int(shown.group(2))
        return shown.group(1) + str(line - self._stub_lines if line > self._stub_lines else line)

    def _on_exit(self):
        self._fail("runtime", UNSAID)
        if self._owner == os.getpid():
            self._exchange.channel.close()


def _run_coroutine(coroutine):
    import asyncio

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(coroutine)
    finally:
        loop.close()


def flush():
    """Let what was printed come before what is said to the host next."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass  # closed or replaced by the action
