"""Words for all vendors: each is written as the vendor sends it, and read back by the layer that reads vendors."""

from typing import Any

import pytest

from hatchway.core.errors import InvalidSetting
from hatchway.hosted.anthropic.reading import read_message
from hatchway.hosted.code import Answer
from hatchway.hosted.gemini.reading import read_response as read_gemini
from hatchway.hosted.openai.reading import read_response as read_openai
from hatchway.testing import CallsTool, CodeEnded, RanCode, VendorSays

READERS: dict[str, Any] = {
    "openai": lambda told: read_openai(told, []),
    "anthropic": lambda told: read_message(told, []),
    "gemini": read_gemini,
}
every_vendor = pytest.mark.parametrize("provider", list(READERS))


def answer(provider: str, says: VendorSays) -> Answer:
    return READERS[provider](says.response(provider))


@every_vendor
def test_text_and_code(provider: str) -> None:
    told = answer(provider, VendorSays(RanCode("a", "A"), "one ", RanCode("b", "B", failed=True), "two"))
    assert (told.text, told.stop, told.unknown) == ("one two", "end", ())
    assert [(code.call.code, code.text, code.success) for code in told.codes] == [
        ("a", "A", None if provider == "openai" else True),
        ("b", "B", False),
    ]
    assert (told.input_tokens, told.output_tokens) == (7, 3)


@every_vendor
def test_calls_of_the_model(provider: str) -> None:
    told = answer(provider, VendorSays("well", CallsTool("f", {"a": 1}), CallsTool("g", call_id="x")))
    assert told.stop == "calls"
    assert [(call.tool, call.arguments, call.is_from_code) for call in told.calls] == [
        ("f", {"a": 1}, False),
        ("g", {}, False),
    ]
    assert told.calls[1].call_id == "x"
    assert len({call.call_id for call in told.calls}) == 2


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_calls_of_code_and_its_end(provider: str) -> None:
    says = VendorSays(CallsTool("f", by="code"), CallsTool("g", by="code"))
    told = answer(provider, says)
    assert [(call.tool, call.is_from_code, call.parent_code_call_id) for call in told.calls] == [
        ("f", True, "code_1"),
        ("g", True, "code_1"),
    ]
    assert len(told.items if provider == "openai" else told.items[0]["content"]) == 3  # the code began once
    ended = answer(provider, VendorSays(CodeEnded("out"), "done"))
    assert [(code.call.call_id, code.text) for code in ended.codes] == [("code_1", "out")]


@every_vendor
def test_answers_that_are_withheld(provider: str) -> None:
    assert answer(provider, VendorSays("x", stop="filtered")).stop == "filtered"
    assert answer(provider, VendorSays("x", stop="cut")).stop == "incomplete"


def test_what_a_vendor_has_not() -> None:
    for piece in (CallsTool("f", by="code"), CodeEnded("x"), RanCode("x", files={"f": "a"})):
        with pytest.raises(InvalidSetting, match="code at gemini has no such thing"):
            VendorSays(piece).response("gemini")
    own = {"type": "hologram"}
    assert VendorSays(own).response("openai")["output"] == [own]
