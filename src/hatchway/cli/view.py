"""View: the events of a run as lines on a terminal. It reads events and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from hatchway.cli.display import call_text, neutral, print_line, value_text
from hatchway.core.calls import FunctionCall
from hatchway.core.events import (
    AgentEvent,
    ApprovalRequest,
    CallDecided,
    CallFailed,
    CallStarted,
    CodeExecutionDisplay,
    CodeExecutionOutput,
    CodeExecutionOutputChunk,
    RunFailed,
    RunPaused,
    RunStarted,
    ToolOutput,
)

GUTTER = "  │ "
"""Stands before each line the code prints, so that output cannot pass for our own words."""


class View:
    """Prints what happens in one or more runs, one short line per fact."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._calls: dict[str, FunctionCall] = {}
        self._line_open = False

    def show(self, event: AgentEvent) -> None:
        """Print one event; kinds that say nothing new to a reader are silent."""
        match event:
            case RunStarted():
                self._calls.clear()
            case CallStarted(call=call) | CallDecided(call=call):
                self._calls[call.call_id] = call
            case ApprovalRequest():
                self._end_line()
            case CodeExecutionOutputChunk(text=text, stream=stream):
                self.output(text, stream)
            case CodeExecutionDisplay(display=display):
                self.note(f"{display.name}  {neutral(display.text).partition(chr(10))[0][:80]}")
            case ToolOutput():
                self._call_line("✓", "green", event.tool_name, event.call_id, value_text(event.content), event.seconds)
            case CallFailed():
                mark = "⊘" if event.denied else "✗"
                self._call_line(mark, "yellow", event.tool_name, event.call_id, neutral(event.error), event.seconds)
            case CodeExecutionOutput(result=result) if result is not None:
                self._end_line()
                if result.output is not None:
                    self._print(("  = ", "bold"), value_text(result.output, 2000))
            case RunPaused(pending=pending):
                self._paused(pending)
            case RunFailed(error=error):
                self._end_line()
                self._print((neutral(str(error)), "red"))
            case _:
                pass

    def note(self, text: str) -> None:
        """Print a line of our own."""
        self._end_line()
        self._print(("  ▣ ", "blue"), neutral(text))

    def output(self, text: str, stream: str) -> None:
        """Print a piece of the code's own output behind the gutter; a piece may end in the middle of a line."""
        style = "red" if stream == "stderr" else ""
        for line in neutral(text).splitlines(keepends=True):
            start = "" if self._line_open else GUTTER
            self._print((start, "dim"), (line, style), end="")
            self._line_open = not line.endswith("\n")

    def _paused(self, pending: Sequence[FunctionCall]) -> None:
        self._end_line()
        for call in pending:
            waits = call_text(call.function_name, call.kwargs, 600)
            self._print(("  ? ", "yellow"), waits, (f"  waits as call {neutral(call.call_id)}", "dim"))

    def _call_line(self, mark: str, style: str, name: str, call_id: str, outcome: str, seconds: float) -> None:
        self._end_line()
        call = self._calls.get(call_id)
        called = call_text(name, call.kwargs if call else {})
        took = f"  {seconds * 1000:.0f} ms" if seconds >= 0.001 else ""
        self._print((f"  {mark} ", style), called, (" → ", "dim"), outcome, (took, "dim"))

    def _end_line(self) -> None:
        if self._line_open:
            self._print()
            self._line_open = False

    def _print(self, *parts: str | tuple[str, str], end: str = "\n") -> None:
        print_line(self._console, *parts, end=end)
