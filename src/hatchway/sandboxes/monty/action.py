"""An action for Monty: what is to be run, and what it may use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hatchway.core.limits import Limits
from hatchway.sandboxes.monty.files import Files
from hatchway.sandboxes.monty.offer import Offer
from hatchway.sandboxes.monty.output import MontyOutput
from hatchway.sandboxes.monty.printed import Printed
from hatchway.sandboxes.monty.repeat import Repeat


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What is to be run, and what it may use."""

    code: str
    offer: Offer
    limits: Limits
    printed: Printed
    files: Files
    output: MontyOutput | None
    """Where it leaves files; None where none are granted."""
    environ: Mapping[str, str]
    is_session: bool = False
    """The worker is kept when the action ends."""
    repeat: Repeat | None = None
    """Where it can be run again: what answers its clocks and randomness."""
