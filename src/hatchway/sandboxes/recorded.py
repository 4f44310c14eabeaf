"""Recordings of guests: what an execution was started from, its transcript as a recording, and that as signed bytes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, cast

from hatchway.core import codec
from hatchway.core.calls import FunctionCall, FunctionSignature, as_code, as_signature
from hatchway.core.errors import CheckpointRefused, TransportError
from hatchway.core.limits import Limits
from hatchway.core.recording import RecordedAnswer, RecordedCall, Recording, guest_seed, identity, told_error
from hatchway.core.sandbox import Functions
from hatchway.core.signing import masked, seal, unseal
from hatchway.sandboxes.answer_order import is_beside
from hatchway.transports import messages
from hatchway.transports.messages import Again
from hatchway.transports.transcript import PackedLines

Kind = Literal["execution", "session"]
VERSION = "1"
"""Of the form of the bytes; bytes of another version are refused."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What a guest's execution was started from."""

    recording: Recording
    """The action; what it said and was told before, when it is run again."""
    backend: str
    """Who can run it again."""
    action: int = 0
    """Its number in its session."""

    def again(self) -> Again:
        """What the guest is told so that it can be repeated; nothing of the seed itself."""
        own = (recorded for recorded in self.recording.calls if not is_beside(recorded))
        clock = [_numbers(recorded.trail.get("clock")) for recorded in own]
        return Again(guest_seed(self.recording.seed, self.action), clock, bool(self.recording.calls))


def fresh(
    code: str, functions: Functions, inputs: Mapping[str, Any] | None, limits: Limits, facts: Mapping[str, str]
) -> Recording:
    """An action that has not begun, with a seed nobody knows."""
    return Recording(
        code=as_code(code), functions=functions, inputs=inputs or {}, limits=limits, seed=os.urandom(32), facts=facts
    )


def check_facts(made: Mapping[str, str], here: Mapping[str, str]) -> None:
    """Refuse what cannot be repeated here.

    Raises:
        CheckpointRefused: Another Python, or another of what the backend needs; the reason names both.
    """
    for name, value in made.items():
        if name in here and here[name] != value and name != "hash_seed":
            reason = f"it was made with {name} {value}, here it is {here[name]}"
            raise CheckpointRefused(reason, hint=f"go on with it where {name} is {value}")


@dataclass(frozen=True, slots=True)
class Said:
    """An action with the lines that were said in it, so far."""

    start: Recording
    """The action, with what it printed and how long it ran, but no calls."""
    order: bytes
    calls: PackedLines
    answers: PackedLines

    def recording(self) -> Recording:
        """The action with its calls and answers."""
        order = cast("dict[str, Any]", codec.loads(self.order))
        calls = tuple(_recorded_call(line, self.start.seed) for line in self.calls)
        answers = tuple(_recorded_answer(frame) for frame in self.answers)
        return replace(self.start, inputs=order["inputs"], calls=calls, answers=answers)


def dumped(recording: Recording, origin: Origin, own_id: Callable[[str], str]) -> bytes:
    """An execution as signed bytes, its calls under the ids by which others know them."""
    calls = tuple(replace(c, call=replace(c.call, call_id=own_id(c.call.call_id))) for c in recording.calls)
    answers = tuple(replace(answer, call_id=own_id(answer.call_id)) for answer in recording.answers)
    trails = tuple(replace(c, trail=_renamed(c.trail, own_id)) for c in calls)
    return sealed([replace(recording, calls=trails, answers=answers)], backend=origin.backend, kind="execution")


def _renamed(trail: Mapping[str, Any], own_id: Callable[[str], str]) -> Mapping[str, Any]:
    dropped = trail.get("dropped")
    if not isinstance(dropped, list):
        return trail
    return {**trail, "dropped": [own_id(str(given_up)) for given_up in cast("list[Any]", dropped)]}


def sealed(actions: Sequence[Recording], *, backend: str, kind: Kind) -> bytes:
    """Recordings as signed bytes; their seeds can be read by nobody but the key's owner."""
    packed: list[dict[str, Any]] = []
    for recording in actions:
        nonce = os.urandom(16)
        packed.append({"nonce": nonce, **_packed(recording, nonce)})
    return seal(codec.dumps(packed), _claims(backend, kind))


def unsealed(checkpoint: bytes, *, backend: str, kind: Kind) -> list[Recording]:
    """The recordings of signed bytes.

    Raises:
        CheckpointRefused: They are none of ours, damaged, signed with another key, or of another version.
    """
    payload, _ = unseal(checkpoint, _claims(backend, kind))
    try:
        return [_unpacked(known, known.pop("nonce")) for known in cast("list[dict[str, Any]]", codec.loads(payload))]
    except (codec.Malformed, TransportError, TypeError, KeyError, ValueError) as e:
        raise CheckpointRefused(f"its shape is not known here: {e}") from e


def _claims(backend: str, kind: Kind) -> dict[str, str]:
    return {"backend": backend, "version": VERSION, "kind": kind}


def _packed(recording: Recording, nonce: bytes) -> dict[str, Any]:
    functions = [as_signature(f) for f in recording.functions]
    return {
        "code": recording.code,
        "functions": [{"name": f.name, "is_async": f.is_async, "stub": f.stub} for f in functions],
        "inputs": dict(recording.inputs),
        "limits": asdict(recording.limits),
        "seed": masked(recording.seed, nonce),
        "facts": dict(recording.facts),
        "calls": [_packed_call(recorded) for recorded in recording.calls],
        "answers": [messages.answer(answer, limit=recording.limits.value_bytes) for answer in recording.answers],
        "printed": dict(recording.printed),
        "ran": recording.ran,
    }


def _unpacked(known: dict[str, Any], nonce: bytes) -> Recording:
    known["functions"] = tuple(FunctionSignature(**f) for f in known["functions"])
    known["limits"] = Limits(**known["limits"])
    known["seed"] = masked(known["seed"], nonce)
    known["calls"] = tuple(_unpacked_call(packed) for packed in known["calls"])
    known["answers"] = tuple(_recorded_answer(frame) for frame in known["answers"])
    return Recording(**known)


def _packed_call(recorded: RecordedCall) -> dict[str, Any]:
    call = {"call_id": recorded.call.call_id, "function_name": recorded.call.function_name}
    call |= {"args": recorded.call.args, "kwargs": dict(recorded.call.kwargs)}
    return {"call": call, "identity": recorded.identity, "answers": recorded.answers, "trail": dict(recorded.trail)}


def _unpacked_call(packed: dict[str, Any]) -> RecordedCall:
    packed["call"] = FunctionCall(**packed["call"])
    return RecordedCall(**packed)


def _recorded_call(line: bytes, seed: bytes) -> RecordedCall:
    call, _ = messages.parse(line)
    assert isinstance(call, FunctionCall), "a transcript keeps calls"
    trail = messages.trail_of(line)
    answers = trail.pop("answers", 0)
    return RecordedCall(
        call=call, identity=identity(call, seed), answers=answers if isinstance(answers, int) else 0, trail=trail
    )


def _recorded_answer(frame: bytes) -> RecordedAnswer:
    told = cast("dict[str, Any]", codec.loads(frame))
    if told["type"] == "error":
        return RecordedAnswer(call_id=told["call_id"], error=told_error(told["error_type"], told["message"]))
    return RecordedAnswer(call_id=told["call_id"], value=told["value"])


def _numbers(found: Any) -> Sequence[int]:
    return [n for n in cast("list[Any]", found) if type(n) is int] if isinstance(found, list) else []
