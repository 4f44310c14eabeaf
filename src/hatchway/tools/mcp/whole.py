"""JSON text in pieces, as it comes over HTTP, without halves of characters: most readers refuse all of it for one."""

from __future__ import annotations

import codecs
import re

_HEX = "[0-9a-fA-F]"
_HIGH, _LOW = rf"\\u[dD][89abAB]{_HEX}{{2}}", rf"\\u[dD][c-fC-F]{_HEX}{{2}}"
_BEGUN_LOW = rf"\\(?:u(?:[dD](?:[c-fC-F]{_HEX}?)?)?)?"
_BEGUN_HIGH = rf"\\(?:u(?:[dD](?:[89abAB]{_HEX}?)?)?)?"
_ESCAPE = re.compile(
    rf"(?P<pair>{_HIGH}{_LOW})|(?P<begun>(?:{_HIGH}(?:{_BEGUN_LOW})?|{_BEGUN_HIGH}|{_BEGUN_LOW})\Z)"
    rf"|(?P<half>{_HIGH}|{_LOW})|\\.",
    re.S,
)
"""Any escape, in the order of the text: what follows two backslashes is none."""
_SUSPECT = re.compile(rb"\\u[dD][89a-fA-F]|\\(?:u[dD]?)?\Z")
_INSTEAD = r"\ufffd"


class Whole:
    """Takes the bytes of one answer and gives them back mended; an escape that is cut at the end of a piece is held."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""

    def feed(self, piece: bytes) -> bytes:
        """The next bytes; none where all of them must wait for what follows."""
        if piece.isascii() and not self._held and not self._decoder.getstate()[0] and not _SUSPECT.search(piece):
            return piece
        return self._mended(self._held + self._decoder.decode(piece), is_last=False)

    def end(self) -> bytes:
        """What was held."""
        return self._mended(self._held + self._decoder.decode(b"", final=True), is_last=True)

    def _mended(self, text: str, *, is_last: bool) -> bytes:
        made: list[str] = []
        done, self._held = 0, ""
        for found in _ESCAPE.finditer(text) if "\\" in text else ():
            begun = found["begun"]
            if begun is not None and not is_last:
                made.append(text[done : found.start()])
                self._held, done = begun, len(text)
            elif found["half"] is not None or (begun is not None and len(begun) >= len(_INSTEAD)):
                made += (text[done : found.start()], _INSTEAD)
                done = found.end()
        return "".join((*made, text[done:])).encode()
