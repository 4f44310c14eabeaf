"""The guest's main loop: take an order from the host, run the action, say how it ended."""

import builtins
import io
import os
import sys
import threading
import types

from . import action as actions
from . import awaiting, codec, generated, ipython, limits, printing, repeatable, report, sizes, tools
from .async_call import UNSTARTED
from .displays import Displays
from .exchange import Exchange
from .headless import Headless
from .stage import Stage

OVER = "the action that made this call is over"
running = None
"""The interpreter of this process, for whoever starts IPython in it."""


class Interpreter:
    """One interpreter; in a session its names, imports and event loop live on from action to action."""

    def __init__(self, channel):
        self._out, self._err = _stream(1, 1 << 13), _stream(2, 0)
        self._exchange = Exchange(channel, self._flush)
        self._displays = Displays(self._exchange)
        sys.meta_path.insert(0, Headless(self._displays))
        self._saved = generated.install()
        self._namespace = None
        self._shell = None
        self._loop = None
        self._styles = {}
        self._is_forked = False
        os.register_at_fork(after_in_child=self._after_fork)
        self._tasks = limits.TaskLimit()
        limits.few_heaps()
        repeatable.install()

    def warm_up(self, times=1, stage=None):
        """Rehearse an action from order to end: the pages of a forked process are copied at the first touch.

        What the action would have told. A stage that is given stays the caller's.
        """
        if stage is None:
            stage = Stage(*os.pipe())
            try:
                return self.warm_up(times, stage)
            finally:
                stage.channel.close()
        exchange, main = self._exchange, sys.modules["__main__"]
        channel, exchange.channel = exchange.channel, stage.channel
        for _ in range(times):
            stage.order()
            order = exchange.next_request()
            limits.apply(order["limits"], keep_hard=True)
            exchange.send(self._end_of(order))
            told = stage.heard()
        exchange.channel, exchange.action = channel, 0
        self._namespace, self._styles, sys.modules["__main__"] = None, {}, main
        sys.modules["linecache"].cache.clear()
        repeatable.end()
        return told

    def warm_up_loop(self, times):
        """Rehearse what `await` needs; the loop itself is made by the process it is for."""
        import asyncio

        for _ in range(times):
            self._run_coroutine(asyncio.sleep(0))
            _cancel_tasks(self._loop)
            self._loop.close()
            self._loop = None
        asyncio.set_event_loop(None)

    def take_over(self):
        """Put what actions see of it in its place; a zygote does so before it forks. Legal twice."""
        global running
        if running is self:
            return
        running = self
        sys.stdout = sys.__stdout__ = self._out
        sys.stderr = sys.__stderr__ = self._err
        builtins.ToolError, builtins.ToolDenied = tools.ToolError, tools.ToolDenied
        builtins.display, builtins.print = self._displays.display, printing.kept(self._out)

    def serve(self):
        """Run actions until the host closes the channel."""
        self.take_over()
        self._exchange.send(b'{"type":"ready"}\n')
        while True:
            try:
                order = self._exchange.next_request()
            except EOFError:
                os._exit(0)
            limits.apply(order["limits"], keep_hard=order["is_session"])
            self._tasks.set(order["limits"]["processes"])
            self._exchange.send(self._end_of(order))

    def _end_of(self, order):
        """Run an action; the message that says how it ended."""
        try:
            end = self._run(order)
        except BaseException as e:
            if isinstance(e, MemoryError):
                limits.relax()
            elif not self._is_forked:
                self._displays.end_failed()
            end = report.failure(e, self._styles)
        self._flush()
        self._leave_if_forked(end)
        for call in tuple(UNSTARTED.values()):
            call.close()
        self._exchange.close(OVER)
        return self._packed_end(end, order["limits"]["value_bytes"])

    def _run(self, order):
        """The kind and text of a failure, or `None` and the output."""
        number = self._exchange.action + 1
        self._exchange.open(number, order["limits"]["value_bytes"])
        self._exchange.trail.begin(order.get("is_again", False))
        self._displays.begin(order["limits"]["display_bytes"])
        order["code"] = order["code"].removeprefix("\ufeff")  # a file's byte order mark, which `compile` takes amiss
        filename = "<action %d>" % number if order["is_session"] else "<action>"
        try:
            action = (self._shell or actions).action(order["code"], filename, awaiting.calls_awaited)
        except (SyntaxError, ValueError, RecursionError) as e:
            return "syntax", report.syntax_failure(e)
        if self._namespace is None:
            self._namespace = actions.main_namespace()
        self._styles = {spec["name"]: spec["is_async"] for spec in order["functions"]}
        self._saved.forget_changed()
        self._bind(order)
        self._namespace.update(order["inputs"])
        repeatable.begin(order.get("seed"), order.get("clock"))
        try:
            output = self._performed(order["code"], action)
        except SystemExit as e:
            if e.code not in (None, 0):
                raise
            output = None
        finally:
            self._settle(is_last=not order["is_session"])
        if not self._is_forked:
            self._displays.end(output)
        return self._unawaited() or (None, output)

    def _performed(self, source, action):
        needs_loop = action.awaited is None or not awaiting.are_tools(action.awaited, self._namespace)
        run_coroutine = self._run_coroutine if needs_loop else awaiting.run
        if self._shell is None:
            return action.run(self._namespace, run_coroutine)
        return self._shell.run(source, lambda: action.run(self._namespace, run_coroutine))

    def start_ipython(self):
        """Have further actions run IPython's way; called by an action of the host's, which does not count."""
        self._displays.is_ipython = True
        self._shell = ipython.Shell(self._displays)
        self._exchange.action -= 1

    def _bind(self, order):
        """Define the tools; calls go over our channel, or over another whose source the host sent."""
        if order["stub_code"] is None:
            tools.bind(order["functions"], self._exchange, self._namespace)
            return
        os.environ.update(order["env_vars"])
        exec(compile(order["stub_code"], "<stub>", "exec", dont_inherit=True), self._namespace)
        tools.limit(self._namespace, order["limits"]["value_bytes"])

    def _run_coroutine(self, coroutine):
        import asyncio

        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        return self._loop.run_until_complete(coroutine)

    def _settle(self, is_last):
        """Cancel tasks nobody waited for; a fresh interpreter waits for its threads, as Python does at its end."""
        if self._is_forked:
            return
        if self._loop is not None:
            _cancel_tasks(self._loop)
        if is_last and threading.active_count() > 1:
            threading._shutdown()

    def _unawaited(self):
        """The failure of an action that made calls of async tools and never awaited them."""
        hints = [call.hint() for call in tuple(UNSTARTED.values())]
        return ("runtime", "\n".join(sorted(set(hints)))) if hints else None

    def _packed_end(self, end, limit):
        kind, told = end
        if kind is None:
            try:
                packed = b"" if sizes.is_over([told], limit) else codec.uncrowded(codec.dumps(told))
            except codec.NotPortable as e:
                if self._displays.stands_for(told):
                    return b'{"type":"execution_complete","output":null}\n'
                if isinstance(told, types.CoroutineType):
                    told.close()  # the error says that nobody awaited it: no warning has to
                kind, told = "value", "%s %s" % (e.path("output"), e.reason)
            except BaseException as e:
                kind, told = report.failure(e, {})
            else:
                if 0 < len(packed) <= limit:
                    return b'{"type":"execution_complete","output":%s}\n' % packed
                kind = "value_bytes"
                told = "the output takes more bytes on the wire than Limits.value_bytes, %d" % limit
        failed = {"type": "execution_failed", "kind": kind, "message": told}
        return codec.dumps(failed) + b"\n"

    def _flush(self):
        try:
            self._out.flush()  # stderr keeps nothing back
            if sys.stdout is not self._out:
                sys.stdout.flush()
        except Exception:
            pass  # closed or replaced by the action

    def _after_fork(self):
        self._is_forked = True
        self._exchange.after_fork_in_child()

    def _leave_if_forked(self, end):
        """A forked copy that reaches the end of the action ends here: the end is its parent's to tell."""
        if self._is_forked:
            if end[0] is not None:
                self._err.write(end[1] + "\n")
                self._flush()
            os._exit(0 if end[0] is None else 1)


def _stream(fd, buffer_size):
    raw = io.FileIO(fd, "wb", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw, buffer_size) if buffer_size else raw,
        encoding="utf-8",
        errors="backslashreplace",
        newline="\n",
        line_buffering=True,
        write_through=not buffer_size,
    )


def _cancel_tasks(loop):
    import asyncio

    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    if getattr(loop, "_asyncgens", True):
        loop.run_until_complete(loop.shutdown_asyncgens())
