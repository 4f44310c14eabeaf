"""What calling an async tool gives: to be awaited, and an error that says so wherever it is used otherwise."""

from collections.abc import Coroutine

UNSTARTED = {}
"""Calls that nobody has awaited yet, by their id()."""


class AsyncCall(Coroutine):
    """A call of an async tool that is made when it is awaited or scheduled."""

    __slots__ = ("__name__", "__qualname__", "_coroutine")

    def __init__(self, name, coroutine):
        self.__name__ = self.__qualname__ = name
        self._coroutine = coroutine
        UNSTARTED[id(self)] = self

    def send(self, value):
        """Go on with the call; the first time it is made."""
        UNSTARTED.pop(id(self), None)
        return self._coroutine.send(value)

    def throw(self, *error):
        """Raise inside the call."""
        UNSTARTED.pop(id(self), None)
        return self._coroutine.throw(*error)

    def close(self):
        """Give the call up."""
        UNSTARTED.pop(id(self), None)
        self._coroutine.close()

    def __await__(self):
        UNSTARTED.pop(id(self), None)
        return self._coroutine.__await__()

    def __repr__(self):
        return "<call of %s, not awaited>" % self.__name__

    def hint(self):
        """What to write instead; the mistake then counts as told."""
        UNSTARTED.pop(id(self), None)
        self._coroutine.close()
        return hint(self.__name__)

    def __getattr__(self, name):
        if name.startswith("__") or name.startswith(("cr_", "gi_", "ag_")):
            raise AttributeError(name)  # what asyncio and inspect ask of any coroutine
        raise AttributeError(self.hint())


def hint(name):
    """What to write instead of a bare call of an async tool."""
    return "%s is async: call it as await %s(...)" % (name, name)


def _misuse(self, *_):
    raise TypeError(self.hint())


# not __next__: asyncio would take the call for an iterator
_MISUSED = (
    "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow matmul rmatmul and rand or ror "
    "xor rxor lshift rlshift rshift rrshift neg pos abs invert lt le gt ge iter len contains getitem setitem "
    "delitem bool int float index complex round call enter exit aenter aexit aiter anext format"
)
for _name in _MISUSED.split():
    setattr(AsyncCall, "__%s__" % _name, _misuse)
