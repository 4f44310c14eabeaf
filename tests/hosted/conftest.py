"""Vendors that say what they are told to, under their real SDKs."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints are signed with a key of the test; no vendor's key is used by mistake."""
    monkeypatch.setenv("HATCHWAY_KEY_FILE", str(tmp_path / "signing.key"))
