"""Hatchway's stdio transport with its real guest and nothing around it: no gate, no sandbox, no limits."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from serving import Job, actions, add, serve

from hatchway.core.calls import FunctionCall
from hatchway.core.limits import Limits
from hatchway.core.transport import Completed, Failed, Idle, TransportConfig
from hatchway.transports.stdio import GUEST, StdinStdoutTransport


def start(transport: StdinStdoutTransport, config: TransportConfig) -> subprocess.Popen[bytes]:
    """The guest, with its ends of the channel."""
    command = [sys.executable, "-I", "-S", str(GUEST)]
    guest = subprocess.Popen(command, env=dict(config.env_vars), pass_fds=transport.guest_fds or ())
    transport.release_guest_fds()
    return guest


async def pull(transport: StdinStdoutTransport) -> Any:
    """The value of the action that was ordered."""
    while True:
        match await transport.receive():
            case FunctionCall() as call:
                await transport.send_result(add(*call.args), call_id=call.call_id)
            case Idle():
                continue
            case Completed(output=output):
                return output
            case Failed(message=message):
                raise RuntimeError(message)


async def jobs(stack: AsyncExitStack) -> Mapping[str, Job]:
    transport = StdinStdoutTransport()
    stack.push_async_callback(transport.stop)
    guest = start(transport, await transport.start(["add"]))
    stack.callback(guest.wait)
    stack.callback(guest.kill)

    async def run(code: str) -> Any:
        await transport.execute(code, ["add"], {}, Limits(), is_session=True)
        return await pull(transport)

    return {"calls": actions(run, "add({}, {})".format, None)["calls"]}


serve(jobs)
