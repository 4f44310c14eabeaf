"""Entry: the prompt is on the screen first; the agent is loaded behind it while the person types."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from hatchway import __version__
from hatchway.agent.human import HUMAN
from hatchway.cli.agent_options import AgentOptions
from hatchway.cli.tui.completing import PromptCompleter
from hatchway.cli.tui.python_prompt import set_prompt
from hatchway.cli.tui.screen import Screen
from hatchway.cli.tui.status import Status

if TYPE_CHECKING:
    from hatchway.cli.agent_setup import Setup

SPIN_SECONDS = 0.1


def converse(options: AgentOptions) -> int:
    """Talk at the terminal until the person leaves; the exit code."""
    if asyncio.run(_converse(options)):
        from hatchway.cli.demo.tour import tour

        asyncio.run(tour("auto", yes=False))
    return 0


async def _converse(options: AgentOptions) -> bool:
    """Whether the demo is wanted afterwards."""
    status = Status()
    screen = Screen(status.line, PromptCompleter(Path.cwd()))
    set_prompt(screen, is_python=options.model == HUMAN)
    screen.print(f"hatchway {__version__} · {_here()}\n")
    draft = asyncio.ensure_future(screen.compose())
    await asyncio.sleep(0)  # the prompt takes what was typed before it could be drawn
    async with screen.open():
        spinning = asyncio.ensure_future(_spin(screen, status))
        try:
            loading = _behind(lambda: _loaded(options))
            await asyncio.wait([loading, draft], return_when=asyncio.FIRST_COMPLETED)
            if draft.done() and draft.result() is None:
                return False  # gone before it was loaded
            setup = await loading
            from hatchway.cli.tui.conversation import talk

            return await talk(screen, status, setup, draft)
        finally:
            spinning.cancel()
            draft.cancel()


def _loaded(options: AgentOptions) -> Setup:
    import_module("hatchway.cli.tui.conversation")  # the rest of the terminal, while nobody waits for it
    from hatchway.cli.agent_setup import prepare

    return prepare(options)


def _behind(work: Callable[[], Setup]) -> asyncio.Future[Setup]:
    """What a thread makes of it. Nobody waits for the thread at the end: importing cannot be cancelled."""
    loop = asyncio.get_running_loop()
    made: asyncio.Future[Setup] = loop.create_future()

    def tell(setup: Setup | None, error: BaseException | None) -> None:
        if made.done():
            return
        if setup is not None:
            made.set_result(setup)
        elif error is not None:
            made.set_exception(error)

    def run() -> None:
        setup, error = None, None
        try:
            setup = work()
        except BaseException as e:
            error = e
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(tell, setup, error)

    threading.Thread(target=run, daemon=True).start()
    return made


async def _spin(screen: Screen, status: Status) -> None:
    while True:
        await asyncio.sleep(SPIN_SECONDS)
        if status.doing:
            screen.refresh()


def _here() -> str:
    folder, home = os.getcwd(), os.path.expanduser("~")
    shown = "~" + folder[len(home) :] if folder == home or folder.startswith(home + os.sep) else folder
    return shown.encode("unicode_escape").decode("ascii") if not shown.isprintable() else shown
