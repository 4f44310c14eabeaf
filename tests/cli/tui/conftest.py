"""The agent at a real terminal."""

import runpy
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

TMUX = runpy.run_path(str(Path(__file__).with_name("tmux.py")))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty folder."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def at_tmux(workspace: Path, agent_jail: None) -> Iterator[Callable[..., Any]]:
    """Starts the agent with the scripted model; options come after it."""
    if not TMUX["is_there"]():
        pytest.skip("tmux or pgrep is not installed: apt-get install tmux procps")
    terminal = TMUX["Terminal"](workspace)

    def start(*args: str, model: bool = True, **env: str) -> Any:
        for name in ("scripted.py", "shop.py"):
            shutil.copy(Path(__file__).with_name(name), workspace)
        scripted = ["--model", "scripted.py:model", "--tools", "shop.py"] if model else []
        terminal.start(*scripted, *args, **env)
        terminal.wait_for("/help" if model else "[q] quit")
        return terminal

    yield start
    terminal.end()
