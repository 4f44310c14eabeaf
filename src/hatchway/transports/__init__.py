"""How a call leaves the sandbox. Public: build a transport of your own on `CallbackTransport`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hatchway.core.transport import CallbackTransport, TransportConfig

if TYPE_CHECKING:
    from hatchway.transports.http import HttpCallbackTransport
    from hatchway.transports.stdio import StdinStdoutTransport

__all__ = ["CallbackTransport", "HttpCallbackTransport", "StdinStdoutTransport", "TransportConfig"]

_HOMES = {"HttpCallbackTransport": "http", "StdinStdoutTransport": "stdio"}


def __getattr__(name: str) -> Any:
    """Each transport is imported when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'hatchway.transports' has no attribute {name!r}")
    return getattr(import_module(f"hatchway.transports.{_HOMES[name]}"), name)
