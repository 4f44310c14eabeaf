"""Values at the wall, on the host's side: copied, never shared; what cannot cross is named by its path."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from hatchway.core import codec
from hatchway.core.errors import ValueNotPortable

_WRITTEN_BITS = 2000
"""Ints up to this are written out whatever the interpreter's limit of digits is."""


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


def as_python(value: Any) -> str:
    """A value as Python writes it; an int of more digits than Python writes is told by its size."""
    try:
        return repr(value)
    except ValueError:
        return repr(_told_by_size(value))


class _HugeInt:
    """Stands for an int in what is shown."""

    def __init__(self, value: int) -> None:
        self._bits = value.bit_length()

    def __repr__(self) -> str:
        return f"<int of {self._bits} bits>"


def _told_by_size(value: Any) -> Any:
    if isinstance(value, int):
        return _HugeInt(value) if value.bit_length() > _WRITTEN_BITS else value
    if isinstance(value, dict):
        pairs = cast(dict[Any, Any], value).items()
        return {_told_by_size(key): _told_by_size(item) for key, item in pairs}
    for kind in (list, tuple, set, frozenset):
        if isinstance(value, kind):
            return cast(Any, kind)(_told_by_size(item) for item in cast(Iterable[Any], value))
    return value


def not_portable(error: codec.NotPortable, root: str) -> ValueNotPortable:
    """The codec's refusal as an error of ours."""
    path = error.path(root)
    return ValueNotPortable(f"{path} {error.reason}", path=path)
