"""Markdown that arrives piece by piece is cut at the same places, however it is cut on the way."""

from hypothesis import given
from hypothesis import strategies as st

from hatchway.cli.tui.streaming import LONGEST_BLOCK, MarkdownStream

REPLY = """# Head

One paragraph
over two lines.

- a list

  with a paragraph inside
- and more

```python
x = 1

y = 2
```

1. one

2. two
"""


def pieces(text: str, size: int) -> tuple[list[str], str]:
    """The blocks of a text that comes so many characters at a time, and what is left."""
    stream = MarkdownStream()
    blocks = [block for at in range(0, len(text), size) for block in stream.feed(text[at : at + size])]
    return blocks, stream.end()


@given(st.integers(1, len(REPLY)))
def test_blocks_are_the_same_however_they_arrive(size: int) -> None:
    blocks, rest = pieces(REPLY, size)
    assert [block.strip().splitlines()[0] for block in blocks] == [
        "# Head", "One paragraph", "- a list", "```python", "1. one",
    ]  # fmt: skip
    assert "".join(blocks) + rest == REPLY
    assert "y = 2" in blocks[3]


@given(st.text("ab \n`~#-", max_size=300), st.integers(1, 50))
def test_nothing_is_lost(text: str, size: int) -> None:
    blocks, rest = pieces(text, size)
    assert ("".join(blocks) + rest).replace("\n", "").strip() == text.replace("\n", "").strip()


def test_a_block_without_end_is_cut_at_a_line_and_its_tail_stays_short() -> None:
    stream = MarkdownStream()
    blocks = stream.feed("```\n" + "x" * 99 + "\n" + ("y" * 99 + "\n") * (LONGEST_BLOCK // 50))
    assert len(blocks) >= 1
    stream.feed("z" * 1_000_000)
    assert len(stream.tail(100)) < 1_000_200
    assert stream.tail(100).endswith("zzz")


def test_after_the_end_a_new_reply_begins() -> None:
    stream = MarkdownStream()
    stream.feed("```\nopen")
    assert stream.end() == "```\nopen"
    assert stream.feed("a\n\nb") == []
    assert stream.rest == "a\n\nb"
