"""Screen: the last lines of a terminal, below all that scrolled by: what streams in, a question or a field, the status.

It knows keys and text and nothing of agents. Only prompt-toolkit is imported: the prompt must be there at once.
"""

from __future__ import annotations

import asyncio
import sys
import termios
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress

from prompt_toolkit.application import Application, in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer, DummyCompleter, DynamicCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_input
from prompt_toolkit.output import create_output
from prompt_toolkit.output.vt100 import Vt100_Output

from hatchway.cli.tui.asked import QUIT, Choosing, Typing
from hatchway.cli.tui.keys import key_bindings
from hatchway.cli.tui.last_lines import STYLE, LastLines


class Screen:
    """The terminal of one person; `async with screen.open():` around everything else.

    Args:
        status: The status line, asked for at every drawing: in so many columns, with what keys do now.
        completer: Completes what is typed at the prompt.
    """

    def __init__(self, status: Callable[[int, str], str], completer: Completer | None = None) -> None:
        self.status = status
        """The status line, as it is now; without words about keys it has its own."""
        self.completer: Completer = completer or DummyCompleter()
        self.on_cancel: Callable[[], None] = lambda: None
        """Esc or Ctrl+C while there is nothing to type into."""
        self.on_whole: Callable[[], None] = lambda: None
        """Ctrl+O."""
        self.is_complete: Callable[[str], bool] = lambda text: True
        """Whether Enter sends what is typed, or is a newline in it."""
        self.label = "› "
        """Stands before what is typed at the prompt."""
        self.live = ""
        """What streams in and is not whole yet."""
        self.waits: Typing | Choosing | None = None
        """What the person is asked for now."""
        self.buffer = Buffer(
            completer=DynamicCompleter(lambda: self.completer if self._is_prompt() else DummyCompleter()),
            complete_while_typing=Condition(self._is_prompt),
            history=InMemoryHistory(),
            multiline=True,
        )
        self.ahead = ""
        """What is typed while nothing is asked for."""
        self._printed: list[str] = []
        self._is_covered = False
        self._drawn = asyncio.Event()
        self._lines = LastLines(self)
        self._app = self._application()

    @property
    def width(self) -> int:
        """Columns."""
        return self._app.output.get_size().columns

    @property
    def height(self) -> int:
        """Lines."""
        return self._app.output.get_size().rows

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        """Draw it, and take it away at the end; the prompt is drawn when the block begins."""
        running = asyncio.ensure_future(self._app.run_async(handle_sigint=False))
        try:
            await self._when_drawn(running)
            yield
            self._flush()
        finally:
            if not running.done():
                self._app.exit()
            await running

    async def compose(self) -> str | None:
        """What the person wants to say; None: they leave."""
        text, self.ahead = self.buffer.text + self.ahead, ""
        return await self._typed(Typing(label="", done=_future(), is_prompt=True), text)

    async def field(self, label: str, text: str = "", *, many_lines: bool = False) -> str | None:
        """A text that the person may change; None: Esc."""
        return await self._typed(Typing(label=label, done=_future(), many_lines=many_lines), text)

    async def choose(self, question: str, keys: str) -> str:
        """The key the person presses, one of these; `\\r` is Enter. What was typed before is no answer."""
        self._forget_typed()
        self.waits = None
        await self.redrawn()
        done: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        waits = Choosing(question=question, keys=frozenset(keys), done=done)
        self.waits = waits
        self._app.layout.focus(self._lines.question)
        self._app.invalidate()
        try:
            return await waits.done
        finally:
            self.waits = None
            self._app.invalidate()

    def enter(self) -> None:
        """Enter in a field of one line, or at the prompt."""
        text, state = self.buffer.text, self.buffer.complete_state
        if state is not None and state.current_completion is not None:
            self.buffer.complete_state = None
        elif not self._is_prompt() or text.strip() == QUIT:
            self.end(None if self._is_prompt() else text)
        elif not self.is_complete(text):
            is_block = self.buffer.document.text_before_cursor.rstrip().endswith(":")
            self.buffer.newline(copy_margin=True)
            self.buffer.insert_text("    " if is_block else "")
        elif text.strip():
            self.end(text)

    def interrupt(self) -> None:
        """Ctrl+C in a field: an empty one is left, at the prompt a text is dropped first."""
        if self._is_prompt() and self.buffer.text:
            self.buffer.reset()
        else:
            self.end(None)

    def end(self, text: str | None) -> None:
        """Close the field that is open."""
        if isinstance(self.waits, Typing) and not self.waits.done.done():
            self.waits.done.set_result(text)

    def press(self, key: str) -> None:
        """Answer the question that is open, if this key is an answer."""
        if isinstance(self.waits, Choosing) and key in self.waits.keys and not self.waits.done.done():
            self.waits.done.set_result(key)

    def type_ahead(self, key: str) -> None:
        """A key while nothing is asked for: it stands at the next prompt, and answers no question."""
        if key == "\x7f":
            self.ahead = self.ahead[:-1]
        elif key.isprintable():
            self.ahead += key
        self.refresh()

    def paste_ahead(self, text: str) -> None:
        """The same with what is pasted, lines and all."""
        lines = text.replace("\r\n", "\n").replace("\r", "\n")
        self.ahead += "".join(each for each in lines if each.isprintable() or each in "\n\t")
        self.refresh()

    def print(self, text: str) -> None:
        """Put text above the screen, where it stays; it ends with a newline."""
        self._printed.append(text)
        self._app.invalidate() if self._is_covered else self._flush()

    def refresh(self) -> None:
        """Draw again: something that is shown has changed."""
        self._app.invalidate()

    async def redrawn(self) -> None:
        """Return when all that was printed is on the screen."""
        self._drawn.clear()
        self._app.invalidate()
        await self._drawn.wait()

    async def show_whole(self, text: str, *, at_end: bool = False) -> None:
        """A text that may be long, over the whole screen, until the person closes it."""
        from hatchway.cli.tui.whole import whole_view

        if self._is_covered:
            return
        self._is_covered = True
        try:
            async with in_terminal():
                await whole_view(text, self._app.input, self._app.output, at_end=at_end).run_async(handle_sigint=False)
        finally:
            self._is_covered = False
            self._flush()

    async def _typed(self, typing: Typing, text: str) -> str | None:
        self.waits = typing
        self.buffer.set_document(Document(text), bypass_readonly=True)
        self._app.layout.focus(self.buffer)
        self._app.invalidate()
        try:
            return await typing.done
        finally:
            self.waits = None
            self.buffer.reset(append_to_history=typing.is_prompt)
            self._app.layout.focus(self._lines.question)
            self._app.invalidate()

    async def _when_drawn(self, running: asyncio.Future[None]) -> None:
        drawn = asyncio.ensure_future(self._drawn.wait())
        try:
            await asyncio.wait([running, drawn], return_when=asyncio.FIRST_COMPLETED)
        finally:
            drawn.cancel()

    def _flush(self) -> None:
        """Print what is to be printed: the screen is taken away, and drawn again below."""
        if self._printed and not self._is_covered:
            text = "".join(self._printed)
            self._printed.clear()
            self._app.renderer.erase()
            self._app.output.write_raw(text)
            self._app.output.flush()
            self._app.invalidate()

    def _forget_typed(self) -> None:
        with suppress(termios.error, OSError, ValueError):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)

    def _application(self) -> Application[None]:
        output = create_output()
        if isinstance(output, Vt100_Output):
            output.enable_cpr = False  # answers of a slow ssh would arrive as if they were typed
        app = Application[None](
            layout=self._lines.layout(),
            key_bindings=key_bindings(self),
            style=STYLE,
            erase_when_done=True,
            input=create_input(),
            output=output,
            after_render=lambda _: self._drawn.set(),
        )
        app.ttimeoutlen, app.timeoutlen = 0.05, 0.3  # how long an Esc may be the beginning of another key
        return app

    def _is_prompt(self) -> bool:
        return isinstance(self.waits, Typing) and self.waits.is_prompt


def _future() -> asyncio.Future[str | None]:
    return asyncio.get_running_loop().create_future()
