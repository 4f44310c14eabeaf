"""Arguments by name: what the code gave by place is told under the names of the tool's parameters."""

from typing import Any

import pytest

from hatchway.core.calls import FunctionCall, FunctionSignature
from hatchway.journal.names import ArgumentNames

STUBS = {
    "send": 'def send(to: str, text: str = "x", *more: int, urgent: bool = False) -> None:\n    """Send."""\n    ...',
    "mail.post": "async def post(body: str, /, sign: bool) -> None: ...",
    "bare": "",
    "broken": "def (",
}
NAMES = ArgumentNames(FunctionSignature(name=name, stub=stub) for name, stub in STUBS.items())


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "left", "named"),
    [
        ("send", ("ada",), {}, (), {"to": "ada"}),
        ("send", ("ada", "hi"), {"urgent": True}, (), {"to": "ada", "text": "hi", "urgent": True}),
        ("send", ("ada", "hi", 1, 2), {}, (1, 2), {"to": "ada", "text": "hi"}),
        ("send", ("ada",), {"to": "bob"}, ("ada",), {"to": "bob"}),
        ("send", (), {"to": "bob"}, (), {"to": "bob"}),
        ("mail.post", ("hi", True), {}, (), {"body": "hi", "sign": True}),
        ("bare", (1,), {}, (1,), {}),
        ("broken", (1,), {}, (1,), {}),
        ("unknown", (1,), {"x": 2}, (1,), {"x": 2}),
    ],
)
def test_what_each_argument_is_called(name: str, args: Any, kwargs: Any, left: Any, named: Any) -> None:
    told = NAMES.named(FunctionCall(call_id="1", function_name=name, args=args, kwargs=kwargs))
    assert (told.args, told.kwargs, told.function_name, told.call_id) == (left, named, name, "1")
