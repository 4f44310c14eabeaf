"""A journaled run is run again without its tools: in a sandbox, and as an action of a session."""

from pathlib import Path

import pytest

from hatchway import ApprovalRequired, CodeMode, tool
from hatchway.journal.store import Journal
from hatchway.mode.replaying import replay_run
from hatchway.sandboxes.registry import shared_sandbox

pytestmark = pytest.mark.anyio
MADE: list[str] = []


@tool
async def look(name: str) -> str:
    """Look something up."""
    MADE.append(name)
    return name.upper()


@tool(approval="ask")
async def send(name: str) -> str:
    """Send something."""
    MADE.append(name)
    return name


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Journal:
    """A journal with a key of its own; the mode closes it."""
    monkeypatch.setenv("HATCHWAY_KEY_FILE", str(tmp_path / "key"))
    MADE.clear()
    return Journal(tmp_path / "journal.db")


@pytest.mark.parametrize("sandbox", ["monty", "process"])
async def test_parallel_calls_are_answered_as_they_were(journal: Journal, sandbox: str) -> None:
    code = "import asyncio\nprint('x')\nawait asyncio.gather(*[look(c) for c in 'abcd'])"
    async with CodeMode(sandbox, tools=[look], journal=journal) as mode:
        await mode.run(code)
        (run,) = journal.runs()
        replayed = await replay_run(journal, run, mode.sandbox)
    assert (replayed.calls, replayed.standing, replayed.difference) == (4, 0, None)
    assert sorted(MADE) == ["a", "b", "c", "d"]


async def test_an_action_of_a_session_needs_those_before_it(journal: Journal) -> None:
    async with CodeMode("process", tools=[look, send], journal=journal) as mode:
        async with mode.session() as session:
            await session.run("first = await look('a')")
            await session.run("second = first + await look('b')\nsecond")
            with pytest.raises(ApprovalRequired):
                await session.run("await send(second)")
        rows = sorted(journal.runs(), key=lambda row: row.place)
        async with shared_sandbox("process") as sandbox:
            replayed = [await replay_run(journal, row, sandbox) for row in rows]
    assert [(each.calls, each.standing, each.difference) for each in replayed] == [
        (1, 0, None),
        (1, 0, None),
        (0, 1, None),
    ]
    assert MADE == ["a", "b"]
