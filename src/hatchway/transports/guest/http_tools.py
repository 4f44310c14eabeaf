"""Tools over HTTP in a namespace: what the HTTP transport's `stub_code` sets up before the action's own text.

In a guest of ours that is all, for the guest runs the action and tells its end. In a plain interpreter the namespace
becomes a `program.Program`.
"""

import os
import sys

from . import tools
from .exchange import Exchange
from .http import HttpChannel
from .http_client import HostClient
from .program import Program, flush

GUEST = __package__ + ".interpreter"


def attach(namespace, specs, value_bytes):
    """Define the tools; the host is found by the environment, which keeps nothing of it."""
    client = HostClient(os.environ.pop("HATCHWAY_CALLBACK_URL"), os.environ.pop("HATCHWAY_CALLBACK_TOKEN"))
    exchange = Exchange(HttpChannel(client), flush)
    exchange.open(1, value_bytes)
    tools.bind(specs, exchange, namespace)
    if specs:
        client.connect()
    os.register_at_fork(after_in_child=exchange.after_fork_in_child)
    if GUEST in sys.modules:
        _replace(namespace, exchange)
    else:
        Program(namespace, specs, client, exchange, stub_lines=sys._getframe(1).f_lineno)


def _replace(namespace, exchange):
    """In a session, give back what the last action had."""
    last = namespace.get("_hatchway_exchange")
    namespace["_hatchway_exchange"] = exchange
    if last is not None:
        last.close("the action that made this call is over")
        last.channel.close()
