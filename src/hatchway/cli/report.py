"""Report: what `hatchway exec` tells about a run, as lines for a person or as one JSON object."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import click

from hatchway.cli.display import make_console, neutral
from hatchway.cli.exits import Exit, exit_for
from hatchway.cli.objects import print_json
from hatchway.cli.pictures import Pictures
from hatchway.cli.view import View
from hatchway.core.errors import CodeExecutionError, CodeTimeoutError, HatchwayError, described
from hatchway.core.events import (
    AgentEvent,
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
from hatchway.core.values import as_python


class Report(ABC):
    """Takes the events of one run; a context manager around everything that can fail."""

    exit = Exit.DONE
    """How the run ended, as far as is known."""
    standing = ""
    """The run that has begun and not ended."""
    more_time = ""
    """How a person gives the code more time, where the command has a way."""

    def __enter__(self) -> Report:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        """An error that no event told is left to the command line to tell."""
        return False

    def take(self, event: AgentEvent) -> None:
        """One event."""
        match event:
            case RunStarted(run_id=run_id):
                self.standing = run_id
            case CodeExecutionOutput() | RunFailed(error=CodeExecutionError()):
                self.standing = ""
            case _:
                pass
        if isinstance(event, RunFailed):
            if not isinstance(event.error, CodeExecutionError):
                return  # the host failed: that is raised too, and the command line tells it
            self.exit = exit_for(event.error)
            if self.more_time and isinstance(event.error, CodeTimeoutError):
                event.error.hint = self.more_time
        self.show(event)

    @abstractmethod
    def show(self, event: AgentEvent) -> None:
        """Tell one event."""


class TextReport(Report):
    """The code's output on stdout, everything else on stderr."""

    def __init__(self, pictures: Pictures) -> None:
        self._pictures = pictures
        self._view = View(make_console(stderr=True))

    def show(self, event: AgentEvent) -> None:
        """Tell one event."""
        match event:
            case CodeExecutionOutputChunk(text=text, stream=stream):
                click.echo(neutral(text), nl=False, err=stream == "stderr")
            case CodeExecutionDisplay(display=display):
                self._view.note(self._pictures.take(display))
            case CodeExecutionOutput(result=result):
                if result is not None and result.output is not None:
                    click.echo(neutral(as_python(result.output)))
            case _:
                self._view.show(event)


class JsonReport(Report):
    """One object, printed at the end."""

    def __init__(self, pictures: Pictures) -> None:
        self._pictures = pictures
        self._about: dict[str, Any] = {"run_id": "", "sandbox": "", "tier": ""}
        self._calls: dict[str, dict[str, Any]] = {}
        self._gave: dict[str, Any] = {"output": None, "stdout": "", "stderr": ""}
        self._error: Exception | None = None

    def show(self, event: AgentEvent) -> None:
        """Remember one event."""
        match event:
            case RunStarted(sandbox=sandbox, tier=tier, run_id=run_id):
                self._about = {"run_id": run_id, "sandbox": sandbox, "tier": tier}
            case CodeExecutionOutputChunk(text=text, stream=stream):
                self._gave[stream] += text
            case CodeExecutionDisplay(display=display):
                self._pictures.take(display)
            case CallStarted(call=call) | CallDecided(call=call):
                self._call(call.call_id, call.function_name).update(args=dict(call.kwargs))
            case ToolOutput():
                self._call(event.call_id, event.tool_name).update(
                    state="done", value=event.content, seconds=event.seconds
                )
            case CallFailed():
                state = "denied" if event.denied else "failed"
                self._call(event.call_id, event.tool_name).update(state=state, error=event.error, seconds=event.seconds)
            case RunPaused(pending=pending):
                for call in pending:
                    self._call(call.call_id, call.function_name).update(args=dict(call.kwargs), state="pending")
            case CodeExecutionOutput(result=result) if result is not None:
                self._gave = {"output": result.output, "stdout": result.stdout, "stderr": result.stderr}
            case RunFailed(error=error):
                self._error = error
            case _:
                pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        """Print the object; errors a user can do something about are told in it, the rest goes on."""
        match error:
            case HatchwayError():
                self.exit, self._error = exit_for(error), error
            case click.ClickException():
                self.exit, self._error = Exit(error.exit_code), error
            case KeyboardInterrupt():
                self.exit = Exit.INTERRUPTED
            case None:
                pass
            case _:
                return False
        print_json(self._object())
        return not isinstance(error, KeyboardInterrupt)

    def _object(self) -> Any:
        if isinstance(self._error, CodeExecutionError):
            self._gave |= {"stdout": self._error.stdout, "stderr": self._error.stderr}
        error = None if self._error is None else _error_object(self._error)
        whole = {"state": self.exit.name.lower(), **self._gave, "error": error, "calls": list(self._calls.values())}
        whole["displays"] = self._pictures.told
        return {**whole, **self._about}

    def _call(self, call_id: str, tool: str) -> dict[str, Any]:
        return self._calls.setdefault(call_id, {"call_id": call_id, "tool": tool, "args": {}, "state": "started"})


def _error_object(error: Exception) -> dict[str, str]:
    hint = error.hint if isinstance(error, HatchwayError) else ""
    message = error.message if isinstance(error, HatchwayError | click.ClickException) else described(error)["message"]
    return {"type": type(error).__name__, "message": message, "hint": hint}
