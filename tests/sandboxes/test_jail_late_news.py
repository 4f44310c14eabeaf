"""A busy machine may let who tells of a death wait for its turn: nothing is told wrong or lost for that."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from hatchway.core.calls import FunctionCall
from hatchway.core.errors import CodeRuntimeError
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeExecution
from hatchway.sandboxes import guest_execution
from hatchway.sandboxes.jail import JailSandbox
from hatchway.sandboxes.process.inside import tree

pytestmark = pytest.mark.anyio

LATE_SECONDS = 0.4
"""Longer than anybody is waited for who could be dead or stopped."""


async def test_how_the_code_died(make_jail: Callable[..., JailSandbox], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest_execution, "EOF_SECONDS", 0.01)
    before = _sealed()
    async with make_jail(spares=0) as jail:
        execution = await jail.execute("ready()\nimport os\nos.kill(os.getpid(), 9)", ["ready"])
        await _go_on_unheard(execution, before)
        with pytest.raises(CodeRuntimeError) as died:
            await execution.next()
    assert died.value.message == "the interpreter died: killed by signal SIGKILL"


async def test_code_that_closes_its_channel_is_still_told(
    make_jail: Callable[..., JailSandbox], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guest_execution, "EOF_SECONDS", 0.01)
    code = "import os, time\nfor fd in range(3, 20):\n    try: os.close(fd)\n    except OSError: pass\ntime.sleep(60)"
    async with make_jail(spares=0) as jail:
        execution = await jail.execute(code)
        with pytest.raises(CodeRuntimeError, match="the code closed its channel to the host"):
            await execution.next()


async def test_the_files_it_left(make_jail: Callable[..., JailSandbox], open_path: Path) -> None:
    before = _sealed()
    async with make_jail(spares=0, workspace_root=open_path) as jail:
        execution = await jail.execute("open('output/kept', 'w').write('kept')\nready()", ["ready"])
        await _go_on_unheard(execution, before)
        result = await execution.next()
    assert isinstance(result, ExecutionResult)
    assert [(file.name, file.content) for file in result.files] == [("kept", b"kept")]


async def _go_on_unheard(execution: CodeExecution, before: dict[int, int]) -> None:
    """Let code that stands at its call go on while its parent, who would tell of its death, is stopped for a while."""
    assert isinstance(await execution.next(), FunctionCall)
    (parent,) = {parent for pid, parent in _sealed().items() if pid not in before}
    os.kill(parent, signal.SIGSTOP)
    asyncio.get_running_loop().call_later(LATE_SECONDS, os.kill, parent, signal.SIGCONT)
    await execution.provide_result(None)


def _sealed() -> dict[int, int]:
    """The sealed processes below this one and their parents; other tests may have left warm ones."""
    found: dict[int, int] = {}
    for pid, stat in tree.descendants(os.getpid()).items():
        with suppress(OSError):  # it ended meanwhile
            if _filters(pid) > _filters(os.getpid()):  # a container has its own around everybody
                found[pid] = stat.parent
    return found


def _filters(pid: int) -> int:
    return int(Path(f"/proc/{pid}/status").read_text().partition("Seccomp_filters:")[2].split()[0])
