"""Questions at a real pseudo-terminal."""

import asyncio
import io
import os
import pty
from collections.abc import Iterator

import pytest
from rich.console import Console

from hatchway.cli.prompt import NotApproved, Person, decided, nobody, say_yes
from hatchway.cli.terminal import Terminal
from hatchway.core.decisions import Allow, Decision, Deny
from hatchway.core.events import ApprovalRequest

pytestmark = pytest.mark.anyio


@pytest.fixture
def keyboard() -> Iterator[tuple[int, int]]:
    """The two ends of a terminal: where a person types, and what the program reads."""
    person, program = pty.openpty()
    yield person, program
    for fd in (person, program):
        os.close(fd)


async def answered(
    keyboard: tuple[int, int], *lines: bytes, screen: io.StringIO | None = None, **args: object
) -> Decision:
    """The decision when a person types each line once the question for it is on the screen."""
    person, program = keyboard
    screen = screen or io.StringIO()
    ask = Person(Terminal(program), Console(file=screen, width=80))
    asking = asyncio.ensure_future(ask(ApprovalRequest("send", args, call_id="1")))
    for number, line in enumerate(lines, 1):
        while screen.getvalue().count("›") < number:
            await asyncio.sleep(0.01)
        os.write(person, line)
    return await asyncio.wait_for(asking, 5)


@pytest.mark.parametrize(
    ("typed", "decision"),
    [
        ([b"\n"], Allow()),
        ([b"y\n"], Allow()),
        ([b"YES\n"], Allow()),
        ([b"n\n"], Deny("the person said no")),
        ([b"n too much money\n"], Deny("too much money")),
        ([b"maybe\n", b"y\n"], Allow()),
    ],
)
async def test_what_is_typed_decides(keyboard: tuple[int, int], typed: list[bytes], decision: Decision) -> None:
    assert await answered(keyboard, *typed, to="ada") == decision


async def test_what_was_typed_before_the_question_is_no_answer(keyboard: tuple[int, int]) -> None:
    os.write(keyboard[0], b"y\ny\n")
    await asyncio.sleep(0.05)
    assert await answered(keyboard, b"n later\n") == Deny("later")


async def test_the_question_shows_all_arguments_and_d_shows_what_was_cut(keyboard: tuple[int, int]) -> None:
    screen = io.StringIO()
    body = "begin" + "x" * 900 + "\x1b[2J" + "y" * 900 + "end"
    decision = await answered(keyboard, b"d\n", b"y\n", screen=screen, body=body)
    first, second = screen.getvalue().split("allow?")[:2]
    assert decision == Allow()
    assert "send asks for approval" in first
    assert "more characters" in first
    assert "more characters" not in second
    assert "\\x1b[2J" in second.replace(" │\n│ ", "")
    assert "\x1b" not in screen.getvalue()


async def test_a_closed_terminal_is_not_a_yes(keyboard: tuple[int, int]) -> None:
    with pytest.raises(NotApproved, match="the input ended before an answer came; y allows it, n refuses it"):
        await answered(keyboard, b"\x04")


async def test_a_cancelled_question_leaves_nothing_behind(keyboard: tuple[int, int]) -> None:
    waiting = asyncio.ensure_future(Terminal(keyboard[1]).line())
    await asyncio.sleep(0.02)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert asyncio.get_running_loop().remove_reader(keyboard[1]) is False


async def test_yes_and_nobody() -> None:
    request = ApprovalRequest("send", {}, call_id="1")
    assert await say_yes(request) == Allow()
    with pytest.raises(NotApproved) as e:
        await nobody(request)
    assert e.value.exit_code == 4
    assert e.value.message == (
        "the call of send needs approval: run it in a terminal to be asked, or with --yes to allow every call"
    )


def test_words_that_are_no_answer() -> None:
    assert [decided(word) for word in ("maybe", "yes please", "ny", "1")] == [None] * 4
