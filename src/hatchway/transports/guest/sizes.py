"""How large a value is on the wire at least, found out without making that form.

A few lists that hold each other are small in memory and endless on the wire. Each container is looked at once, however
often it occurs, so the answer costs what the value takes in memory.
"""

from . import codec


def is_over(values, limit):
    """Whether the values surely take more than `limit` bytes together."""
    if _FLAT.issuperset(map(type, values)):
        return False  # then making the form is as cheap
    return sum([_least(value, {}, 0) for value in values]) > limit


def _least(value, known, depth):
    kind = type(value)
    if kind is str:
        return len(value) + 2
    if kind not in _CONTAINERS or depth > codec.MAX_DEPTH:
        return 1
    size = known.get(id(value))
    if size is None:
        known[id(value)] = 2  # one that contains itself is refused elsewhere
        items = [*value, *value.values()] if kind is dict else value
        size = known[id(value)] = 2 + len(value) + sum([_least(item, known, depth + 1) for item in items])
    return size


_CONTAINERS = (list, dict, tuple, set, frozenset)
_FLAT = frozenset((int, str, float, bool, type(None), bytes))
