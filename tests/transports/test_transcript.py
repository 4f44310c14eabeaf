"""What a transcript keeps, and how little it takes."""

from __future__ import annotations

import tracemalloc

import pytest

from hatchway.transports import transcript as module
from hatchway.transports.transcript import BLOCK, PackedLines, SeenIds, Transcript

FEW = BLOCK // 80
"""About as many calls as are packed together."""


def call(n: int) -> bytes:
    return b'{"type":"function_call","call_id":"1.%d","function_name":"add","args":[%d,1],"kwargs":{}}' % (n, n)


def answer(n: int) -> bytes:
    return b'{"type":"result","call_id":"1.%d","value":%d}\n' % (n, n + 1)


@pytest.mark.parametrize("n", [0, 1, FEW - 1, FEW, FEW + 1, 3 * FEW + 5])
def test_everything_said_comes_out_in_order(n: int) -> None:
    said = Transcript()
    said.begin(b"order")
    for i in range(1, n + 1):
        said.called(f"1.{i}", call(i))
    for i in range(n, 0, -1):
        said.answered(f"1.{i}", answer(i))
    assert list(said.calls) == [call(i) for i in range(1, n + 1)]
    assert list(said.answers) == [answer(i)[:-1] for i in range(n, 0, -1)]


def test_a_line_may_hold_what_ends_lines_elsewhere() -> None:
    kept = PackedLines()
    lines = [b'{"a":\r%d}' % i + b"\x0b\x0c\x1c" for i in range(2 * FEW * 8)]
    for line in lines:
        kept.append(line, len(line))
    assert list(kept) == lines


def test_the_line_of_a_call_is_at_hand_until_its_answer() -> None:
    said = Transcript()
    said.called("1.1", call(1))
    assert said.pending == {"1.1": call(1)}
    assert said.answered("1.1", answer(1)) == len(call(1))
    assert said.pending == {}
    assert not said.called("1.1", call(1))
    assert said.answered("1.1", answer(1)) == 0


def test_too_much_is_dropped_but_no_id_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 1000)
    said = Transcript()
    for i in range(1, 30):
        said.called(f"1.{i}", call(i))
    assert said.is_dropped
    assert list(said.calls) == list(said.answers) == []
    assert not said.called("1.1", call(1))
    assert said.pending["1.29"] == call(29)
    said.begin(b"next")
    assert not said.is_dropped
    assert said.called("1.1", call(1))


@pytest.mark.parametrize(
    "ids",
    [
        ["1.1", "1.2", "1.3"],
        ["1.2", "1.1", "1.3"],
        ["1.3", "1.2", "1.1"],
        ["1.1", "2.2", "1.3", "1.2"],
        ["x", "", ".", "1.", ".1", "1.0", "1.01", "1.-1", "1.²", "1.1.2", "1." + "9" * 400],
        ["1.1", "1.01", "1.1 ", "01.1"],
    ],
)  # fmt: skip
def test_an_id_is_seen_once_it_came_and_not_before(ids: list[str]) -> None:
    seen = SeenIds()
    for i, call_id in enumerate(ids):
        assert seen.add(call_id)
        assert not any(seen.add(earlier) for earlier in ids[: i + 1])


def test_ten_thousand_calls_take_little() -> None:
    said = Transcript()
    tracemalloc.start()
    try:
        for i in range(1, 10_001):
            said.called(f"1.{i}", call(i))
            said.answered(f"1.{i}", answer(i))
        assert tracemalloc.get_traced_memory()[0] < 400_000
    finally:
        tracemalloc.stop()
    assert len(list(said.calls)) == len(list(said.answers)) == 10_000
