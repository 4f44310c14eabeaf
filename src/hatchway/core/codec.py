"""The wire form of values: JSON, with a tag for each kind JSON lacks. Runs on both sides of the wall.

Standard library of Python 3.9 only, and no import of ours: this file is also loaded inside guests.
A tagged value is `{"$": kind, "v": ...}`; a dict that has a "$" key or a key that is no string is tagged itself.
"""

import base64
import json

MAX_DEPTH = 200
AROUND = 8  # levels of the message around a value, and of the innermost tag
PLAIN_INT_BITS = 8192  # CPython refuses int <-> decimal text past 4300 digits; larger ones travel as hex
MAX_CONTAINERS, MAX_ITEMS = 500_000, 2_000_000  # in one message: to read more would hold the host up for seconds
_SMALL = 1 << 62
_MARK = b'"$"'
_HINT = "convert it first (str(), int(), float(), list(), .tolist(), dataclasses.asdict())"


class NotPortable(TypeError):
    """A value has no wire form; `keys` lead to it, innermost first."""

    def __init__(self, reason):
        super().__init__(reason)
        self.reason = reason
        self.keys = []

    def path(self, root):
        """Where the offender sits, as a Python expression on `root`."""
        shown = ["[%s]" % key for key in reversed(self.keys)]
        return root + "".join(shown[:8]) + ("…" if len(shown) > 8 else "")


class Malformed(ValueError):
    """Bytes from the other side are not a wire form."""


def dumps(value):
    """The value as one line of ASCII JSON bytes. Raises NotPortable."""
    return _encode(pack(value, 0)).encode("ascii")


def dumps_plain(items):
    """As `dumps` of a list, if all items are small and plain; else None. Most arguments are."""
    for item in items:
        kind = type(item)
        if not (kind is str or (kind is int and -_SMALL < item < _SMALL) or item is None or kind is bool):
            return None
    return _encode(items).encode("ascii")


def uncrowded(packed):
    """The same wire form, if the other side takes so many parts. Raises NotPortable."""
    if is_crowded(packed):
        raise NotPortable("has more than %d lists and dicts, or %d items" % (MAX_CONTAINERS, MAX_ITEMS))
    return packed


def is_crowded(data):
    """Whether bytes that may be a wire form have more parts than one message may have; those in texts do not count."""
    if len(data) <= MAX_CONTAINERS or not _is_over(data.count(b"[") + data.count(b"{"), data.count(b",")):
        return False
    bare = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    outside = b"".join(bare.split(b'"', 4 * MAX_ITEMS)[::2])  # every other piece is a text
    return _is_over(outside.count(b"[") + outside.count(b"{"), outside.count(b","))


def _is_over(containers, items):
    return containers > MAX_CONTAINERS or items > MAX_ITEMS


def _fast_encode():
    """`JSONEncoder.encode` without the encoder it makes anew for each value, which costs as much as a small value."""
    slow = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    make, text = json.encoder.c_make_encoder, json.encoder.encode_basestring_ascii
    if make is None:
        return slow.encode
    chunks = make(None, slow.default, text, None, ":", ",", False, False, False)
    return lambda value: text(value) if type(value) is str else "".join(chunks(value, 0))


_encode = _fast_encode()


def _no_constant(name):
    raise Malformed("%s is not part of the wire form" % name)


_scan = json.JSONDecoder(parse_constant=_no_constant).scan_once


def loads(data):
    """The value of a wire form. Trusts nothing: raises Malformed for whatever `dumps` cannot have written."""
    try:
        text = data.decode("utf-8")
        value, end = _scan(text, 0)
        if end != len(text) and not text[end:].isspace():
            raise Malformed("not a wire form: something follows the value")
        if _MARK in data or (len(data) > MAX_DEPTH and data.count(b"[") + data.count(b"{") > MAX_DEPTH):
            return unpack(value, 0)
        return value
    except Malformed:
        raise
    except (ValueError, TypeError, StopIteration, RecursionError, ArithmeticError, MemoryError) as e:
        raise Malformed("not a wire form: %s" % type(e).__name__) from None


def pack(value, depth=0):
    """The value in JSON types and tags; returned as it is where nothing needs a tag."""
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return value
    if kind is int:
        return value if value.bit_length() <= PLAIN_INT_BITS else {"$": "int", "v": hex(value)}
    if kind is float:
        return value if value - value == 0 else {"$": "float", "v": repr(value)}
    if depth > MAX_DEPTH:
        raise NotPortable("is nested deeper than %d levels, or contains itself" % MAX_DEPTH)
    if kind is list:
        return _pack_items(value, depth)
    if kind is dict:
        return _pack_dict(value, depth)
    if kind is tuple:
        return {"$": "tuple", "v": _pack_items(value, depth + 1)}  # a tag is a level too, as `unpack` counts
    return _pack_other(value, kind, depth)


def _pack_items(items, depth):
    packed = []
    try:
        for item in items:
            kind = type(item)  # most items need no call
            as_is = kind is str or (kind is int and -_SMALL < item < _SMALL)
            packed.append(item if as_is else pack(item, depth + 1))
    except NotPortable as e:
        e.keys.append(str(len(packed)))
        raise
    return packed


def _pack_dict(value, depth):
    plain, key = {}, None
    try:
        for key, item in dict.items(value):
            if type(key) is not str or key == "$":
                return {"$": "dict", "v": _pack_pairs(value, depth)}
            kind = type(item)
            as_is = kind is str or (kind is int and -_SMALL < item < _SMALL)
            plain[key] = item if as_is else pack(item, depth + 1)
    except NotPortable as e:
        e.keys.append(_safe_repr(key))
        raise
    return plain


