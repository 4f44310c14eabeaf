"""Markdown as models write it: CommonMark with tables; tags are text, pictures from elsewhere are not loaded."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt


@cache
def markdown_parser() -> MarkdownIt:
    """The parser, which comes with rich."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")


def as_html(text: str) -> str:
    """Markdown as HTML that loads and runs nothing."""
    return markdown_parser().render(text)
