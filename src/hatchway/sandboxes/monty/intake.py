"""Intake: what comes out of the code, a call or its output, is checked before anybody sees it."""

from __future__ import annotations

from typing import Any

import pydantic_monty as pm

from hatchway.core.calls import FunctionCall
from hatchway.core.codec import NotPortable
from hatchway.core.errors import CodeRuntimeError, HatchwayError
from hatchway.core.limits import Limits
from hatchway.sandboxes.monty import failures
from hatchway.sandboxes.monty.ledger import Ledger
from hatchway.sandboxes.monty.machine import LATER
from hatchway.sandboxes.monty.offer import Offer
from hatchway.sandboxes.monty.outward import arguments_from_guest, from_guest
from hatchway.sandboxes.monty.source import Source, not_awaited
from hatchway.sandboxes.monty.values import TooLarge


class Intake:
    """Checks the calls and the output of one action.

    Args:
        offer: What the code may call.
        source: The code.
        limits: What it may take.
        ledger: Where its calls are written down.
    """

    def __init__(self, offer: Offer, source: Source, limits: Limits, ledger: Ledger) -> None:
        self._offer, self._source, self._limits, self._ledger = offer, source, limits, ledger

    def take(self, stop: pm.FunctionSnapshot) -> pm.ExternalResult | HatchwayError | None:
        """Write down a call. Gives the answer to go on with, None to stand at it, or the error that ends the action."""
        name = self._offer.name_of(stop)
        is_async = self._offer.styles.get(name)
        if is_async is None:
            return self._offer.unknown(name)
        if fault := self._source.style_fault(name, stop, is_async=is_async):
            return {"exc_type": "TypeError", "message": fault}
        try:
            call = self._call(name, stop)
        except NotPortable as e:
            return {"exc_type": "TypeError", "message": _refusal(e, name)}
        except TooLarge:
            return failures.over_value(self._limits, f"an argument of {name}")
        if (error := self._ledger.enter(call)) is not None:
            return error
        if is_async:
            self._ledger.postpone(call, stop)
            return LATER
        self._ledger.start()  # the code stands here, and other tasks of it may stand at theirs
        self._ledger.hand_out(call)
        return None

    def output(self, value: Any) -> Any:
        """The value the code ends in.

        Raises:
            CodeRuntimeError: It cannot cross, or a call was never awaited.
            CodeLimitError: It is too large.
        """
        if self._ledger.unstarted:
            raise self._never_awaited()
        if value is None or not self._source.ends_in_expression:
            return None
        try:
            return self._copied(value)
        except NotPortable as e:
            raise CodeRuntimeError(f"TypeError: {e.path('output')} {e.reason}") from None
        except TooLarge:
            raise failures.over_value(self._limits, "the output") from None

    def style_hint(self) -> str:
        """What to tell about a call that nobody has awaited; empty when there is none."""
        return not_awaited(next(iter(self._ledger.unstarted.values())).function_name) if self._ledger.unstarted else ""

    def _call(self, name: str, stop: pm.FunctionSnapshot) -> FunctionCall:
        args, kwargs = stop.args, stop.kwargs
        return FunctionCall(
            call_id=str(stop.call_id),
            function_name=name,
            args=arguments_from_guest(args, limit=self._limits.value_bytes, tool_of=self._tool_of),
            kwargs=self._copied(kwargs) if kwargs else {},
        )

    def _copied(self, value: Any) -> Any:
        return from_guest(value, limit=self._limits.value_bytes, tool_of=self._tool_of)

    def _tool_of(self, number: int) -> str | None:
        call = self._ledger.unstarted.get(str(number)) or self._ledger.pending.get(str(number))
        return call.function_name if call else None

    def _never_awaited(self) -> CodeRuntimeError:
        stop = self._ledger.stops[next(iter(self._ledger.unstarted))]
        shown = ""
        if (line := self._source.line_of(stop.position)) is not None:
            shown = f'Traceback (most recent call last):\n  File "<action>", line {line[0]}\n    {line[1]}\n'
        return CodeRuntimeError(f"{shown}TypeError: {self.style_hint()}")


def _refusal(error: NotPortable, name: str) -> str:
    """The refusal of an argument, which is told by its place, counted from one, or by its name."""
    place = error.keys.pop()
    which = str(int(place) + 1) if place.isdigit() else place
    return f"{error.path(f'argument {which} of {name} ').rstrip()} {error.reason}"
