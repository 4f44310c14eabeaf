"""`@path` in a prompt."""

from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image
from pydantic_ai.messages import BinaryContent

from hatchway.cli.attachments import Picture, attached
from hatchway.core.errors import InvalidSetting


def image(path: Path, size: tuple[int, int], kind: str = "PNG") -> Path:
    Image.new("RGB", size, "red").save(path, kind)
    return path


def size_of(picture: str | Picture) -> tuple[int, int]:
    assert isinstance(picture, Picture)
    with Image.open(BytesIO(picture.content)) as read:
        return read.size


def test_a_prompt_without_mentions_is_left_as_it_is(tmp_path: Path) -> None:
    prompt = "mail ada@example.com about @property and @nothing.png"
    assert attached(prompt, tmp_path).content() == prompt


def test_pictures_go_along_and_large_ones_are_scaled_down(tmp_path: Path) -> None:
    small = image(tmp_path / "small.png", (10, 20)).read_bytes()
    image(tmp_path / "large.jpg", (4096, 1024), "JPEG")
    found = attached("what is @small.png, and @large.jpg?", tmp_path)
    assert found.parts[0] == Picture(name="small.png", content=small, mime_type="image/png")
    assert size_of(found.parts[1]) == (1024, 256)
    text, first, _ = found.content()
    assert text == "what is @small.png, and @large.jpg?"
    assert isinstance(first, BinaryContent)
    assert (first.data, first.media_type) == (small, "image/png")


def test_a_folder_brings_its_pictures_and_not_those_below(tmp_path: Path) -> None:
    (tmp_path / "shots" / "old").mkdir(parents=True)
    for name in ("b.png", "a.gif", "old/c.png"):
        image(tmp_path / "shots" / name, (1, 1), "GIF" if name.endswith("gif") else "PNG")
    (tmp_path / "shots" / "notes.txt").write_text("x", encoding="utf-8")
    found = attached("@shots/ describe", tmp_path)
    assert [part.name for part in found.parts if isinstance(part, Picture)] == ["a.gif", "b.png"]
    assert found.notes == ["@shots: 2 pictures"]


def test_text_goes_as_text_with_spaces_in_its_name(tmp_path: Path) -> None:
    (tmp_path / "my notes.txt").write_text("grün\n", encoding="utf-8")
    for mention in ('@"my notes.txt"', "@my\\ notes.txt"):
        found = attached(f"sum up {mention}!" if '"' not in mention else f"sum up {mention}", tmp_path)
        assert found.parts == ['<file path="my notes.txt">\ngrün\n\n</file>']


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.bin", b"\x00\x01", "is neither text nor a picture"),
        ("a.txt", b"x" * 200_001, "has 195 KB, and at most 195 KB can be sent along"),
        ("a.png", b"no picture", "is not a picture that can be read"),
    ],
)
def test_what_cannot_be_sent_is_said(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidSetting, match=message):
        attached(f"@{name}", tmp_path)


def test_a_folder_with_too_many_pictures_is_said(tmp_path: Path) -> None:
    for number in range(51):
        (tmp_path / f"{number}.png").touch()
    with pytest.raises(InvalidSetting, match="has 51 pictures"):
        attached(f"@{tmp_path}/", tmp_path)


def test_a_path_that_is_not_there_is_said_and_a_handle_is_not(tmp_path: Path) -> None:
    found = attached('ask @ada about @notes.tx, @src/x and @"a b"', tmp_path)
    assert found.parts == []
    assert found.notes == [
        f"@{name}: there is no such file, so it is sent as it is written" for name in ("notes.tx,", "src/x", "a b")
    ]


def test_a_picture_is_what_it_holds_and_not_what_it_is_called(tmp_path: Path) -> None:
    image(tmp_path / "photo.png", (2, 2), "JPEG")
    image(tmp_path / "photo.webp", (2, 2), "WEBP")
    types = [part.mime_type for part in attached("@photo.png @photo.webp", tmp_path).parts if isinstance(part, Picture)]
    assert types == ["image/jpeg", "image/webp"]


def test_names_that_are_no_paths_are_text(tmp_path: Path) -> None:
    prompt = f"@{'x' * 5000} @a\x00b @"
    assert attached(prompt, tmp_path).parts == []
