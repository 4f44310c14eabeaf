"""The scripted model says its lines and remembers what it was asked."""

import pytest

from hatchway.testing import Reply, ScriptedModel, ScriptEnded

pytestmark = pytest.mark.anyio


async def test_lines_come_in_order_whatever_form_they_have() -> None:
    model = ScriptedModel(
        [Reply("first", code="1 + 1"), "second", lambda messages: Reply(f"seen {len(messages)}"), lambda _: "fourth"]
    )
    replies = [await model.reply(["task"] * n) for n in (1, 2, 3, 4)]
    assert replies == [Reply("first", "1 + 1"), Reply("second"), Reply("seen 3"), Reply("fourth")]
    assert [reply.code for reply in replies] == ["1 + 1", None, None, None]


async def test_the_messages_of_each_call_are_kept_as_they_were() -> None:
    model, messages = ScriptedModel(["a", "b"]), ["task"]
    await model.reply(messages)
    messages.append("result")
    await model.reply(messages)
    assert model.seen == [("task",), ("task", "result")]


async def test_a_call_past_the_end_says_how_long_the_script_was() -> None:
    model = ScriptedModel(["only"])
    await model.reply([])
    with pytest.raises(ScriptEnded, match=r"^the script has 1 lines, and the model was asked once more$"):
        await model.reply([])
