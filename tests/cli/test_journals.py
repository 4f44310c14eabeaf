"""Journals that cannot be opened: each error says what to do."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from hatchway.cli.journals import new_journal
from hatchway.core.errors import JournalError


def test_a_full_disk_is_called_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "journal.db"
    broken.write_bytes(b"no database" * 1000)
    with pytest.raises(JournalError) as known:
        new_journal(str(broken))
    assert "the disk is full" not in str(known.value)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: shutil._ntuple_diskusage(10, 10, 0))  # type: ignore[attr-defined]
    with pytest.raises(JournalError) as full:
        new_journal(str(broken))
    assert str(full.value) == (
        f"the journal {broken} cannot be opened: the disk is full\nmake room there, or name another with --journal PATH"
    )


def test_only_a_command_that_has_it_names_no_journal(hatchway: Any) -> None:
    hatchway.file(".hatchway", "in the way")
    hatchway.file("m.py", "from pydantic_ai.models.test import TestModel\nmodel = TestModel()\n")
    ran = hatchway("run", "--model", "m.py:model", "--journal", "m.py/journal.db", "hi")
    assert ran.returncode == 2
    assert "--no-journal" not in ran.stderr
    ran = hatchway("exec", "m.py", "--journal", "m.py/journal.db")
    assert ran.returncode == 2
    assert ran.stderr.endswith("name another place with --journal PATH, or record nothing with --no-journal\n")
