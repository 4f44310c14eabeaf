"""What replay needs of an execution beside the contract."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from hatchway.core.recording import Recording
from hatchway.core.sandbox import CodeExecution


class Repeatable(CodeExecution):
    """An execution that tells what it takes to repeat it."""

    is_dump_exact = False

    @property
    @abstractmethod
    def is_over(self) -> bool:
        """Whether the action has ended."""

    @abstractmethod
    def recording(self) -> Recording | None:
        """The action with what was said so far; None where nobody wrote it down, or it is too much."""

    @abstractmethod
    def stands_at(self, ran: float) -> None:
        """The code was led to where it stood before: from here on its time counts as if it had run so long."""

    @abstractmethod
    def dump(self, own_id: Callable[[str], str] = str) -> bytes | None:
        """As the contract says; `own_id` gives the id by which others know a call."""
