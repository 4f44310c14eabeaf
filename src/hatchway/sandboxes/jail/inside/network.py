"""A net namespace of one's own with nothing in it but a loopback, and on that a socket the host will accept from."""

from __future__ import annotations

import fcntl
import socket
import struct

from . import kernel

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
BACKLOG = 128


def own_network(port: int) -> int:
    """Leave the net namespace for an empty one; the descriptor of a socket that listens on its loopback.

    Whoever holds the descriptor accepts, wherever it is: no packet ever leaves the namespace. Needs the capabilities of
    the user namespace that it is made in.
    """
    kernel.unshare(kernel.NEWNET)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    _bring_up(listener, b"lo")
    listener.bind(("127.0.0.1", port))
    listener.listen(BACKLOG)
    return listener.detach()


def _bring_up(any_socket: socket.socket, interface: bytes) -> None:
    asked = fcntl.ioctl(any_socket, SIOCGIFFLAGS, struct.pack("16sH14x", interface, 0))
    _, flags = struct.unpack("16sH14x", asked)
    fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", interface, flags | IFF_UP))
