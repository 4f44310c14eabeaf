"""Output is split at the mark wherever the pieces break, and nothing is held back that is not the mark."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hatchway.executors.marked_stream import MarkedStream, StreamText

MARK = b"0123"


def split(pieces: list[bytes], room: int = 100) -> tuple[str, tuple[str, bytes] | None, bool]:
    text = StreamText("stdout", 10_000, None)
    stream = MarkedStream(MARK, text, room)
    for piece in pieces:
        stream.take(piece)
    told = stream.finish()
    return text.text(), told, stream.is_cut


@given(st.lists(st.sampled_from([b"a", b"\n", b"\n0", b"\n01", b"0123", b"\n012", b" ", b"x\n"])), st.data())
def test_the_mark_is_found_however_the_bytes_come(parts: list[bytes], data: st.DataObject) -> None:
    output = b"".join(parts).replace(b"\n0123 ", b"")
    whole = output + b"\n0123 7\nrest\n"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)))))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert split(pieces) == (output.decode(), ("7", b"rest\n"), False)


def test_without_the_mark_everything_is_output() -> None:
    assert split([b"a\n0", b"12", b"3x"]) == ("a\n0123x", None, False)
    assert split([b"a\n0123"]) == ("a\n0123", None, False)


def test_output_is_handed_on_at_once() -> None:
    seen: list[str] = []
    stream = MarkedStream(MARK, StreamText("stdout", 100, lambda _, text: seen.append(text)), 100)
    stream.take(b"up\n")
    assert seen == ["up"]
    stream.take(b"\n01x")
    assert seen == ["up", "\n\n01x"]


def test_what_stands_behind_has_room_up_to_a_limit() -> None:
    assert split([b"\n0123 0\n" + b"x" * 50, b"y" * 50], room=60) == ("", ("0", b"x" * 50 + b"y" * 8), True)
