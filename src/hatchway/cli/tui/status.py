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

    def line(self) -> str:
        """The line."""
        parts = [self._progress()] if self.doing else []
        parts += [part for part in (self.model, self.sandbox) if part]
        if self.tokens:
            parts.append(f"{_short(self.tokens)} tokens")
        if self.cost is not None:
            parts.append(f"${self.cost:.4f}" if self.cost < 0.1 else f"${self.cost:.2f}")
        parts.append("Esc cancels" if self.since else "/help")
        return " · ".join(parts)

    def _progress(self) -> str:
        frames = SPINNER if (sys.stdout.encoding or "").lower().startswith("utf") else PLAIN_SPINNER
        frame = frames[int(time.monotonic() * 10) % len(frames)]
        took = f" {time.monotonic() - self.since:.1f} s" if self.since else ""
        return f"{frame} {self.doing}{took}"


def _short(count: int) -> str:
    return f"{count / 1000:.1f}k" if count >= 1000 else str(count)
