"""Budgets: reserved before work is scheduled, so that parallel calls cannot overrun them together."""

from __future__ import annotations

from hatchway.core.errors import CodeLimitError


class CallBudget:
    """How many calls one execution may still make."""

    def __init__(self, limit: int, *, used: int = 0) -> None:
        self._limit = limit
        self.used = used
        """Calls reserved so far."""

    def reserve(self) -> None:
        """Take one call from the budget.

        Raises:
            CodeLimitError: None is left; the code must not go on.
        """
        if self.used >= self._limit:
            raise CodeLimitError(
                f"the code made more than {self._limit} tool calls",
                limit="calls",
                hint="raise Limits.calls, or let one call do the work of many",
            )
        self.used += 1
