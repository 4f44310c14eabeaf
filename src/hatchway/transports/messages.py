"""The messages between host and guest, written and checked on the host's side. README.md lists them."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from hatchway.core import codec
from hatchway.core.calls import FunctionCall, FunctionSignature, as_signature, function_call
from hatchway.core.errors import TransportError, ValueNotPortable, described
from hatchway.core.limits import Limits
from hatchway.core.recording import RecordedAnswer
from hatchway.core.results import DISPLAY_TYPES
from hatchway.core.sandbox import Functions
from hatchway.core.transport import Completed, Displayed, Failed, FailureKind, Idle, TransportConfig
from hatchway.core.values import not_portable, to_wire

MAX_ID, MAX_NAME = 64, 200
TRAIL = ("answers", "task", "clock", "together", "dropped", "line", "beside", "given")
"""What a call tells about the way to it, see `guest/trail.py`; the last two are the host's words."""
_STR = frozenset([str])
_quoted = json.encoder.encode_basestring_ascii
_encoded = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_BEGINNINGS = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
}
"""How pictures begin: what calls itself one and is not would reach whoever opens it."""
_KINDS = get_args(FailureKind)

Message = FunctionCall | Idle | Displayed | Completed | Failed | None
"""What a line says; None is the guest's `ready`."""


@dataclass(frozen=True, slots=True)
class Again:
    """What makes an action repeatable."""

    seed: bytes
    """What it draws its randomness from: derived from the run's seed, which stays outside."""
    clock: Sequence[Sequence[int]] = ()
    """What it read from the clocks before, a list per call it then made."""
    is_again: bool = False
    """It is run again: each call tells its line."""


def execute(
    code: str,
    functions: Functions,
    inputs: Mapping[str, Any],
    limits: Limits,
    *,
    is_session: bool,
    again: Again | None = None,
    config: TransportConfig | None = None,
) -> bytes:
    """The order to run an action, with its calls going over this channel or, by `config`, over another.

    Raises:
        ValueNotPortable: An input cannot cross.
    """
    order = {
        "type": "execute",
        "code": code,
        "functions": [spec(as_signature(f)) for f in functions],
        "limits": {
            "value_bytes": limits.value_bytes,
            "memory_bytes": limits.memory_bytes,
            "open_files": limits.open_files,
            "file_bytes": limits.file_bytes,
            "processes": limits.processes,
            "display_bytes": min(limits.display_bytes, limits.value_bytes * 3 // 4),
        },
        "is_session": is_session,
        "stub_code": config.stub_code if config else None,
        "env_vars": dict(config.env_vars) if config else {},
    }
    if again is not None:
        order |= {"seed": again.seed.hex(), "clock": again.clock, "is_again": again.is_again}
    packed = to_wire(dict(inputs), root="inputs")
    if len(packed) > limits.value_bytes:
        raise too_large("inputs", len(packed), limits.value_bytes)
    return _encoded(order).encode("ascii")[:-1] + b',"inputs":' + packed + b"}\n"  # all of it plain JSON


def spec(function: FunctionSignature) -> dict[str, Any]:
    """A signature as the guest is told it."""
    return {"name": function.name, "is_async": function.is_async, "stub": function.stub or _bare_stub(function)}


def _bare_stub(function: FunctionSignature) -> str:
    """Text that has at least the parameters, for a function that came without its own."""
    if function.parameters is None:
        return ""
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in function.parameters.parameters.values()]
    name = function.name.rpartition(".")[2]
    return f"{'async ' if function.is_async else ''}def {name}{inspect.Signature(plain)}: ..."


def result(call_id: str, value: Any, *, limit: int) -> bytes:
    """The answer to a call.

    Raises:
        ValueNotPortable: The value cannot cross, or takes more than `limit` bytes.
    """
    try:
        packed = codec.dumps(value)
    except codec.NotPortable as e:
        raise not_portable(e, "result") from None
    if len(packed) > limit:
        raise too_large("the result", len(packed), limit)
    return b'{"type":"result","call_id":%s,"value":%s}\n' % (_quoted(call_id).encode("ascii"), packed)


def error(call_id: str, raised: BaseException) -> bytes:
    """The answer to a call that failed."""
    told = described(raised)
    message = told["message"]
    if isinstance(raised, KeyError) and len(raised.args) == 1 and isinstance(raised.args[0], str):
        message = raised.args[0]  # str() of a KeyError quotes its key, and the guest's would quote it again
    return to_wire({"type": "error", "call_id": call_id, "error_type": told["type"], "message": message}) + b"\n"


