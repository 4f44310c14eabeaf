"""The program around an action, run inside the micro-VM. It knows the host by one function, `call_tool`.

Standard library only. `ORDER`, `CODEC` and `ACTION` are set above it by the keeper: the order and two sources.
"""

import builtins
import io
import sys
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
    """The host, spoken to in texts."""

    def __init__(self, send, codec):
        self._send, self._codec = send, codec

    def tell(self, message):
        return self._codec.loads(self._send("hatchway", message=self._codec.dumps(message).decode()).encode())

    def call(self, name, args, kwargs):
        sys.stdout.flush()
        try:
            answer = self.tell({"type": "call", "name": name, "args": list(args), "kwargs": kwargs})
        except self._codec.NotPortable as e:
            raise TypeError("%s %s" % (e.path(name), e.reason)) from None
        if "error" not in answer:
            return answer["value"]
        kind, message = answer["error"]
        known = _error_class(kind)
        raise ToolError(kind + ": " + message) if known is None else known(message)


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


def _function(host, spec):
    name = spec["name"]
    if spec["is_async"]:

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


def _run_coroutine(coroutine):
    import asyncio

    try:
        loop = asyncio.new_event_loop()
    except (OSError, RuntimeError):  # no sockets in here, and so no loop: what needs none is driven by hand
        try:
            coroutine.send(None)
        except StopIteration as e:
            return e.value
        raise RuntimeError("there is no event loop in this sandbox: await functions one by one") from None
    return loop.run_until_complete(coroutine)


def _failed(error):
    told = traceback.TracebackException.from_exception(error)
    told.stack = traceback.StackSummary.from_list([frame for frame in told.stack if frame.filename == "<action>"])
    return "".join(told.format()).rstrip()


def _main(order_text, codec_source, action_source, send):
    codec, actions = _module("codec", codec_source), _module("action", action_source)
    order, host = codec.loads(order_text.encode()), _Host(send, codec)
    sys.stdout, sys.stderr = _Stream(host, "stdout"), _Stream(host, "stderr")
    namespace = {"__name__": "__main__", "ToolError": ToolError, "ToolDenied": ToolDenied}
    for spec in order["functions"]:
        _bind(namespace, spec["name"].split("."), _function(host, spec))
    namespace.update(order["inputs"])
    try:
        action = actions.action(order["code"], "<action>")
    except (SyntaxError, ValueError, RecursionError) as e:
        return host.tell({"type": "end", "kind": "syntax", "told": _failed(e)})
    try:
        output = action.run(namespace, _run_coroutine)
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
