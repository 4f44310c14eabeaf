"""The program around an action, run inside the micro-VM. It knows the host by one function, `call_tool`.

Standard library only. `ORDER`, `CODEC` and `ACTION` are set above it by the keeper: the order and two sources.
"""

import builtins
import io
import sys
import time
import traceback
import types


class ToolError(RuntimeError):
    """A tool failed."""


class ToolDenied(ToolError):
    """The gate said no."""


def _module(name, source):
    made = types.ModuleType(name)
    exec(compile(source, name, "exec"), vars(made))
    return made


class _Host:
    """The host, spoken to in texts. Calls are numbered by both sides in the order they are made."""

    def __init__(self, send, codec):
        self._send, self._codec = send, codec
        self._made = 0
        self._futures = {}

    def tell(self, message):
        return self._codec.loads(self._send("hatchway", message=self._codec.dumps(message).decode()).encode())

    def call(self, name, args, kwargs):
        """Make a call and stand still until it is answered; answers of others that come first are kept."""
        answer = self._tell_call(name, args, kwargs, True)
        number = self._made
        while answer["id"] != number:
            self._take(answer)
            answer = self.tell({"type": "wait"})
        error = _error(answer)
        if error is not None:
            raise error
        return answer["value"]

    def begin(self, name, args, kwargs, loop):
        """Make a call and go on; its answer comes when there is nothing else to do."""
        self._tell_call(name, args, kwargs, False)
        self._futures[self._made] = future = loop.create_future()
        return future

    def wait(self):
        """Stand still until one of the calls under way is answered; False when there is none."""
        if not self._futures:
            return False
        sys.stdout.flush()
        self._take(self.tell({"type": "wait"}))
        return True

    def _tell_call(self, name, args, kwargs, stands):
        sys.stdout.flush()
        message = {"type": "call", "name": name, "args": list(args), "kwargs": kwargs, "stands": stands}
        try:
            answer = self.tell(message)
        except self._codec.NotPortable as e:
            raise TypeError("%s %s" % (e.path(name), e.reason)) from None
        self._made += 1
        return answer

    def _take(self, answer):
        future = self._futures.pop(answer["id"])
        if future.done():  # nobody waits for it any more
            return
        error = _error(answer)
        if error is None:
            future.set_result(answer["value"])
        else:
            future.set_exception(error)


def _error(answer):
    """What a call raises; None when it gave a value."""
    if "error" not in answer:
        return None
    kind, message = answer["error"]
    known = _error_class(kind)
    return ToolError(kind + ": " + message) if known is None else known(message)


def _error_class(kind):
    """Ours, or a builtin one that a message alone makes."""
    if kind in ("ToolError", "ToolDenied"):
        return globals()[kind]
    found = getattr(builtins, kind, None)
    is_plain = isinstance(found, type) and issubclass(found, Exception) and not issubclass(found, UnicodeError)
    return found if is_plain else None


class _Stream(io.TextIOBase):
    """Hands each line to the host, so that it is kept whatever becomes of the action."""

    def __init__(self, host, name):
        self._host, self._name, self._text = host, name, ""

    def writable(self):
        return True

    def write(self, text):
        self._text += text
        if "\n" in text or len(self._text) > 4096:
            self.flush()
        return len(text)

    def flush(self):
        if self._text:
            text, self._text = self._text, ""
            self._host.tell({"type": "output", "stream": self._name, "text": text})


def _function(host, spec, loop):
    name = spec["name"]
    if spec["is_async"] and loop is not None:

        async def function(*args, **kwargs):
            if not loop.is_running():  # the code has a loop of its own, which cannot wait for the host
                return host.call(name, args, kwargs)
            return await host.begin(name, args, kwargs, loop)

    elif spec["is_async"]:

        async def function(*args, **kwargs):
            return host.call(name, args, kwargs)

    else:

        def function(*args, **kwargs):
            return host.call(name, args, kwargs)

    function.__name__ = name
    return function


def _bind(names, path, function):
    """Put a function at its name; dots make namespaces."""
    for space in path[:-1]:
        names = vars(names.setdefault(space, types.SimpleNamespace()))
    names[path[-1]] = function


def _made_loop(host):
    """An event loop without sockets, which waits for the host when it has nothing to do; None where none can be had."""
    try:
        from asyncio.base_events import BaseEventLoop

        class Loop(BaseEventLoop):
            def __init__(self):
                BaseEventLoop.__init__(self)
                self._selector = self

            def select(self, timeout):
                if timeout is None and not host.wait():
                    raise RuntimeError("the code awaits something that never comes")
                if timeout:
                    time.sleep(timeout)
                return ()

            def _process_events(self, events):
                pass

            def _write_to_self(self):
                pass

        return Loop()
    except Exception:
        return None


def _run_coroutine(coroutine, loop):
    if loop is not None:
        try:
            return loop.run_until_complete(coroutine)
        finally:
            loop.close()
    try:
        coroutine.send(None)
    except StopIteration as e:
        return e.value
    raise RuntimeError("there is no event loop in this sandbox: await functions one by one") from None


def _failed(error):
    told = traceback.TracebackException.from_exception(error)
    told.stack = traceback.StackSummary.from_list([frame for frame in told.stack if frame.filename == "<action>"])
    return "".join(told.format()).rstrip()


def _main(order_text, codec_source, action_source, send):
    codec, actions = _module("codec", codec_source), _module("action", action_source)
    order, host = codec.loads(order_text.encode()), _Host(send, codec)
    sys.stdout, sys.stderr = _Stream(host, "stdout"), _Stream(host, "stderr")
    namespace = {"__name__": "__main__", "ToolError": ToolError, "ToolDenied": ToolDenied}
    loop = _made_loop(host)
    for spec in order["functions"]:
        _bind(namespace, spec["name"].split("."), _function(host, spec, loop))
    namespace.update(order["inputs"])
    try:
        action = actions.action(order["code"], "<action>")
    except (SyntaxError, ValueError, RecursionError) as e:
        return host.tell({"type": "end", "kind": "syntax", "told": _failed(e)})
    try:
        output = action.run(namespace, lambda coroutine: _run_coroutine(coroutine, loop))
        kind, told = None, output
    except MemoryError as e:
        kind, told = "memory", _failed(e)
    except BaseException as e:
        is_done = isinstance(e, SystemExit) and e.code in (None, 0)
        kind, told = (None, None) if is_done else ("runtime", _failed(e))
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        host.tell({"type": "end", "kind": kind, "told": told})
    except codec.NotPortable as e:
        host.tell({"type": "end", "kind": "runtime", "told": "%s %s" % (e.path("output"), e.reason)})


_main(ORDER, CODEC, ACTION, call_tool)  # noqa: F821
