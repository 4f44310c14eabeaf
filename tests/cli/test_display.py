"""What is shown of text from code and tools."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from hatchway.cli.display import call_source, call_text, code_block, cut, make_console, neutral, value_text
from hatchway.trace.text import NeutralPieces

EMOJI = "[\u2194\u2195\u2600-\u27bf\u2b1b\U0001f300-\U0001faff]"
JOINED = f"(?<={EMOJI})\ufe0f?\u200d(?={EMOJI})"
NASTY = st.text(st.characters(exclude_categories=()) | st.sampled_from("\x1b\x07\x9b\r\b\x00\u202e\u2066\u2028\ud800"))


@given(NASTY)
def test_nothing_a_terminal_acts_on_is_left(text: str) -> None:
    shown = neutral(text)
    left = {c for c in re.sub(JOINED, "", shown) if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"}}
    assert left <= {"\n", "\t"}
    shown.encode("utf-8")


@given(NASTY)
def test_neutral_text_stays_as_it_is(text: str) -> None:
    once = neutral(text)
    assert neutral(once) == once


@given(st.text(st.characters(categories=("L", "N", "P", "S", "Zs")) | st.sampled_from("\n\t")))
def test_plain_text_is_not_touched(text: str) -> None:
    assert neutral(text) == text


def test_sequences_are_shown_as_escapes() -> None:
    assert neutral("\x1b[2J\x1b]0;title\x07") == "\\x1b[2J\\x1b]0;title\\x07"
    assert neutral("a\rb\bc\x9bm") == "a\\x0db\\x08c\\x9bm"
    assert neutral("evil\u202egnp.exe \U000e0041 \ud800") == "evil\\u202egnp.exe \\U000e0041 \\ud800"


FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
FARMER = "\U0001f469\U0001f3fd\u200d\U0001f33e"
RAINBOW = "\U0001f3f3\ufe0f\u200d\U0001f308"


@pytest.mark.parametrize("picture", [FAMILY, FARMER, RAINBOW])
def test_emoji_that_are_joined_to_one_picture_stay_joined(picture: str) -> None:
    assert neutral(f"hello {picture}!") == f"hello {picture}!"
    assert value_text({"who": picture}) == f"{{'who': '{picture}'}}"
    assert call_text("greet", {"who": picture}) == f"greet(who='{picture}')"


def test_a_joiner_between_anything_else_is_shown() -> None:
    assert neutral("pay\u200dpal a\ufe0f\u200d\U0001f308") == "pay\\u200dpal a\ufe0f\\u200d\U0001f308"
    assert neutral("\U0001f468\u200d\u202e\u200d\U0001f469") == "\U0001f468\\u200d\\u202e\\u200d\U0001f469"
    assert value_text("\U0001f468\\u200d\U0001f469") == "'\U0001f468\\\\u200d\U0001f469'"  # a backslash, no joiner


@given(NASTY | st.text(st.sampled_from([*FAMILY, *RAINBOW, "a", "\x1b", "\n"])), st.integers(1, 5))
def test_text_in_pieces_is_made_neutral_like_the_whole(text: str, size: int) -> None:
    pieces = NeutralPieces()
    shown = [pieces.feed(text[at : at + size]) for at in range(0, len(text), size)]
    assert "".join([*shown, pieces.end()]) == neutral(text)


def test_a_long_text_is_cut_in_the_middle() -> None:
    assert cut("a" * 10 + "b" * 10, 8) == "aaaa … 12 more characters … bbbb"
    assert cut("short", 8) == "short"


def test_a_call_reads_like_code() -> None:
    assert call_text("send", {"to": "ada", "n": 2}) == "send(to='ada', n=2)"
    assert call_text("x\x1b", {"a": "\x1b[31m"}) == "x\\x1b(a='\\x1b[31m')"


def test_values_are_neutral_even_when_their_repr_is_not() -> None:
    class Rude:
        def __repr__(self) -> str:
            return "\x1b[2J"

    assert value_text(Rude()) == "\\x1b[2J"


def test_a_call_shown_for_approval_says_when_it_was_cut() -> None:
    source, was_cut = call_source("send", {"to": "ada", "body": "x" * 50}, 20)
    assert source == "send(\n    to='ada',\n    body='xxxxxxxxx … 32 more characters … xxxxxxxxx',\n)"
    assert was_cut
    assert call_source("send", {"to": "ada"}, 20) == ("send(\n    to='ada',\n)", False)
    assert call_source("stop", {}, 20) == ("stop()", False)


@given(st.text(st.sampled_from("[]/bold red:smile@#\\'\" \n"), max_size=40))
def test_markup_from_a_guest_is_printed_literally(text: str) -> None:
    console = make_console()
    with console.capture() as capture:
        console.print(neutral(text), end="")
    assert capture.get() == text


@pytest.mark.parametrize("length", [0, 60_000])
def test_code_is_shown_without_control_sequences(length: int) -> None:
    console = Console(width=60, force_terminal=False)
    with console.capture() as capture:
        console.print(code_block("print('\x1b[2J')\n" + "#" * length))
    assert "\x1b" not in capture.get()
    assert "print('\\x1b[2J')" in capture.get()
