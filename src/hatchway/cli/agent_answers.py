"""Agent answers: who decides where the agent is talked with by lines: `--yes`, a permission, a person, or nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text

from hatchway.agent.permissions import PermissionManager
from hatchway.cli.display import make_console, neutral
from hatchway.cli.terminal import Terminal, find_terminal
from hatchway.cli.tui.approving import Answer, Approver
from hatchway.core.decisions import Later, Settlement
from hatchway.core.errors import HatchwayError
from hatchway.core.events import ApprovalRequest

SHORT = {"": "\r", "yes": "y", "no": "n"}
"""Words that stand for a key."""
WITH_MORE = "nar"
"""Keys after which what the next field asks for may follow on the same line."""
LAST_LINE = "."


class Left(Exception):
    """The terminal was closed instead of answering."""


class LineFields:
    """Questions and fields at a terminal that knows only lines; the keys are those of the whole screen."""

    def __init__(self, terminal: Terminal, console: Console) -> None:
        self._terminal, self._console = terminal, console
        self._more = ""

    async def choose(self, question: str, keys: str) -> str:
        """The key the person typed, with Enter after it."""
        self._terminal.forget_typed()
        while True:
            word, _, more = (await self._line(f"  {question} › ")).partition(" ")
            key = SHORT.get(word.lower(), word.lower())
            if len(key) == 1 and key in keys and (not more or key in WITH_MORE):
                self._more = more.strip()
                return key

    async def field(self, label: str, text: str = "", *, many_lines: bool = False) -> str | None:
        """A text; Enter alone takes the one that is offered."""
        more, self._more = self._more, ""
        if more:
            return more
        if many_lines:
            return await self._lines()
        offered = f"[{neutral(text)}] " if text else ""
        return await self._line(f"  {label}{offered}") or text

    async def show_whole(self, text: str) -> None:
        """All of a long text."""
        self.print(text)

    def print(self, text: str) -> None:
        """A line of our own."""
        text = text.replace("Ctrl+S", f"a line with only {LAST_LINE}").replace("Esc", "nothing before it")
        self._console.print(Text(text), end="", soft_wrap=True)

    async def _lines(self) -> str | None:
        lines: list[str] = []
        while (line := await self._line("", keeps_spaces=True)) != LAST_LINE:
            lines.append(line)
        return "\n".join(lines) or None

    async def _line(self, label: str, *, keeps_spaces: bool = False) -> str:
        self._console.print(Text(label, "bold"), end="", soft_wrap=True)
        line = await self._terminal.line(keeps_spaces=keeps_spaces)
        if line is None:
            self._console.print()
            raise Left
        return line


class AgentAnswers:
    """Answers what the agent asks.

    Args:
        terminal: Where a person sits; None: nobody can be asked.
        permissions: What need not be asked; `s` and `a` add to it.
        yes: Everything is allowed, but for what may have run already.
    """

    def __init__(self, terminal: Terminal | None, permissions: PermissionManager, *, yes: bool) -> None:
        self._permissions, self._yes = permissions, yes
        self._console = make_console(stderr=True)
        self._approver = None if terminal is None else Approver(LineFields(terminal, self._console), permissions)

    def allows(self, request: ApprovalRequest) -> bool:
        """Whether nobody needs to be asked; a permission may have come after the request."""
        known = self._yes or self._permissions.is_allowed(request.tool_name, dict(request.tool_args))
        return known and not request.in_doubt  # what may have run already is never guessed about

    async def ask(self, request: ApprovalRequest) -> Settlement | Later | None:
        """The answer; `Later` where nobody is there. None: nobody waits for one any more."""
        if self._approver is None:
            return Later()
        asking = asyncio.ensure_future(self._asked(self._approver, request))
        closed = asyncio.ensure_future(request.closed())
        try:
            await asyncio.wait({asking, closed}, return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                self._console.print(Text("\n  nobody waits for an answer any more"))
                return None
            answer = asking.result()
        finally:
            asking.cancel()
            closed.cancel()
            await asyncio.gather(asking, closed, return_exceptions=True)
        if answer is None:
            return Later()
        if answer.kept:
            self._console.print(Text(f"  {neutral(answer.kept)}"))
        return answer.decision

    async def _asked(self, approver: Approver, request: ApprovalRequest) -> Answer | None:
        while True:
            try:
                return await approver.ask(request)
            except Left:
                return None
            except HatchwayError as e:  # a pattern that says nothing, a file that cannot be written
                self._console.print(Text(f"  {neutral(str(e))}"))


@contextmanager
def terminal_to_ask(*, yes: bool, stdin_is_task: bool) -> Generator[Terminal | None]:
    """The terminal of the person who can be asked, if there is one."""
    terminal = None if yes else find_terminal(stdin_is_code=stdin_is_task)
    if terminal is None:
        yield None
        return
    with terminal:
        yield terminal
