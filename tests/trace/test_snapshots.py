"""One recorded run in each medium, compared with what a person looked at and found right."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hatchway.trace.page import page
from hatchway.trace.record import Record
from hatchway.trace.terminal import Painter, picture

SNAPSHOTS = Path(__file__).parent / "snapshots"


def terminal(events: Any, **settings: Any) -> str:
    """The run as a terminal of 80 columns shows it."""
    file = StringIO()
    console = Console(file=file, width=80, markup=False, emoji=False, highlight=False, _environ={}, **settings)
    painter = Painter(console)
    for block in Record().all(events):
        painter.paint(block)
    return file.getvalue()


MEDIA = {
    "terminal.txt": lambda events: terminal(events, force_terminal=True, color_system=None),
    "colours.txt": lambda events: terminal(events, force_terminal=True, color_system="standard"),
    "pipe.txt": lambda events: terminal(events, force_terminal=False),
    "page.html": lambda events: page(Record().all(events), title="run <5ca1ab1e>"),
    "picture.svg": lambda events: picture(Record().all(events), title="run <5ca1ab1e>"),
}


@pytest.mark.parametrize("name", MEDIA)
def test_a_run_looks_as_it_did(name: str, recorded: Any) -> None:
    kept, made = SNAPSHOTS / name, MEDIA[name](recorded)
    if not kept.exists():
        kept.write_text(made, encoding="utf-8")
        pytest.fail(f"{kept} is new: look at it, then commit it; to renew one, delete it")
    assert made == kept.read_text(encoding="utf-8")
