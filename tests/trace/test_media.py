"""The page and the picture are well-formed and inert, whatever the run holds."""

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from typing import Any

import pytest

from hatchway.core.results import ExecFile
from hatchway.trace.blocks import Block, Code, Line, Part, Picture, Said
from hatchway.trace.page import page
from hatchway.trace.record import Record
from hatchway.trace.terminal import picture

EVIL = '</script></style></pre><script>alert(1)</script><img src=x onerror="alert(1)">&amp;\'"<!--]]>'
BLOCKS: list[Block] = [
    Line(mark="<", parts=[Part(EVIL, "bold")], whole=[(EVIL, EVIL)]),
    Code(text=f"x = '''{EVIL}'''  # {EVIL}", about=EVIL),
    Said(text=EVIL, source="stdout"),
    Picture(file=ExecFile(name=EVIL, content=b"\x89PNG", mime_type="image/png"), name=EVIL),
    Picture(file=ExecFile(name=EVIL, content=b"<svg/>", mime_type="image/svg+xml"), name=EVIL),
    Picture(file=ExecFile(name="x", content=b"1", mime_type='image/png" onerror="alert(1)'), name=EVIL),
]


class Tags(HTMLParser):
    """Every tag and attribute of a page, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note it."""
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        """Note it."""
        self.text += data


def test_nothing_on_a_page_is_more_than_text() -> None:
    seen = Tags(page(BLOCKS, title=EVIL))
    assert seen.tags == {
        "html", "head", "meta", "title", "style", "body", "div", "time", "b", "i", "span", "details", "summary",
        "h2", "p", "pre", "code", "figure", "img",
    }  # fmt: skip
    assert not [name for name in seen.attributes if name.startswith("on")]
    assert seen.links == ["data:image/png;base64,iVBORw=="]
    assert seen.text.count(EVIL) >= 8


def test_neither_medium_asks_the_network_for_anything(recorded: Any) -> None:
    blocks = Record().all(recorded)
    for made in (page(blocks, title="x"), picture(blocks, title="x")):
        assert re.findall(r"https?://[^\s\"')]+", made.replace("http://www.w3.org/2000/svg", "")) == []
        assert "@import" not in made
        assert "@font-face" not in made
    assert "default-src 'none'" in page(blocks, title="x")


def test_a_picture_is_xml_without_script() -> None:
    tree = ET.fromstring(picture(BLOCKS, title=EVIL))
    kinds = {element.tag.rpartition("}")[2] for element in tree.iter()}
    assert kinds == {"svg", "style", "defs", "clipPath", "rect", "circle", "g", "text"}
    names = {name for element in tree.iter() for name in element.attrib}
    assert not [name for name in names if name.startswith("on") or "href" in name]
    whole = "".join(tree.itertext()).replace("\xa0", " ")
    assert "<script>alert(1)</script>" in whole


@pytest.mark.parametrize("size", [1_000_000])
def test_a_megabyte_is_a_page_and_a_small_picture(size: int) -> None:
    blocks: list[Block] = [Said(text="y" * size, source="stdout"), Code(text="z = 1\n" * (size // 6))]
    assert len(page(blocks, title="x")) > 2 * size - 10
    assert len(picture(blocks, title="x")) < size


def test_long_lines_are_not_lost_in_a_picture() -> None:
    made = picture([Said(text="begin" + "x" * 300 + "end\n", source="stdout")], title="x")
    assert {"begin", "end"} <= set(re.findall(r"begin|end(?=<)", made))
