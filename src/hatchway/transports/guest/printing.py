"""A `print` that keeps nothing back: what a killed process has in its buffers nobody gets to see."""

import builtins
import sys

_print = builtins.print


def kept(stream):
    """`print`, for a stream that flushes each whole line: a line that is left open is flushed as well."""

    def print(*values, sep=" ", end="\n", file=None, flush=False):
        if end != "\n" and (sys.stdout if file is None else file) is stream:
            flush = True
        _print(*values, sep=sep, end=end, file=file, flush=flush)

    print.__doc__, print.__module__, print.__qualname__ = _print.__doc__, "builtins", "print"
    return print