def too_large(what: str, size: int, limit: int) -> ValueNotPortable:
    """The error for a value past `Limits.value_bytes`."""
    message = f"{what} takes {size} bytes on the wire, Limits.value_bytes is {limit}"
    return ValueNotPortable(message, path=what, hint="raise Limits.value_bytes, or give less at a time")


def parse(line: bytes) -> tuple[Message, int | None]:
    """What a line from a guest says, and the standstill it claims if one rides on a call. Trusts nothing.

    What else rides on a call (`TRAIL`) is not looked at: it is for running the code again, and of no other use.

    Raises:
        TransportError: It is no message.
    """
    if codec.is_crowded(line):
        raise TransportError("a message has more parts than the host takes")
    try:
        message: Any = codec.loads(line)
    except codec.Malformed as e:
        raise TransportError(f"a message is not readable: {e}") from None
    if type(message) is not dict:
        raise TransportError("a message is not an object")
    fields: dict[str, Any] = message  # pyright: ignore[reportUnknownVariableType]  # JSON keys are strings
    kind = fields.get("type")
    if kind == "function_call":
        idle = fields.get("idle")
        return _call(fields), None if idle is None else _count(idle)
    match kind:
        case "idle":
            if fields.get("answers") is None:
                raise TransportError("an idle message without its count")
            return Idle(_count(fields["answers"])), None
        case "execution_complete":
            return Completed(fields.get("output")), None
        case "execution_failed":
            return _failed(fields), None
        case "display":
            return _displayed(fields), None
        case "ready":
            return None, None
        case _:
            raise TransportError("a message of unknown type")


def trail_of(line: bytes) -> dict[str, Any]:
    """What a line that was a call tells about the way to it."""
    fields: dict[str, Any] = codec.loads(line)
    trail = {name: fields[name] for name in TRAIL if name in fields}
    if "idle" in fields:
        trail.setdefault("answers", fields["idle"])
    return trail


def beside(call: FunctionCall, *, answers: int) -> bytes:
    """A call that the code made beside its channel, as a line; there were so many answers then."""
    fields = {"type": "function_call", "call_id": call.call_id, "function_name": call.function_name}
    fields |= {"args": list(call.args), "kwargs": dict(call.kwargs), "answers": answers, "beside": True}
    return codec.dumps(fields) + b"\n"


def answer(recorded: RecordedAnswer, *, limit: int) -> bytes:
    """An answer that was given before.

    Raises:
        ValueNotPortable: As `result`.
    """
    if recorded.error is not None:
        return error(recorded.call_id, recorded.error)
    return result(recorded.call_id, recorded.value, limit=limit)


def answers(frames: Sequence[bytes]) -> bytes:
    """Several answers as one message, taken in by the guest at once."""
    return b'{"type":"answers","answers":[%s]}\n' % b",".join(frame.rstrip(b"\n") for frame in frames)


def _call(fields: dict[str, Any]) -> FunctionCall:
    try:
        call_id, name, args, kwargs = fields["call_id"], fields["function_name"], fields["args"], fields["kwargs"]
    except KeyError as e:
        raise TransportError(f"a call without its {e.args[0]}") from None
    if type(call_id) is not str or not (0 < len(call_id) <= MAX_ID and call_id.isascii() and call_id.isprintable()):
        raise TransportError("a call without a proper id")
    if type(name) is not str or not 0 < len(name) <= MAX_NAME:
        raise TransportError("a call without a proper function name")
    if (type(args), type(kwargs)) != (list, dict) or (kwargs and not _STR.issuperset(map(type, kwargs))):
        raise TransportError("a call without proper arguments")
    return function_call(call_id, name, tuple(args), kwargs)


def _displayed(fields: dict[str, Any]) -> Displayed:
    mime_type, data, text = fields.get("mime_type"), fields.get("data"), fields.get("text")
    if type(mime_type) is not str or mime_type not in DISPLAY_TYPES or type(text) is not str:
        raise TransportError("a display without a proper type or text")
    if mime_type in _BEGINNINGS:
        if type(data) is not bytes or not _BEGINNINGS[mime_type].match(data):
            raise TransportError(f"a display that is not {mime_type}")
    elif type(data) is not str:
        raise TransportError("a display without its text")
    content = data if isinstance(data, bytes) else data.encode("utf-8", "replace")
    return Displayed(mime_type=mime_type, content=content, text=text)


def _failed(fields: dict[str, Any]) -> Failed:
    kind, message = fields.get("kind", ""), fields.get("message")
    if kind not in _KINDS or type(message) is not str:
        raise TransportError("a failure without its kind or message")
    return Failed(kind=kind, message=message)


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise TransportError("an idle claim without a proper count")
    return value
