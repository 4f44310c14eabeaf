"""Resuming: a run that stands is driven on, whoever is there to answer; and what to type where nobody is."""

from __future__ import annotations

import json
import shlex
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress

from rich.console import Console
from rich.text import Text

from hatchway.cli.journals import journal_words
from hatchway.cli.prompt import SHOWN_CHARACTERS, Asker, call_panel, nobody
from hatchway.cli.terminal import Terminal
from hatchway.core.calls import FunctionCall
from hatchway.core.decisions import NotRun, Ran, Settlement
from hatchway.core.errors import ApprovalRequired, CodeExecutionError, InDoubt
from hatchway.core.events import ApprovalRequest
from hatchway.mode.mode import CodeMode

Settle = Callable[[FunctionCall], Awaitable[Ran | NotRun | None]]
"""Says whether a call in doubt ran; None: no answer came."""


async def go_on(
    mode: CodeMode, run_id: str, given: Mapping[str, Settlement], ask: Asker, settle: Settle | None
) -> None:
    """Drive a run to its end, asking about whatever it stands at; the mode's listener is told everything.

    Args:
        mode: With the journal and the tools of the run.
        run_id: Which.
        given: What is known of its calls already.
        ask: Answers for calls that wait.
        settle: Answers for calls in doubt; None when nobody can.

    Raises:
        ApprovalRequired: Calls wait, and nobody is there.
        InDoubt: Calls are in doubt, and nobody is there.
    """
    while True:
        try:
            with suppress(CodeExecutionError):  # told as RunFailed already
                await mode.resume(run_id, dict(given))
            return
        except ApprovalRequired as e:
            if ask is nobody:
                raise
            given = {call.call_id: await ask(_request(call, run_id)) for call in e.pending}
        except InDoubt as e:
            if settle is None:
                raise
            settled = {call.call_id: await settle(call) for call in e.calls}
            given = {**given, **{call_id: answer for call_id, answer in settled.items() if answer is not None}}
            if None in settled.values():
                raise


def _request(call: FunctionCall, run_id: str) -> ApprovalRequest:
    return ApprovalRequest(call.function_name, call.kwargs, call_id=call.call_id, run_id=run_id)


class Witness:
    """Asks the person at the terminal whether a call ran. There is no default: a guess may do harm twice."""

    def __init__(self, terminal: Terminal, console: Console) -> None:
        self._terminal = terminal
        self._console = console

    async def __call__(self, call: FunctionCall) -> Ran | NotRun | None:
        """The person's answer; None when the terminal was closed instead."""
        panel, _ = call_panel(call.function_name, call.kwargs, SHOWN_CHARACTERS, "may have run before the crash")
        self._console.print(panel)
        self._terminal.forget_typed()
        while True:
            words = "  did it run? [y] yes, it gave None  [y JSON] yes, it gave this  [n] no, run it now › "
            self._console.print(Text(words, "bold"), end="")
            answer = await self._terminal.line()
            if answer is None:
                self._console.print()
                return None
            if (settled := witnessed(answer)) is not None:
                return settled


def witnessed(answer: str) -> Ran | NotRun | None:
    """What a typed answer means; None: not an answer."""
    word, _, rest = answer.partition(" ")
    match word.lower():
        case "y" | "yes":
            try:
                return Ran(json.loads(rest) if rest.strip() else None)
            except ValueError:
                return None
        case "n" | "no":
            return None if rest.strip() else NotRun()
        case _:
            return None


@contextmanager
def next_commands(
    journal: str,
    tools: Sequence[str],
    packages: Sequence[str] = (),
    *,
    run_id: Callable[[], str] = str,
) -> Generator[None]:
    """Tell whoever finds a run standing what to type, with the options of this very command.

    Args:
        run_id: The run that stands in the journal if this command is interrupted now; empty when none does.
    """
    same = [word for tool in tools for word in ("--tools", tool)]
    same += [word for package in packages for word in ("--packages", package)]
    where = journal_words(journal)
    try:
        yield
    except ApprovalRequired as e:
        resume = shlex.join(["hatchway", "approve", e.run_id[:8], "--resume", *same, *where])
        deny = shlex.join(["hatchway", "deny", e.run_id[:8], *where])
        e.hint = f"{resume}\n{deny} --reason TEXT"
        raise
    except InDoubt as e:
        e.hint = "see whether the effect is there, then\n" + "\n".join(_settling(e, [*same, *where]))
        raise
    except KeyboardInterrupt:
        if not (stands := run_id()):
            raise
        raise KeyboardInterrupt(shlex.join(["hatchway", "resume", stands[:8], *same, *where])) from None


def _settling(error: InDoubt, options: Sequence[str]) -> list[str]:
    resume = shlex.join(["hatchway", "resume", error.run_id[:8], *options])
    ran = " ".join(f"--ran {call.call_id}=JSON" for call in error.calls)
    not_run = " ".join(f"--not-run {call.call_id}" for call in error.calls)
    return [f"{resume} {ran}", f"{resume} {not_run}"]
