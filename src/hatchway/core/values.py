"""Values at the wall, on the host's side: copied, never shared; what cannot cross is named by its path."""

from __future__ import annotations

from typing import Any

from hatchway.core import codec
from hatchway.core.errors import ValueNotPortable


def to_wire(value: Any, *, root: str = "value") -> bytes:
    """The value as one line of JSON bytes.

    Raises:
        ValueNotPortable: It, or a part of it, cannot cross; the message names the path from `root`.
    """
    try:
        return codec.dumps(value)
    except codec.NotPortable as e:
        raise not_portable(e, root) from None


def from_wire(data: bytes) -> Any:
    """The value of a wire form.

    Raises:
        codec.Malformed: The bytes are none.
    """
    return codec.loads(data)


def copied(value: Any, *, root: str = "value") -> Any:
    """A copy with nothing shared, as the other side would see it."""
    return codec.loads(to_wire(value, root=root))


def not_portable(error: codec.NotPortable, root: str) -> ValueNotPortable:
    """The codec's refusal as an error of ours."""
    path = error.path(root)
    return ValueNotPortable(f"{path} {error.reason}", path=path)
