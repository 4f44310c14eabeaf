"""A call as a message: what is known of a tool beforehand, and its arguments packed."""

from . import codec, sizes
from .async_call import AsyncCall


def head(name):
    """The beginning of a tool's call messages, with a place for the id."""
    quoted = codec.dumps(name).replace(b"%", b"%%")
    return b'{"type":"function_call","call_id":"%s","function_name":' + quoted


def packed(name, args, kwargs, limit):
    """The end of a call's message. Raises TypeError for what cannot cross, ValueError past the limit."""
    plain = None if kwargs else codec.dumps_plain(args)
    if plain is not None:
        data = b',"args":%s,"kwargs":{}}\n' % plain
        if len(data) <= limit:
            return data
    elif not (sizes.is_over(args, limit) or (kwargs and sizes.is_over(kwargs.values(), limit))):
        data = b',"args":%s,"kwargs":%s}\n' % (
            _packed(name, "args", list(args)),
            _packed(name, "kwargs", kwargs) if kwargs else b"{}",
        )
        if len(data) <= limit:
            return data
    told = "%s(): the arguments take more bytes on the wire than Limits.value_bytes, %d: pass less at a time"
    raise ValueError(told % (name, limit))


def _packed(name, root, value):
    try:
        return codec.uncrowded(codec.dumps(value))
    except codec.NotPortable as e:
        told = "%s(): %s %s" % (name, e.path(root), e.reason)
        calls = _async_calls(value, 8)
        raise TypeError("\n".join([told, *(call.hint() for call in calls)])) from None


def _async_calls(value, depth):
    """Calls that were not awaited, in what was to be an argument."""
    if isinstance(value, AsyncCall):
        return [value]
    items = value.values() if type(value) is dict else value if type(value) in (list, tuple, set) else ()
    return [call for item in items for call in _async_calls(item, depth - 1)] if depth else []
