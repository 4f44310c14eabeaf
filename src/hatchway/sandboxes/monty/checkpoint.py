"""Checkpoints: a waiting execution or an idle session as signed bytes.

The payload is one line in the form of `core/codec.py` (what Hatchway knows), then Monty's own dump. The limits that
Monty watches are in its dump; the code, its calls and what it printed are in the line.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Self, cast

import pydantic_monty as pm

from hatchway.core import codec
from hatchway.core.calls import FunctionCall
from hatchway.core.errors import CheckpointRefused
from hatchway.core.limits import Limits
from hatchway.core.signing import masked, seal, unseal


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """What Hatchway knows of a waiting execution."""

    code: str
    styles: Mapping[str, bool]
    """The functions it may call, and whether each is async."""
    limits: Limits
    pending: Sequence[FunctionCall]
    answers: Mapping[int, pm.ExternalSettledResult]
    made: int
    ran: float
    stdout: str
    stderr: str
    feed: int
    files: Mapping[str, bytes]
    """What it has left in `/output` so far."""
    repeat: tuple[bytes, int, Sequence[float]] | None = None
    """Where it can be run again: what it draws from (nobody but the key's owner reads it), how often it drew, and what
    it read from clocks since its last call."""

    def sealed(self, vm: bytes) -> bytes:
        """The checkpoint as signed bytes."""
        known = asdict(self) | {"pending": [_packed(call) for call in self.pending]}
        if self.repeat is not None:
            nonce = os.urandom(16)
            known["repeat"] = [nonce, masked(self.repeat[0], nonce), *self.repeat[1:]]
        return _seal(known, vm, kind="execution")

    @classmethod
    def unsealed(cls, checkpoint: bytes) -> tuple[Self, bytes]:
        """The checkpoint and Monty's dump.

        Raises:
            CheckpointRefused: It is none of ours, damaged, or of another version.
        """
        known, vm = _unseal(checkpoint, kind="execution")
        with _shape_refused():
            known["limits"] = Limits(**known["limits"])
            known["pending"] = [FunctionCall(**call) for call in known["pending"]]
            if known["repeat"] is not None:
                nonce, seed, drawn, reads = known["repeat"]
                known["repeat"] = (masked(seed, nonce), drawn, reads)
            return cls(**known), vm


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCheckpoint:
    """What Hatchway knows of an idle session."""

    limits: Limits
    feeds: int
    files: Mapping[str, bytes]
    """What its actions left in `/output`."""

    def sealed(self, vm: bytes) -> bytes:
        """The checkpoint as signed bytes."""
        return _seal(asdict(self), vm, kind="session")

    @classmethod
    def unsealed(cls, checkpoint: bytes) -> tuple[Self, bytes]:
        """The checkpoint and Monty's dump.

        Raises:
            CheckpointRefused: It is none of ours, damaged, or of another version.
        """
        known, vm = _unseal(checkpoint, kind="session")
        with _shape_refused():
            return cls(limits=Limits(**known["limits"]), feeds=known["feeds"], files=known["files"]), vm


def _packed(call: FunctionCall) -> dict[str, Any]:
    return {
        "call_id": call.call_id,
        "function_name": call.function_name,
        "args": call.args,
        "kwargs": dict(call.kwargs),
    }


def _claims(kind: str) -> dict[str, str]:
    return {"backend": "monty", "version": pm.__version__, "kind": kind}


def _seal(known: Mapping[str, Any], vm: bytes, *, kind: str) -> bytes:
    return seal(codec.dumps(known) + b"\n" + vm, _claims(kind))


def _unseal(checkpoint: bytes, *, kind: str) -> tuple[dict[str, Any], bytes]:
    payload, _ = unseal(checkpoint, _claims(kind))
    line, _, vm = payload.partition(b"\n")
    with _shape_refused():
        return cast("dict[str, Any]", codec.loads(line)), vm


@contextmanager
def _shape_refused() -> Generator[None]:
    """Signed by us, yet of a shape that another version wrote."""
    try:
        yield
    except (codec.Malformed, TypeError, KeyError, ValueError) as e:
        raise CheckpointRefused(f"its shape is not known here: {e}") from e
