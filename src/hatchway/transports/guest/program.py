"""Tools over HTTP in a namespace: what the source in `TransportConfig.stub_code` sets up before the action's text.

In a guest of ours that is all, for the guest runs the action and tells its end. In a plain interpreter it leaves two
more names: `_hatchway_complete(value)` tells the host the output, and `_hatchway_run(source)` runs an action as every
guest does (value of the last expression, top-level `await`, its own line numbers) and tells how it ended.
"""

import atexit
import builtins
import os
import re
import sys

from . import action as actions
from . import codec, report, tools
from .exchange import Exchange
from .http import HttpChannel
from .http_client import HostClient, HostRefused, HostUnreachable

OVER = "the program has told the host that it is over"
UNSAID = "the program ended without saying so: it called exit, or nothing told its output"
GUEST = __package__ + ".interpreter"


def attach(namespace, specs, value_bytes):
    """Define the tools; the host is found by the environment, which keeps nothing of it."""
    client = HostClient(os.environ.pop("HATCHWAY_CALLBACK_URL"), os.environ.pop("HATCHWAY_CALLBACK_TOKEN"))
    exchange = Exchange(HttpChannel(client), _flush)
    exchange.open(1, value_bytes)
    tools.bind(specs, exchange, namespace)
    if specs:
        client.connect()
    os.register_at_fork(after_in_child=exchange.after_fork_in_child)
    if GUEST in sys.modules:
        _replace(namespace, exchange)
    else:
        program = Program(namespace, specs, client, exchange, stub_lines=sys._getframe(1).f_lineno)
        namespace["_hatchway_complete"], namespace["_hatchway_run"] = program.complete, program.run


def _replace(namespace, exchange):
    """In a session, give back what the last action had."""
    last = namespace.get("_hatchway_exchange")
    namespace["_hatchway_exchange"] = exchange
    if last is not None:
        last.close("the action that made this call is over")
        last.channel.close()


class Program:
    """A program in a plain interpreter, and what its host is told about its end."""

    def __init__(self, namespace, specs, client, exchange, stub_lines):
        self._namespace = namespace
        self._styles = {spec["name"]: spec["is_async"] for spec in specs}
        self._client = client
        self._exchange = exchange
        self._stub_lines = stub_lines
        self._owner = os.getpid()
        self._is_over = False
        builtins.ToolError, builtins.ToolDenied = tools.ToolError, tools.ToolDenied
        self._print_error, sys.excepthook = sys.excepthook, self._on_error
        atexit.register(self._on_exit)

    def complete(self, output=None):
        """Tell the host that the code ended, and its output."""
        try:
            packed = codec.dumps(output)
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
        except (EOFError, HostRefused, HostUnreachable):
            pass  # the host has ended this execution itself, or is gone

    def _end(self, message):
        if not self._is_over and self._owner == os.getpid():
            self._is_over = True
            _flush()
            self._exchange.close(OVER)
            self._client.post("/complete", message)

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


def _flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass  # closed or replaced by the action
