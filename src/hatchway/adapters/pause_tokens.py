"""Pause tokens: a signed reference to a paused run, which a request carries while a framework waits for its answer.

The run itself is in the journal, which decides what may still run: a token that was used already settles nothing.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hatchway.core.calls import FunctionCall
from hatchway.core.errors import ApprovalRequired, CheckpointRefused, InDoubt
from hatchway.core.signing import seal, unseal

if TYPE_CHECKING:
    from hatchway.journal.entries import RunState
    from hatchway.journal.store import Journal

MOST_RUNS = 100_000
"""Runs of one state that are looked at."""
_UNENDED: tuple[RunState, ...] = ("paused", "in_doubt", "interrupted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A pause as a token tells it."""

    run_id: str
    nonce: str
    """Stands for this pause and no other of the run."""
    calls: tuple[str, ...]
    """The ids of the calls that wait."""
    in_doubt: bool = False
    """Whether they wait because nobody knows if they ran."""


Stop = ApprovalRequired | InDoubt
"""Where an action stands: at calls somebody must allow, or at calls of which nobody knows whether they ran."""


def waiting_in(stop: Stop) -> tuple[FunctionCall, ...]:
    """The calls an action stands at."""
    return stop.pending if isinstance(stop, ApprovalRequired) else stop.calls


def nonce_of(stop: Stop) -> str:
    """What tells this pause from every other: the calls that wait in it, each of which is decided once."""
    ids = sorted(call.call_id for call in waiting_in(stop))
    doubt = ["in doubt"] if isinstance(stop, InDoubt) else []  # of a call that was allowed before
    return hashlib.sha256(json.dumps([stop.run_id, *doubt, *ids]).encode()).hexdigest()[:32]


def token_of(stop: Stop, *, kind: str, key: bytes) -> str:
    """The token of a pause.

    Args:
        stop: Where the action stands.
        kind: The adapter it is for.
        key: Signs it.
    """
    calls = [call.call_id for call in waiting_in(stop)]
    payload = {"run_id": stop.run_id, "nonce": nonce_of(stop), "calls": calls, "in_doubt": isinstance(stop, InDoubt)}
    return b64encode(seal(json.dumps(payload).encode(), {"kind": kind}, key=key)).decode()


def read_token(token: str, *, kind: str, key: bytes) -> Pause:
    """The pause a token speaks of.

    Raises:
        CheckpointRefused: The token is not ours, or was altered.
    """
    try:
        sealed = b64decode(token, validate=True)
    except ValueError as e:
        raise CheckpointRefused("it is not base64") from e
    payload, _ = unseal(sealed, {"kind": kind}, key=key)
    told = json.loads(payload)
    return Pause(
        run_id=told["run_id"],
        nonce=told["nonce"],
        calls=tuple(told["calls"]),
        in_doubt=told.get("in_doubt", False),
    )


def is_unended(journal: Journal, code: str) -> bool:
    """Whether a run of exactly this code is paused or was cut short."""
    rows = (row for state in _UNENDED for row in journal.runs(state=state, limit=MOST_RUNS))
    return any(row.head.code == code for row in rows)
