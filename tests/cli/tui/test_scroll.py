"""What is painted above the screen: long output folded, everything kept whole, nothing a terminal would act on."""

import re

from hatchway.cli.tui.scroll import CODE_LINES, KEPT_CHARACTERS, OUTPUT_LINES, Scroll
from hatchway.trace.blocks import WHO, Code, Line, Part, Prose, Said


class Paper:
    """Takes what is printed."""

    def __init__(self, columns: int = 80) -> None:
        self.text, self.live = "", ""
        self.scroll = Scroll(self._print, lambda: columns, self._live)

    def _print(self, text: str) -> None:
        assert text.endswith("\n")
        self.text += text

    def _live(self, text: str) -> None:
        self.live = text


def said(text: str) -> Said:
    return Said(text=text, source="stdout")


def test_a_long_output_is_folded_and_kept() -> None:
    paper = Paper()
    for number in range(100):
        paper.scroll.add([said(f"line {number}\n")])
    paper.scroll.add([Line(mark="■", parts=[Part("done")])])
    assert f"line {OUTPUT_LINES - 1}\n" in paper.text
    assert f"line {OUTPUT_LINES}\n" not in paper.text
    assert "88 more lines · Ctrl+O shows all" in paper.text
    assert "line 99\n" in paper.scroll.whole()
    assert "\x1b" not in paper.scroll.whole()


def test_a_line_is_shown_live_until_it_ends() -> None:
    paper = Paper()
    paper.scroll.add([said("50 %")])
    assert (paper.text, paper.live) == ("", "50 %")
    paper.scroll.add([said(" done\nnext")])
    assert "50 % done\n" in paper.text
    assert paper.live == "next"
    paper.scroll.close()
    assert "next\n" in paper.text
    assert paper.live == ""


def test_the_next_output_is_folded_anew() -> None:
    paper = Paper()
    for _ in range(2):
        paper.scroll.add([said("a\n" * OUTPUT_LINES)])
        paper.scroll.close()
    assert "more" not in paper.text
    assert paper.text.count("│") == 2 * OUTPUT_LINES


def test_code_past_a_few_screens_says_what_is_left_out() -> None:
    paper = Paper()
    paper.scroll.add([Code(text="\n".join(f"x{n} = {n}" for n in range(CODE_LINES * 2)))])
    assert f"# … {CODE_LINES} more lines: Ctrl+O shows all …" in paper.text
    assert f"x{CODE_LINES} = {CODE_LINES}" in paper.scroll.whole()


def test_megabytes_leave_a_few_lines_and_bounded_memory() -> None:
    paper = Paper()
    for _ in range(40):
        paper.scroll.add([said("x" * 250_000)])
    paper.scroll.close()
    assert len(paper.text) < 5_000
    assert len(paper.scroll.whole()) < KEPT_CHARACTERS + 1_000_000


def test_a_line_takes_a_few_rows_at_most() -> None:
    paper = Paper()
    paper.scroll.add([said("x" * 1_500 + "\n")])
    assert "… 1180 more characters …" in paper.text
    assert paper.scroll.whole().count("x") == 1_500


def test_a_long_prompt_is_folded_and_kept() -> None:
    paper = Paper()
    paper.scroll.add([Prose(text="\n".join(f"pasted {number}" for number in range(1_000)), who="you")])
    assert paper.text.count("pasted") == OUTPUT_LINES
    assert "… 988 more lines: Ctrl+O shows all …" in paper.text
    assert "pasted 500\n" in paper.scroll.whole()


def test_a_reply_has_one_empty_line_between_its_blocks_and_none_below_a_name() -> None:
    paper = Paper()
    paper.scroll.add([Line(mark=WHO, parts=[Part("sub-1")]), Prose(text="# Title\n")])
    paper.scroll.add([Prose(text="one\n\n"), Prose(text="```python\nx = 1\n```\n"), Prose(text="|a|\n|-|\n|1|\n")])
    lines = re.sub(r"\x1b\[[\d;]*m", "", paper.text).splitlines()
    assert [line.strip() for line in lines] == ["» sub-1", "Title", "", "one", "", "x = 1", "", "a", "─", "1"]
    assert all(line == line.rstrip() for line in lines[1:])


def test_a_narrow_terminal_has_room_for_what_is_said() -> None:
    paper = Paper(columns=40)
    paper.scroll.add([said("out\n"), Line(at=1, mark="✓", parts=[Part("done")])])
    assert re.sub(r"\x1b\[[\d;]*m", "", paper.text) == "│ out\n✓ done\n"


def test_a_long_value_is_cut_and_kept() -> None:
    paper = Paper()
    paper.scroll.add([Line(mark="=", parts=[Part("begin" + "x" * 5_000 + "end")])])
    assert "4408 more" in paper.text
    assert len(paper.text) < 1_500
    assert paper.scroll.whole().count("x") == 5_000
