"""Messages from a guest: whatever bytes come, a checked message or a TransportError goes on."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchway.core.calls import FunctionCall, FunctionSignature
from hatchway.core.errors import TransportError
from hatchway.core.transport import Completed, Displayed, Failed, Idle
from hatchway.transports import messages

KEYS = (
    "type",
    "call_id",
    "function_name",
    "args",
    "kwargs",
    "idle",
    "answers",
    "output",
    "kind",
    "message",
    "mime_type",
    "data",
    "text",
    "$",
    "v",
)
TYPES = ("display", "function_call", "idle", "execution_complete", "execution_failed", "ready", "execute", "")
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.sampled_from(TYPES)
)
ANYTHING = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6)
)


@given(st.binary(max_size=200) | ANYTHING.map(lambda value: json.dumps(value).encode()))
def test_anything_is_a_checked_message_or_refused(line: bytes) -> None:
    try:
        message, idle = messages.parse(line)
    except TransportError:
        return
    assert message is None or isinstance(message, FunctionCall | Idle | Displayed | Completed | Failed)
    assert idle is None or idle >= 0


@given(st.dictionaries(st.sampled_from(KEYS), ANYTHING, max_size=8), st.sampled_from(TYPES))
def test_anything_in_a_messages_fields(fields: dict[str, Any], kind: str) -> None:
    line = json.dumps({**fields, "type": kind}).encode()
    try:
        message, _ = messages.parse(line)
    except TransportError:
        return
    if isinstance(message, FunctionCall):
        assert 0 < len(message.call_id) <= 64
        assert 0 < len(message.function_name) <= 200
        assert all(isinstance(key, str) for key in message.kwargs)


def test_a_call_with_a_claim_on_it() -> None:
    line = (
        b'{"type":"function_call","call_id":"1.7","function_name":"a.b","args":[1],"kwargs":{"x":2},"idle":3,"more":0}'
    )
    message, idle = messages.parse(line)
    assert message == FunctionCall(call_id="1.7", function_name="a.b", args=(1,), kwargs={"x": 2})
    assert idle == 3


@pytest.mark.parametrize("call_id", ["", "ä", "x" * 65, "a\n", "\x1b[31m", 1, None])
def test_ids_that_are_refused(call_id: object) -> None:
    fields = {"type": "function_call", "call_id": call_id, "function_name": "f", "args": [], "kwargs": {}}
    with pytest.raises(TransportError, match="a call without a proper id"):
        messages.parse(json.dumps(fields).encode())


def test_a_function_that_came_without_a_stub_still_tells_its_parameters() -> None:
    def resize(image: bytes, width: int = 10, *, keep: bool = True) -> None: ...

    import inspect

    bare = FunctionSignature(name="tools.resize", parameters=inspect.signature(resize), is_async=True)
    assert messages.spec(bare) == {
        "name": "tools.resize",
        "is_async": True,
        "stub": "async def resize(image, width=10, *, keep=True): ...",
    }


def test_an_errors_class_and_message() -> None:
    assert json.loads(messages.error("1", ValueError("bad"))) == {
        "type": "error",
        "call_id": "1",
        "error_type": "ValueError",
        "message": "bad",
    }
    assert json.loads(messages.error("1", KeyError("k")))["message"] == "k"
    assert json.loads(messages.error("1", KeyError(7)))["message"] == "7"


def test_odd_ids_are_quoted_in_answers() -> None:
    for call_id in ('a"b', "a\\b", "a b", "{}"):
        assert json.loads(messages.result(call_id, 1, limit=100)) == {"type": "result", "call_id": call_id, "value": 1}
        assert json.loads(messages.error(call_id, ValueError()))["call_id"] == call_id


PNG = base64.b64encode(b"\x89PNG\r\n\x1a\nrest").decode()


def test_a_display_is_what_it_says_it_is() -> None:
    shown = {"type": "display", "mime_type": "image/png", "data": {"$": "bytes", "v": PNG}, "text": "<a>"}
    message, _ = messages.parse(json.dumps(shown).encode())
    assert message == Displayed(mime_type="image/png", content=b"\x89PNG\r\n\x1a\nrest", text="<a>")
    message, _ = messages.parse(b'{"type":"display","mime_type":"text/html","data":"\\u00fc\\ud800","text":""}')
    assert message == Displayed(mime_type="text/html", content="ü?".encode(), text="")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"mime_type": "text/x-python"}, "a display without a proper type or text"),
        ({"mime_type": ["image/png"]}, "a display without a proper type or text"),
        ({"mime_type": "image/jpeg"}, "a display that is not image/jpeg"),
        ({"mime_type": "image/webp"}, "a display that is not image/webp"),
        ({"mime_type": "text/html"}, "a display without its text"),
        ({"data": "text"}, "a display that is not image/png"),
        ({"data": None}, "a display that is not image/png"),
        ({"text": 5}, "a display without a proper type or text"),
    ],
)
def test_a_display_that_is_not(change: dict[str, Any], told: str) -> None:
    shown = {"type": "display", "mime_type": "image/png", "data": {"$": "bytes", "v": PNG}, "text": "", **change}
    with pytest.raises(TransportError) as refused:
        messages.parse(json.dumps(shown).encode())
    assert refused.value.message == told
