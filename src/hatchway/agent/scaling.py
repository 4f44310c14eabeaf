"""Pictures as vendors take them: of a kind they know, and small."""

from __future__ import annotations

from io import BytesIO
from typing import NamedTuple

LONGEST_SIDE = 1024
"""Pixels; larger pictures are scaled down to it."""
_SIGNATURES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}


class Scaled(NamedTuple):
    """A picture a vendor takes."""

    content: bytes
    mime_type: str


def picture_type(content: bytes) -> str | None:
    """What a picture is by its beginning: vendors refuse one that is not what it is said to be."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return next((mime_type for start, mime_type in _SIGNATURES.items() if content.startswith(start)), None)


def scaled(content: bytes) -> Scaled:
    """The picture, made smaller where it is large; as it is where Pillow is not there.

    Raises:
        ValueError: It is no picture that can be read.
    """
    mime_type = picture_type(content)
    if mime_type is None:
        raise ValueError("it does not begin like one")
    try:
        from PIL import Image
    except ImportError:
        return Scaled(content, mime_type)
    try:
        with Image.open(BytesIO(content)) as image:
            if max(image.size) <= LONGEST_SIDE:
                return Scaled(content, mime_type)
            image.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
            small = BytesIO()
            image.convert("RGBA" if "A" in image.getbands() else "RGB").save(small, "PNG")
            return Scaled(small.getvalue(), "image/png")
    except Exception as e:  # Pillow raises whatever a damaged file leads it to
        raise ValueError(str(e)) from e
