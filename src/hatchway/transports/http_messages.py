"""What a guest may say over HTTP, checked for shape. Its values are decoded; nothing in it is believed."""

from __future__ import annotations

import re
from typing import Any, cast

from hatchway.core.calls import FunctionCall
from hatchway.core.codec import Malformed
from hatchway.core.transport import Completed, Failed, Idle
from hatchway.core.values import from_wire
from hatchway.transports.http_head import Refused

MAX_ID_CHARS = 64
MAX_NAME_CHARS = 256
MAX_ERROR_CHARS = 1024 * 1024
"""Characters of a failed action's traceback."""

Message = dict[str, Any]
_KINDS = ("syntax", "runtime", "value", "memory")
_ID = re.compile(r"[!-~]{1,%d}" % MAX_ID_CHARS)


def decoded(body: bytes) -> Message:
    """The message in a body. Raises Refused."""
    try:
        message: object = from_wire(body)
    except Malformed as e:
        raise Refused(400, f"the body is not a message: {e}") from None
    if type(message) is not dict:
        raise Refused(400, "a message is a JSON object")
    return cast(Message, message)


def call_of(message: Message) -> FunctionCall:
    """The call a message makes; its id is empty when the guest gave none. Raises Refused."""
    _expect(message.get("type") == "function_call", "type", "'function_call'")
    name, args, kwargs = message.get("function_name"), message.get("args", []), message.get("kwargs", {})
    call_id = message.get("call_id", "")
    _expect(type(name) is str and 0 < len(name) <= MAX_NAME_CHARS, "function_name", "a name")
    _expect(type(args) is list, "args", "a list")
    _expect(type(kwargs) is dict and all(type(key) is str for key in kwargs), "kwargs", "an object")
    _expect(call_id == "" or (type(call_id) is str and _ID.fullmatch(call_id) is not None), "call_id", "a short id")
    return FunctionCall(call_id=call_id, function_name=name, args=tuple(args), kwargs=kwargs)


def claim_of(message: Message, field: str) -> Idle | None:
    """The claim of a guest that it cannot go on, if the message has one in `field`. Raises Refused."""
    answers = message.get(field)
    if answers is None:
        return None
    _expect(type(answers) is int and answers >= 0, field, "the number of answers received")
    return Idle(answers)


def end_of(message: Message) -> Completed | Failed:
    """How the code ended. Raises Refused."""
    kind, text = message.get("kind", "runtime"), message.get("message", "")
    match message.get("type"):
        case "execution_complete":
            return Completed(message.get("output"))
        case "execution_failed":
            _expect(kind in _KINDS, "kind", f"one of {', '.join(_KINDS)}")
            _expect(type(text) is str and len(text) <= MAX_ERROR_CHARS, "message", "a text")
            return Failed(kind=kind, message=text)
        case _:
            raise Refused(400, "type has to be 'execution_complete' or 'execution_failed'")


def _expect(is_right: bool, field: str, what: str) -> None:
    if not is_right:
        raise Refused(400, f"{field} has to be {what}")
