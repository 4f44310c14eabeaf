"""Where the zygote's objects lie. Each page a child writes to is copied, and to use an object is to write to it."""

from __future__ import annotations

_POOL, _HEADER = 1 << 14, 48  # of CPython's allocator: pools of one size of block each, and what they begin with
_SIZES = range(16, 513, 16)
_LARGE_SIZES = range(1 << 14, 512, -64)  # past those of the allocator: the C library gives them out
_MOST_BYTES = 1 << 17  # of each size; an interpreter with another allocator gets no further than that
_kept: list[object] = []


def fill_holes() -> None:
    """Take all blocks that are free among others, for good: what is made from here on lies together, in new pools."""
    for size in _SIZES:
        for number in range(_MOST_BYTES // size):
            block = _block(size, number)
            if id(block) % _POOL == _HEADER:
                break  # the first one of a new pool, which is given back here
            _kept.append(block)


def fill_large_holes() -> None:
    """The same in the heap of the C library: what is made from here on lies at its end."""
    top = 0
    for size in _LARGE_SIZES:
        for _ in range(_MOST_BYTES // size):
            block = bytes(size)
            if id(block) >= top:
                top = id(block)
                break  # it comes from the end of the heap, and is given back too
            _kept.append(block)


def _block(size: int, number: int) -> object:
    if size == 16:
        return object()
    return number + 0.5 if size == 32 else bytes(size - 33)
