"""What the code asks of the system: sleep, environment, randomness, files. Nothing of the host's own is given."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import pydantic_monty as pm

SLEEPS = frozenset({"time.sleep", "asyncio.sleep"})
POLICY: pm.OSPolicy = {"sleep": "call_host"}
"""Sleep stops at the host: Monty's own would not count as time the code took."""
_MOST_RANDOM_BYTES = 1 << 20


def answer(stop: pm.FunctionSnapshot, environ: Mapping[str, str], *, has_files: bool) -> pm.ExternalResult | None:
    """The answer to a call of the system other than sleep; None leaves it to Monty and its mounts."""
    name = str(stop.function_name)
    match name:
        case "os.getenv":
            return {"return_value": environ.get(str(stop.args[0]), stop.args[1] if len(stop.args) > 1 else None)}
        case "os.environ":
            return {"return_value": dict(environ)}
        case "os.urandom":
            return random_bytes(stop.args[0], os.urandom)
        case _ if (name == "open" or name.startswith("Path.")) and not has_files:
            path = getattr(stop.args[0], "path", stop.args[0])
            return {"exc_type": "PermissionError", "message": f"no files are granted to this code: {str(path)!r}"}
        case _:
            return None


def random_bytes(size: Any, draw: Callable[[int], bytes]) -> pm.ExternalResult:
    """The answer to `os.urandom`, drawn from whatever is given."""
    if not isinstance(size, int) or not 0 <= size <= _MOST_RANDOM_BYTES:
        return {"exc_type": "ValueError", "message": f"os.urandom gives 0 to {_MOST_RANDOM_BYTES} bytes at a time"}
    return {"return_value": draw(size)}
