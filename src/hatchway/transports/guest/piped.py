"""Tools over a pair of pipes in a plain interpreter: what the stdio transport's `stub_code` sets up.

It leaves the same two names as over HTTP (`program.py`): `_hatchway_complete(value)` and `_hatchway_run(source)`.
"""

import os
import sys

from . import tools
from .channel import PipeChannel
from .exchange import Exchange
from .program import Program, flush


def attach(namespace, specs, value_bytes):
    """Define the tools; the descriptors are found by the environment, which keeps nothing of them."""
    read_fd, write_fd = map(int, os.environ.pop("HATCHWAY_CHANNEL").split(","))
    for fd in (read_fd, write_fd):
        os.set_inheritable(fd, False)  # they were handed to this program, not to those it starts
    exchange = Exchange(PipeChannel(read_fd, write_fd), flush)
    exchange.open(1, value_bytes)
    tools.bind(specs, exchange, namespace)
    os.register_at_fork(after_in_child=exchange.after_fork_in_child)
    Program(namespace, specs, _End(exchange), exchange, stub_lines=sys._getframe(1).f_lineno)


class _End:
    """The end of the program as a last line on the channel."""

    def __init__(self, exchange):
        self._exchange = exchange

    def post(self, _path, message):
        """Tell the host."""
        try:
            self._exchange.send(message + b"\n")
        except OSError:
            raise EOFError("the host closed the channel") from None
