"""How a call leaves the sandbox. Public: build a transport of your own on `CallbackTransport`."""

from hatchway.core.transport import CallbackTransport, TransportConfig

__all__ = ["CallbackTransport", "TransportConfig"]
