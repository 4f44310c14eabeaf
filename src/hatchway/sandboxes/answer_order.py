"""The order of a recording's answers: each is due once every call that was made before it has come again.

The guest says how many answers it had when it made a call. Of calls that it made beside its channel, as through a
proxy, the host alone knows when they came, and counts all answers; so there are two rows of answers, and one of the
second may go ahead of one of the first that still waits for a call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from hatchway.core.recording import RecordedAnswer, RecordedCall, Recording


@dataclass(frozen=True, slots=True)
class _Group:
    """Answers that the code took in together."""

    number: int
    """Of the first one, among the answers of its row."""
    place: int
    """Of the first one, among all answers."""
    answers: Sequence[RecordedAnswer]


class AnswerOrder:
    """Says which answers are due, as the calls of a recording come again."""

    def __init__(self, recording: Recording) -> None:
        self.missing = {recorded.call.call_id: recorded for recorded in recording.calls}
        """The calls that have not come again."""
        beside = {recorded.call.call_id for recorded in recording.calls if is_beside(recorded)}
        self.is_mixed = bool(beside)
        """Whether calls were made beside the channel."""
        own = [recorded for recorded in recording.calls if recorded.call.call_id not in beside]
        others = [recorded for recorded in recording.calls if recorded.call.call_id in beside]
        self._groups = deque(_groups(recording, beside))
        self._beside = deque(
            _Group(place, place, (answer,))
            for place, answer in enumerate(recording.answers, 1)
            if answer.call_id in beside
        )
        self._own_by_answers = _Awaited(own, lambda recorded: recorded.answers, self.missing)
        self._own_by_given = _Awaited(own, _given, self.missing)
        self._others = _Awaited(others, lambda recorded: recorded.answers, self.missing)
        self._dropped_by = {
            dropped: recorded.call.call_id for recorded in recording.calls for dropped in _texts(recorded, "dropped")
        }

    @property
    def is_through(self) -> bool:
        """Whether every call has come and every answer was given."""
        return not self.missing and not self._groups and not self._beside

    def came(self, call_id: str) -> None:
        """A call has come again."""
        del self.missing[call_id]

    def due(self) -> Sequence[RecordedAnswer] | None:
        """The answers to give now; None when a call has to come first."""
        group = self._groups[0] if self._groups else None
        beside = self._beside[0] if self._beside else None
        if group is not None and (beside is None or group.place < beside.place) and self._is_due(group):
            return self._groups.popleft().answers
        if beside is not None and self._is_due_beside(beside):
            return self._beside.popleft().answers
        return None

    def _is_due(self, group: _Group) -> bool:
        if any(answer.call_id in self.missing for answer in group.answers):
            return False
        if any(self._dropped_by.get(answer.call_id) in self.missing for answer in group.answers):
            return False  # the code gave it up first: it must have gone on without it
        return self._own_by_answers.have_come_before(group.number) and self._others.have_come_before(group.place)

    def _is_due_beside(self, group: _Group) -> bool:
        return self._others.have_come_before(group.place) and self._own_by_given.have_come_before(group.place)


class _Awaited:
    """Calls in the order of how many answers there were when each was made."""

    def __init__(
        self, calls: Sequence[RecordedCall], number: Callable[[RecordedCall], int], missing: dict[str, RecordedCall]
    ) -> None:
        self._calls, self._number, self._missing = sorted(calls, key=number), number, missing
        self._at = 0

    def have_come_before(self, answer: int) -> bool:
        """Whether all that were made before this answer have come again."""
        while self._at < len(self._calls) and self._calls[self._at].call.call_id not in self._missing:
            self._at += 1
        return self._at == len(self._calls) or self._number(self._calls[self._at]) >= answer


def is_beside(recorded: RecordedCall) -> bool:
    """Whether a call was made beside the channel."""
    return recorded.trail.get("beside") is True


def _given(recorded: RecordedCall) -> int:
    given = recorded.trail.get("given")
    return given if isinstance(given, int) else 0  # made before any call beside the channel was


def _groups(recording: Recording, beside: set[str]) -> list[_Group]:
    """The answers on the channel as the code took them in: mostly one at a time."""
    together = dict(pair for recorded in recording.calls for pair in _pairs(recorded, "together"))
    placed = [(place, a) for place, a in enumerate(recording.answers, 1) if a.call_id not in beside]
    groups: list[_Group] = []
    at = 0
    while at < len(placed):
        size = max(1, together.get(at + 1, 1))
        groups.append(_Group(at + 1, placed[at][0], [answer for _, answer in placed[at : at + size]]))
        at += size
    return groups


def _pairs(recorded: RecordedCall, name: str) -> list[tuple[int, int]]:
    """Pairs of numbers in a trail; the code may have written anything there."""
    found = recorded.trail.get(name)
    pairs = cast("list[Any]", found) if isinstance(found, list) else []
    return [
        (p[0], p[1]) for p in pairs if isinstance(p, list) and [type(n) for n in cast("list[Any]", p)] == [int, int]
    ]


def _texts(recorded: RecordedCall, name: str) -> list[str]:
    found = recorded.trail.get(name)
    return [t for t in cast("list[Any]", found) if isinstance(t, str)] if isinstance(found, list) else []
