"""Prompt: who answers when a call asks for approval. A person, `--yes`, or nobody."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import aclosing, contextmanager, suppress
from typing import Any

import click
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from hatchway.cli.display import call_source, code_block, make_console, neutral
from hatchway.cli.exits import Exit
from hatchway.cli.terminal import Terminal, find_terminal
from hatchway.core.decisions import Allow, Decision, Deny
from hatchway.core.errors import CodeExecutionError
from hatchway.core.events import AgentEvent, ApprovalRequest
from hatchway.core.values import as_python
from hatchway.mode.mode import CodeMode

Asker = Callable[[ApprovalRequest], Awaitable[Decision]]
"""Answers one request."""
BARE_NO = "the person said no"
"""What the code is told where the person gave no reason."""
SHOWN_CHARACTERS = 600
"""How much of one argument is shown before `d` is asked for."""
_NO_ANSWER = "the input ended before an answer came; y allows it, n refuses it, --yes allows every call that asks"


class NotApproved(click.ClickException):
    """A call asked for approval and nobody gave it; the command ends."""

    exit_code = Exit.NOT_APPROVED

    def __init__(self, tool_name: str, why: str) -> None:
        super().__init__(f"the call of {neutral(tool_name)} needs approval: {why}")


async def say_yes(request: ApprovalRequest) -> Decision:
    """`--yes`: whatever asks is allowed."""
    return Allow()


async def nobody(request: ApprovalRequest) -> Decision:
    """No terminal and no `--yes`.

    Raises:
        NotApproved: Always.
    """
    raise NotApproved(request.tool_name, "run it in a terminal to be asked, or with --yes to allow every call")


class Person:
    """Asks at the terminal: Enter or y allows, n and a reason denies, d shows everything."""

    def __init__(self, terminal: Terminal, console: Console) -> None:
        self._terminal = terminal
        self._console = console

    async def __call__(self, request: ApprovalRequest) -> Decision:
        """The person's decision.

        Raises:
            NotApproved: The input ended (Ctrl-D) instead of an answer.
        """
        cut = self._show(request, SHOWN_CHARACTERS)
        self._terminal.forget_typed()
        while True:
            more = "  [d] show all" if cut else ""
            self._console.print(Text(f"  allow? [Enter/y] yes  [n reason] no{more} › ", "bold"), end="")
            answer = await self._terminal.line()
            if answer is None:
                self._console.print()
                raise NotApproved(request.tool_name, _NO_ANSWER)
            if cut and answer == "d":
                cut = self._show(request, len(as_python(dict(request.tool_args))))
            elif (decision := decided(answer)) is not None:
                return decision

    def _show(self, request: ApprovalRequest, limit: int) -> bool:
        panel, cut = request_panel(request.tool_name, request.tool_args, limit)
        self._console.print(panel)
        return cut


@contextmanager
def asking(*, yes: bool, otherwise: Asker, stdin_is_code: bool = False) -> Generator[Asker]:
    """Whoever answers here: `--yes`, the person at the terminal, or `otherwise` when there is no terminal."""
    terminal = None if yes else find_terminal(stdin_is_code=stdin_is_code)
    if terminal is None:
        yield say_yes if yes else otherwise
        return
    with terminal:
        yield Person(terminal, make_console(stderr=True))


async def drive(mode: CodeMode, code: str, show: Callable[[AgentEvent], None], ask: Asker) -> None:
    """Run one action, show each of its events and get its questions answered; leaving early kills the code."""
    async with aclosing(mode.stream(code)) as events:
        async for event in events:
            show(event)
            if isinstance(event, ApprovalRequest):
                event.approve(await ask(event))


class Listener:
    """Shows events as a mode tells them; what goes wrong with that is raised at the end of the block.

    A mode tells events also from callbacks of the loop, where an error would be lost.
    """

    def __init__(self, show: Callable[[AgentEvent], None]) -> None:
        self._show = show
        self._error: Exception | None = None

    def __call__(self, event: AgentEvent) -> None:
        """Show one event."""
        try:
            self._show(event)
        except Exception as e:
            self._error = self._error or e

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._error is not None:
            raise self._error


async def run_or_pause(mode: CodeMode, code: str) -> None:
    """Run one action where nobody can be asked: the mode's listener is told everything.

    Raises:
        ApprovalRequired: It stands in the journal, at calls that wait.
    """
    with suppress(CodeExecutionError):  # told as RunFailed already
        await mode.run(code)


def decided(answer: str) -> Decision | None:
    """What a typed answer means; None: not an answer."""
    word, _, reason = answer.partition(" ")
    match word.lower():
        case "" | "y" | "yes":
            return None if reason else Allow()
        case "n" | "no":
            return Deny(reason.strip() or BARE_NO)
        case _:
            return None


def request_panel(name: str, arguments: Mapping[str, Any], limit: int) -> tuple[Panel, bool]:
    """A call that asks, in a frame, and whether some of it had to be cut."""
    return call_panel(name, arguments, limit, "asks for approval")


def call_panel(name: str, arguments: Mapping[str, Any], limit: int, why: str) -> tuple[Panel, bool]:
    """A call in a frame that says why it is shown, and whether some of it had to be cut."""
    source, cut = call_source(name, arguments, limit)
    title = Text(f"{neutral(name)} {why}")
    return Panel(code_block(source), title=title, title_align="left", border_style="yellow", expand=False), cut