def _pack_pairs(value, depth):
    pairs = []
    for key, item in dict.items(value):
        packed_key = pack(key, depth + 3)
        pairs.append([packed_key, pack(item, depth + 3)])
    return pairs


def _pack_other(value, kind, depth):
    if kind is bytes or issubclass(kind, (bytes, bytearray, memoryview)):
        return {"$": "bytes", "v": base64.b64encode(bytes(value)).decode("ascii")}
    if issubclass(kind, (set, frozenset)):
        members = sorted(_pack_items(value, depth + 1), key=_encode)  # an order that does not depend on the hash seed
        return {"$": "frozenset" if issubclass(kind, frozenset) else "set", "v": members}
    scalar = _pack_scalar(value, kind)
    if scalar is not None:
        return scalar
    return pack(_as_builtin(value, kind), depth)


def _pack_scalar(value, kind):
    import datetime
    import decimal
    import uuid

    for name, cls in (("datetime", datetime.datetime), ("date", datetime.date), ("time", datetime.time)):
        if issubclass(kind, cls):
            return {"$": name, "v": value.isoformat()}
    if issubclass(kind, datetime.timedelta):
        return {"$": "timedelta", "v": [value.days, value.seconds, value.microseconds]}
    if issubclass(kind, decimal.Decimal):
        return {"$": "decimal", "v": str(value)}
    if issubclass(kind, uuid.UUID):
        return {"$": "uuid", "v": str(value)}
    return None


def _as_builtin(value, kind):
    """Subclasses as their builtin, enums as their value, dataclasses and pydantic models as dicts."""
    import enum

    if issubclass(kind, enum.Enum):
        return value.value
    if hasattr(kind, "__dataclass_fields__"):
        return {name: getattr(value, name) for name in kind.__dataclass_fields__}
    if hasattr(kind, "__pydantic_validator__") and hasattr(kind, "model_fields"):
        return {name: getattr(value, name) for name in kind.model_fields}
    for builtin in (str, int, float, list, tuple, dict):
        if issubclass(kind, builtin):
            return dict(dict.items(value)) if builtin is dict else _plain(builtin, value)
    if _type_name(kind) == "coroutine":
        raise NotPortable("is a coroutine that was not awaited: write await before it")
    raise NotPortable("is %s, which cannot cross the wall: %s" % (_type_name(kind), _HINT))


def _plain(builtin, value):
    if builtin is str:
        return str.__str__(value)
    if builtin in (int, float):
        return builtin.__add__(value, builtin(0))
    return builtin(builtin.__iter__(value))


def _type_name(kind):
    module = getattr(kind, "__module__", "")
    return kind.__qualname__ if module in ("builtins", "__main__") else "%s.%s" % (module, kind.__qualname__)


def _safe_repr(key):
    is_plain = type(key) in (str, float, bool, type(None)) or (type(key) is int and key.bit_length() <= PLAIN_INT_BITS)
    return repr(key) if is_plain else "<key of type %s>" % _type_name(type(key))


def unpack(value, depth=0):
    """The value a packed form stands for. Raises Malformed."""
    kind = type(value)
    if kind is list:
        if depth > MAX_DEPTH + AROUND:
            raise Malformed("nested deeper than %d levels" % MAX_DEPTH)
        return [unpack(item, depth + 1) for item in value]
    if kind is dict:
        if depth > MAX_DEPTH + AROUND:
            raise Malformed("nested deeper than %d levels" % MAX_DEPTH)
        if "$" not in value:
            return {key: unpack(item, depth + 1) for key, item in value.items()}
        return _unpack_tag(value, depth)
    return value


def _unpack_tag(value, depth):
    if len(value) != 2 or "v" not in value or type(value["$"]) is not str:
        raise Malformed("a tag has the keys '$' and 'v'")
    reader = _READERS.get(value["$"])
    if reader is None:
        raise Malformed("unknown tag %.40r" % value["$"])
    return reader(value["v"], depth + 1)


def _text(v):
    if type(v) is not str:
        raise Malformed("a tag's text is missing")
    return v


def _items(v, depth):
    if type(v) is not list:
        raise Malformed("a tag's items are missing")
    return unpack(v, depth)


def _float(v, _depth):
    if v not in ("nan", "inf", "-inf"):
        raise Malformed("not a float")
    return float(v)


def _dict(v, depth):
    pairs = _items(v, depth)
    if any(type(pair) is not list or len(pair) != 2 for pair in pairs):
        raise Malformed("a dict is pairs")
    return dict(pairs)


def _datetime(v, _depth):
    import datetime

    return datetime.datetime.fromisoformat(_text(v))


def _date(v, _depth):
    import datetime

    return datetime.date.fromisoformat(_text(v))


def _time(v, _depth):
    import datetime

    return datetime.time.fromisoformat(_text(v))


def _timedelta(v, depth):
    import datetime

    days, seconds, microseconds = _items(v, depth)
    return datetime.timedelta(days=days, seconds=seconds, microseconds=microseconds)


def _decimal(v, _depth):
    import decimal

    return decimal.Decimal(_text(v))


def _uuid(v, _depth):
    import uuid

    return uuid.UUID(_text(v))


_READERS = {
    "int": lambda v, _depth: int(_text(v), 16),
    "float": _float,
    "bytes": lambda v, _depth: base64.b64decode(_text(v), validate=True),
    "tuple": lambda v, depth: tuple(_items(v, depth)),
    "set": lambda v, depth: set(_items(v, depth)),
    "frozenset": lambda v, depth: frozenset(_items(v, depth)),
    "dict": _dict,
    "datetime": _datetime,
    "date": _date,
    "time": _time,
    "timedelta": _timedelta,
    "decimal": _decimal,
    "uuid": _uuid,
}
