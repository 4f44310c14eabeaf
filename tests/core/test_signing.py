"""Sealed checkpoints: whatever was done to the bytes, they are refused."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hatchway.core.errors import CheckpointRefused, InvalidSetting
from hatchway.core.signing import load_key, seal, unseal

KEY = b"k" * 32
CLAIMS = {"backend": "monty", "version": "1"}


def test_a_sealed_payload_comes_back() -> None:
    payload, claims = unseal(seal(b"state\nwith lines", CLAIMS, key=KEY), CLAIMS, key=KEY)
    assert payload == b"state\nwith lines"
    assert claims["backend"] == "monty"


def test_cut_at_every_byte_is_refused() -> None:
    sealed = seal(b"state", CLAIMS, key=KEY)
    for length in range(len(sealed)):
        with pytest.raises(CheckpointRefused):
            unseal(sealed[:length], CLAIMS, key=KEY)


def test_every_flipped_bit_is_refused() -> None:
    sealed = seal(b"state", CLAIMS, key=KEY)
    for position in range(len(sealed) * 8):
        altered = bytearray(sealed)
        altered[position // 8] ^= 1 << (position % 8)
        with pytest.raises(CheckpointRefused):
            unseal(bytes(altered), CLAIMS, key=KEY)


def test_another_key_backend_or_version_is_refused() -> None:
    sealed = seal(b"state", CLAIMS, key=KEY)
    with pytest.raises(CheckpointRefused, match="signed with another key"):
        unseal(sealed, CLAIMS, key=b"x" * 32)
    with pytest.raises(CheckpointRefused, match="its backend is 'monty', here it is 'jail'"):
        unseal(sealed, {"backend": "jail"}, key=KEY)
    with pytest.raises(CheckpointRefused, match="its version is '1', here it is '2'"):
        unseal(sealed, {"version": "2"}, key=KEY)


@pytest.mark.parametrize("given", [None, "text", 5])
def test_what_is_no_bytes_is_told(given: Any) -> None:
    with pytest.raises(TypeError, match=f"a checkpoint is bytes, not {type(given).__name__}"):
        unseal(given, CLAIMS, key=KEY)


def test_the_key_is_made_once_and_private(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "signing.key"
    with ThreadPoolExecutor(8) as threads:
        keys = set(threads.map(lambda _: load_key(path), range(8)))
    assert len(keys) == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == ["signing.key"]


def test_a_key_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "signing.key"
    load_key(path)
    path.chmod(0o644)
    with pytest.raises(InvalidSetting, match="can be read by others"):
        load_key(path)
