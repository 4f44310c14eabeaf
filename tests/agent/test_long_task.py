"""A long task with trouble on the way ends right, each effect done once."""

from __future__ import annotations

import runpy
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hatchway.journal.store import Journal

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("agent_jail"),
]
PROGRAM = Path(__file__).parent / "long_task.py"
TASK: dict[str, Any] = runpy.run_path(str(PROGRAM))


def test_forty_turns_three_subagents_and_three_crashes(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    first = subprocess.run([sys.executable, str(PROGRAM), str(workspace), "dies"], timeout=100)
    assert first.returncode == -signal.SIGKILL
    second = subprocess.run(
        [sys.executable, str(PROGRAM), str(workspace), "lives"], timeout=100, capture_output=True, text=True
    )
    assert second.returncode == 0, second.stderr
    done = sorted(map(int, (tmp_path / "effects").read_text().split()))
    assert done == TASK["expected"]()
    assert list(map(int, (tmp_path / "marks").read_text().split())) == TASK["marks"]()
    journal = Journal(workspace / ".hatchway" / "journal.db")
    try:
        calls = sum(len(journal.history(row.run_id).calls) for row in journal.runs(limit=1000))
    finally:
        journal.close()
    assert calls >= 200
