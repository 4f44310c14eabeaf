"""Status: the one line at the bottom: what goes on, for how long, what it took so far."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
PLAIN_SPINNER = "-\\|/"


@dataclass(slots=True, kw_only=True)
class Status:
    """What the line is made of; the one who changes something has it drawn again."""

    model: str = ""
    sandbox: str = ""
    doing: str = "loading"
    """What the agent does; empty: it waits for a prompt."""
    since: float = 0.0
    """When the turn began, on the monotonic clock; 0: there is none."""
    tokens: int = 0
    cost: float | None = None
    """US dollars; None: nobody knows what the model costs."""
    idle_hint: str = "/help"
    """What can be done while nothing goes on."""

    def line(self, columns: int = 1_000, hint: str = "") -> str:
        """The line, in so many columns: where they are few, what goes on and what can be done about it stay."""
        hint = hint or ("Esc cancels" if self.since else self.idle_hint)
        progress = self._progress() if self.doing else ""
        about = [self.model, self.sandbox, f"{_short(self.tokens)} tokens" if self.tokens else "", self._cost()]
        for left_out in ((), (1,), (1, 2), (1, 2, 3), (0, 1, 2, 3)):
            kept = [part for place, part in enumerate(about) if place not in left_out]
            line = " · ".join(part for part in (progress, *kept, hint) if part)
            if len(line) <= columns:
                return line
        return line[:columns]

    def _cost(self) -> str:
        if self.cost is None:
            return ""
        return f"${self.cost:.4f}" if self.cost < 0.1 else f"${self.cost:.2f}"

    def _progress(self) -> str:
        frames = SPINNER if (sys.stdout.encoding or "").lower().startswith("utf") else PLAIN_SPINNER
        frame = frames[int(time.monotonic() * 10) % len(frames)]
        took = f" {time.monotonic() - self.since:.1f} s" if self.since else ""
        return f"{frame} {self.doing}{took}"


def _short(count: int) -> str:
    return f"{count / 1000:.1f}k" if count >= 1000 else str(count)
