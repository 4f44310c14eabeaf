"""Tars from a container: whatever is in them, only plain files with plain names come out, and within the limits."""

from __future__ import annotations

import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchway.core.errors import InvalidSetting
from hatchway.core.limits import Limits
from hatchway.executors.archive import PROGRAM, Unpacked, packed, unpacked
from hatchway.executors.execution import ExecFile


def tar_of(*entries: tuple[str, bytes, bytes]) -> bytes:
    """A tar of entries given as name, type and content."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, kind, content in entries:
            entry = tarfile.TarInfo(name)
            entry.type, entry.size, entry.linkname = kind, len(content), "/etc/passwd"
            tar.addfile(entry, io.BytesIO(content))
    return data.getvalue()


def names(found: Unpacked) -> list[str]:
    return [file.name for file in found.files]


@pytest.mark.parametrize(
    "name",
    ["../up", "/etc/passwd", "a/../../b", "x/" * 20 + "deep", "line\nbreak", "tab\t", "\udcff", "\x1b[2J", "\u202e"],
)
def test_names_that_lead_elsewhere_or_drive_a_terminal_are_left_out(name: str) -> None:
    found = unpacked(tar_of((name, tarfile.REGTYPE, b"x"), ("fine", tarfile.REGTYPE, b"y")), {}, Limits())
    assert names(found) == ["fine"]
    assert len(found.notes) == 1
    assert found.notes[0].startswith(f"{name!r} is left out: ")


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.CONTTYPE]
)
def test_what_is_no_plain_file_is_left_out(kind: bytes) -> None:
    found = unpacked(tar_of(("odd", kind, b""), ("fine", tarfile.REGTYPE, b"y")), {}, Limits())
    assert (names(found), len(found.notes)) == (["fine"], 1)


def test_a_sparse_file_of_a_terabyte_takes_no_memory() -> None:
    headers = {
        "GNU.sparse.major": "1",
        "GNU.sparse.minor": "0",
        "GNU.sparse.realsize": str(1 << 40),
        "GNU.sparse.name": "s",
    }
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as tar:
        entry = tarfile.TarInfo("s")
        entry.pax_headers, entry.size = headers, 512
        tar.addfile(entry, io.BytesIO(b"1\n0\n0\n".ljust(512, b"\0")))
    found = unpacked(data.getvalue(), {}, Limits())
    assert sum(len(file.content) for file in found.files) < 10_000


def test_what_was_put_in_and_not_changed_does_not_come_back() -> None:
    files = (ExecFile(name="same", content=b"1"), ExecFile(name="new/ü", content=b"2"))
    found = unpacked(packed(files, b"code"), {"same": b"1", PROGRAM: b"code"}, Limits())
    assert [(file.name, file.content) for file in found.files] == [("new/ü", b"2")]


def test_an_input_cannot_take_the_programs_place() -> None:
    with pytest.raises(InvalidSetting, match="no input file can be named"):
        packed((ExecFile(name=PROGRAM, content=b""),), b"code")


def test_limits_hold_and_are_told() -> None:
    tar = tar_of(*((f"f{n}", tarfile.REGTYPE, b"x" * 100) for n in range(9)))
    assert unpacked(tar, {}, Limits(output_files=2)).notes == [
        "the program left more than 2 files: the rest is left out"
    ]
    assert len(unpacked(tar, {}, Limits(disk_bytes=350)).files) == 3
    assert len(unpacked(tar, {}, Limits(file_bytes=99)).notes) == 9


@given(st.binary(max_size=3000))
def test_rubbish_is_no_error(data: bytes) -> None:
    assert unpacked(data, {}, Limits()).files == []


@given(st.integers(0, 3000), st.binary(min_size=1, max_size=20))
def test_a_damaged_tar_gives_what_it_can(place: int, rubbish: bytes) -> None:
    tar = bytearray(tar_of(("a", tarfile.REGTYPE, b"1"), ("b", tarfile.REGTYPE, b"2" * 600)))
    tar[place : place + len(rubbish)] = rubbish
    for file in unpacked(bytes(tar), {}, Limits()).files:
        assert len(file.content) <= 10_240
