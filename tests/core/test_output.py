"""Output that is kept: whole below the limit, cut in the middle and counted above it."""

import re

from hypothesis import given
from hypothesis import strategies as st

from hatchway.core.output import OutputBuffer

TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), max_size=30)


def kept(limit: int, *pieces: str) -> OutputBuffer:
    buffer = OutputBuffer(limit)
    for piece in pieces:
        buffer.append(piece)
    return buffer


@given(TEXTS, st.integers(1, 400))
def test_what_is_kept_and_what_is_counted_is_all_there_was(pieces: list[str], limit: int) -> None:
    whole = "".join(pieces)
    size = len(whole.encode())
    buffer = kept(limit, *pieces)
    if size <= limit:
        assert (buffer.text(), buffer.cut) == (whole, 0)
        return
    head, cut, tail = re.split(r"\n… (\d+) bytes cut …\n", buffer.text(), maxsplit=1)
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert len((head + tail).encode()) + int(cut) == size
    assert len((head + tail).encode()) <= limit
    assert limit - len((head + tail).encode()) <= 6  # at most half a character on each side


def test_the_notice() -> None:
    assert kept(10, "0123456789").text() == "0123456789"
    assert kept(10, "01234567890123456789").text() == "01234\n… 10 bytes cut …\n56789"


def test_a_million_small_pieces_stay_small() -> None:
    buffer = OutputBuffer(1000)
    for _ in range(100_000):
        buffer.append("ab")
    assert buffer.cut == 199_000


def test_lone_surrogates_do_not_break_it() -> None:
    assert kept(100, "a\ud800b").text() == "a?b"
