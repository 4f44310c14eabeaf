"""The journal in memory: what is kept, and for how long."""

import pytest

from hatchway.core.errors import UnknownRun
from hatchway.core.results import ExecutionResult
from hatchway.journal.memory import MemoryJournal


def test_paused_runs_are_kept_and_ended_ones_up_to_a_bound() -> None:
    journal = MemoryJournal()
    paused = journal.open("paused")
    paused.state = "paused"
    for i in range(300):
        journal.ended(journal.open(str(i)), result=ExecutionResult(output=i))
    assert journal.paused() == (paused,)
    assert journal.find("paused") is paused
    assert journal.find("299").result == ExecutionResult(output=299)
    with pytest.raises(UnknownRun, match="no run '0' in this journal"):
        journal.find("0")


def test_an_ended_run_holds_nothing_of_the_way_there() -> None:
    journal = MemoryJournal()
    record = journal.open("x")
    record.live, record.checkpoint = object(), b"state"
    journal.ended(record, error=ValueError("no"))
    assert (record.state, record.live, record.checkpoint) == ("failed", None, None)
