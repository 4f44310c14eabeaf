"""Blocks as a page: one HTML file that needs no network, runs no script, and follows the reader's light or dark."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from string import Template
from typing import assert_never

from hatchway.trace.blocks import Block, Code, Line, Picture, Prose, Said
from hatchway.trace.markdown import as_html
from hatchway.trace.text import elapsed_text, neutral, size_text

PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What is shown as a picture: kinds that carry no script."""
PICTURE_BYTES = 5_000_000
_HIGHLIGHTED_CHARACTERS = 200_000
_KINDS = {
    "Token.Comment": "c",
    "Token.Keyword": "k",
    "Token.Operator.Word": "k",
    "Token.Name.Builtin": "f",
    "Token.Name.Function": "f",
    "Token.Literal.Number": "n",
    "Token.Literal.String": "s",
}
"""Families of tokens, and the class each has on the page."""


def page(blocks: Iterable[Block], *, title: str) -> str:
    """The blocks as one HTML file."""
    frame = Template((files("hatchway.trace") / "page.html").read_text(encoding="utf-8"))
    body = "\n".join(_block(block) for block in blocks)
    return frame.substitute(title=escape(neutral(title)), body=body)


def _block(block: Block) -> str:
    match block:
        case Line():
            return _line(block)
        case Code(text=text, about=about):
            source = _highlighted(text) if block.language == "python" else escape(text)
            named = escape(f"{block.what} {about}" if block.what != "action" else about)
            return f'<p class="about">{named}</p><pre class="code"><code>{source}</code></pre>'
        case Prose(text=text, who=who):
            return f'<p class="who">{escape(who)}</p><pre>{escape(text)}</pre>' if who else _prose(text)
        case Said(text=text, source=source):
            return f'<pre class="{source}">{escape(text)}</pre>'
        case Picture():
            return _picture(block)
        case _:
            assert_never(block)


def _line(line: Line) -> str:
    time = "" if line.at is None else elapsed_text(line.at)
    said = "".join(f'<span class="{tone or "plain"}">{escape(text)}</span>' for text, tone in line.parts)
    row = f'<time>{time}</time><b class="mark {line.tone}">{escape(line.mark)}</b><span class="said">{said}</span>'
    if not line.whole:
        return f'<div class="line">{row}</div>'
    wholes = "".join(f"<h2>{escape(label)}</h2><pre>{escape(text)}</pre>" for label, text in line.whole)
    return f'<details><summary class="line">{row}</summary>{wholes}</details>'


def _picture(picture: Picture) -> str:
    file, name = picture.file, escape(picture.name, quote=True)
    if file.mime_type not in PICTURES or len(file.content) > PICTURE_BYTES:
        size = size_text(len(file.content))
        return (
            f'<div class="line"><time></time><b class="mark good">+</b><span class="said">{name}  {size}</span></div>'
        )
    content = b64encode(file.content).decode("ascii")
    return f'<figure><img src="data:{file.mime_type};base64,{content}" alt="{name}"></figure>'


def _prose(text: str) -> str:
    said = f"<pre>{escape(text)}</pre>" if len(text) > _HIGHLIGHTED_CHARACTERS else as_html(text)
    return f"<section>{said}</section>"


def _highlighted(code: str) -> str:
    """Python with a span per token; very long code is plain, which takes no time."""
    if len(code) > _HIGHLIGHTED_CHARACTERS:
        return escape(code)
    from rich.syntax import Syntax

    lexer = Syntax("", "python").lexer
    assert lexer is not None, "rich brings pygments, which knows Python"
    lexer.ensurenl = False
    pieces: list[str] = []
    for token, text in lexer.get_tokens(code):
        kind = next((kind for family, kind in _KINDS.items() if str(token).startswith(family)), "")
        pieces.append(f'<i class="{kind}">{escape(text)}</i>' if kind else escape(text))
    return "".join(pieces)
