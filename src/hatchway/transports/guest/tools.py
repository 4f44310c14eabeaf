"""Tools as the action sees them: callables with a name, a docstring and a real signature."""

import builtins
import types

from . import arguments, stubs
from .async_call import AsyncCall


class ToolError(RuntimeError):
    """A tool failed."""


class ToolDenied(ToolError):
    """A call was refused."""


for _class in (ToolError, ToolDenied):
    _class.__module__ = "builtins"  # so that a traceback says `ToolError: ...`

_OWN_ERRORS = {"ToolError": ToolError, "ToolDenied": ToolDenied}
_OFFERED = {}  # the tools of this action, for modules that call them by name
_calls_here = None
_NEVER_RAISED = (StopIteration, StopAsyncIteration)  # coroutines turn these into something else


def _import_loops():
    """Brings asyncio, which an action without async tools need not have."""
    global _calls_here
    from . import loops

    _calls_here = loops.calls_here
    return _calls_here


class Tool:
    """A function of the host. A plain one blocks until it is answered."""

    def __init__(self, spec, exchange):
        self.__name__ = self.__qualname__ = spec["name"]
        self.__module__ = "__main__"
        self._stub = spec["stub"]
        self._exchange = exchange
        self._head = arguments.head(spec["name"])

    def __call__(self, /, *args, **kwargs):
        exchange = self._exchange
        packed = arguments.packed(self.__name__, args, kwargs, exchange.value_bytes)
        reply = exchange.call(self._head, packed)
        if reply["type"] == "result":
            return reply["value"]
        raise error_of(reply)

    @property
    def __doc__(self):
        return stubs.docstring(self._stub)

    @property
    def __signature__(self):
        return stubs.signature(self._stub)

    def __repr__(self):
        return "<tool %s>" % stubs.title(self.__name__, self._stub)

    def __reduce__(self):
        raise TypeError("the tool %s belongs to this process and cannot be pickled" % self.__name__)


class AsyncTool(Tool):
    """A function of the host that is awaited, so that several run at once."""

    def __init__(self, spec, exchange):
        super().__init__(spec, exchange)
        self._calls_here = _calls_here or _import_loops()

    def __call__(self, /, *args, **kwargs):
        packed = arguments.packed(self.__name__, args, kwargs, self._exchange.value_bytes)
        return AsyncCall(self.__name__, self._call(packed))

    async def _call(self, packed):
        calls = self._calls_here(self._exchange)
        if calls is None:
            reply = self._exchange.call(self._head, packed)
        elif calls.is_all_there_is():
            reply = self._exchange.call_alone(self._head, packed)
        else:
            reply = await calls.call(self._head, packed)
        if reply["type"] == "result":
            return reply["value"]
        raise error_of(reply)

    @property
    def _is_coroutine(self):
        """What `asyncio.iscoroutinefunction` looks for."""
        import asyncio

        return getattr(asyncio.coroutines, "_is_coroutine", None)

    @property
    def _is_coroutine_mark(self):
        """What `inspect.iscoroutinefunction` looks for since Python 3.12."""
        import inspect

        return getattr(inspect, "_is_coroutine_mark", None)


class Space(types.SimpleNamespace):
    """The tools of one server."""

    __slots__ = ("_path",)

    def __init__(self, path):
        self._path = path

    def __getattr__(self, name):
        there = sorted(vars(self))
        told = ", ".join(there[:20]) + (" and %d more" % (len(there) - 20) if len(there) > 20 else "")
        raise AttributeError("%s has no tool %r; it has %s" % (self._path, name, told or "none"))


def bind(specs, exchange, namespace):
    """Put the tools into the action's globals; dots in a name make namespaces. Gives the tools by name."""
    tools = {}
    _OFFERED.clear()
    for value in namespace.values():
        if isinstance(value, Space):
            vars(value).clear()  # of the action before: a server's tools may be others by now
    for spec in specs:
        _OFFERED[spec["name"]] = spec, exchange
        tool = (AsyncTool if spec["is_async"] else Tool)(spec, exchange)
        tools[spec["name"]] = tool
        *parents, last = spec["name"].split(".")
        place = namespace
        for parent in parents:
            if not isinstance(place.get(parent), Space):
                place[parent] = Space(parent)
            place = vars(place[parent])
        place[last] = tool
    return tools


def call(name, given):
    """Call a tool by its name and wait for the answer, whatever its style."""
    return Tool(*_offered(name))(**given)


def acall(name, given):
    """Call a tool by its name; the answer is awaited, whatever its style."""
    return AsyncTool(*_offered(name))(**given)


def _offered(name):
    if name not in _OFFERED:
        raise ToolError("there is no tool %s here: this run was not given its server" % name)
    return _OFFERED[name]


def limit(namespace, value_bytes):
    """Hold tools that came with their own channel to this action's limit."""
    for value in namespace.values():
        if isinstance(value, Tool):
            value._exchange.value_bytes = min(value._exchange.value_bytes, value_bytes)


def error_of(reply):
    """The exception an error message stands for: builtin classes keep their class, others become a ToolError."""
    name, message = reply["error_type"], reply["message"]
    own = _OWN_ERRORS.get(name)
    if own is not None:
        return own(message)
    known = getattr(builtins, name, None)
    if isinstance(known, type) and issubclass(known, Exception) and not issubclass(known, _NEVER_RAISED):
        try:
            return known(message)
        except Exception:
            pass  # some builtin classes want more than a message
    return ToolError("%s: %s" % (name, message) if message else name)
