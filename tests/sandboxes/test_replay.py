"""Recordings as bytes are refused when anything about them is not ours; what is repeated draws and reads the same."""

from pathlib import Path
from typing import Any

import pytest

from hatchway.core.calls import FunctionCall, FunctionSignature
from hatchway.core.errors import CheckpointRefused
from hatchway.core.recording import RecordedAnswer, RecordedCall, Recording, identity
from hatchway.core.signing import seal, unseal
from hatchway.sandboxes import recorded
from hatchway.sandboxes.process import ProcessSandbox

pytestmark = pytest.mark.anyio
SEED = bytes(range(32))
CALL = FunctionCall(call_id="1.1", function_name="ask", args=(1, b"\0"), kwargs={"key": {1, 2}})
RECORDING = Recording(
    code="ask(1)",
    functions=(FunctionSignature(name="ask", stub="def ask(n): ..."),),
    inputs={"n": (1, 2)},
    seed=SEED,
    facts={"python": "3.11"},
    calls=(RecordedCall(call=CALL, identity=identity(CALL, SEED), answers=0, trail={"clock": [1, 2]}),),
    answers=(RecordedAnswer(call_id="1.1", value={"a": [1.5, None]}),),
    printed={"stdout": 3, "stderr": 0},
    ran=0.25,
)


@pytest.fixture(autouse=True)
def key_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key of the test's own."""
    monkeypatch.setenv("HATCHWAY_KEY_FILE", str(tmp_path / "key"))


def test_a_recording_survives_being_bytes_and_hides_its_seed() -> None:
    sealed = recorded.sealed([RECORDING], backend="process", kind="execution")
    assert recorded.unsealed(sealed, backend="process", kind="execution") == [RECORDING]
    for form in (SEED, SEED.hex().encode(), repr(SEED).encode()):
        assert form not in sealed


def test_bytes_cut_or_altered_anywhere_are_refused() -> None:
    sealed = recorded.sealed([RECORDING], backend="process", kind="execution")
    for at in range(len(sealed)):
        with pytest.raises(CheckpointRefused):
            recorded.unsealed(sealed[:at], backend="process", kind="execution")
        flipped = sealed[:at] + bytes([sealed[at] ^ 1 << at % 8]) + sealed[at + 1 :]
        with pytest.raises(CheckpointRefused):
            recorded.unsealed(flipped, backend="process", kind="execution")


def test_another_key_version_backend_or_kind_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sealed = recorded.sealed([RECORDING], backend="process", kind="execution")
    with pytest.raises(CheckpointRefused, match="its backend is 'process', here it is 'jail'"):
        recorded.unsealed(sealed, backend="jail", kind="execution")
    with pytest.raises(CheckpointRefused, match="its kind is 'execution', here it is 'session'"):
        recorded.unsealed(sealed, backend="process", kind="session")
    payload, claims = unseal(sealed, {})
    other = {"backend": "process", "kind": "execution", "version": "0"}
    with pytest.raises(CheckpointRefused, match="its version is '0', here it is '1'"):
        recorded.unsealed(seal(payload, other), backend="process", kind="execution")
    shapeless = seal(b'[{"nonce":"x"}]', {**other, "version": claims["version"]})
    with pytest.raises(CheckpointRefused, match="its shape is not known here"):
        recorded.unsealed(shapeless, backend="process", kind="execution")
    monkeypatch.setenv("HATCHWAY_KEY_FILE", str(tmp_path / "another"))
    with pytest.raises(CheckpointRefused, match="it was signed with another key"):
        recorded.unsealed(sealed, backend="process", kind="execution")


CHANCE = """
import datetime, os, random, secrets, time, uuid
drawn = [random.random(), random.Random().random(), os.urandom(8), secrets.token_hex(4), str(uuid.uuid4())]
read = [time.time(), time.monotonic_ns(), time.strftime("%H:%M:%S")]
read += [str(datetime.datetime.now()), str(datetime.date.today())]
order = list({str(n) for n in range(30)})
ask(1)
[drawn, read, order]
"""


async def stood(sandbox: ProcessSandbox) -> tuple[bytes, Any]:
    execution = await sandbox.execute(CHANCE, ["ask"])
    await execution.next()
    await execution.next()
    checkpoint = execution.dump()
    assert checkpoint is not None
    await execution.provide_result(None)
    result: Any = await execution.next()
    return checkpoint, result.output


async def test_chance_time_and_order_are_had_again() -> None:
    async with ProcessSandbox() as sandbox:
        checkpoint, first = await stood(sandbox)
        _, other = await stood(sandbox)
        restored = await sandbox.restore(checkpoint)
        assert restored is not None
        await restored.next()
        await restored.provide_result(None)
        again: Any = await restored.next()
    assert again.output == first
    assert all(mine != theirs for mine, theirs in zip(first[0], other[0], strict=True))  # never a constant


async def test_the_seed_of_a_run_does_not_enter_the_guest() -> None:
    code = "import gc, sys\nfound = [o for o in gc.get_objects() if isinstance(o, (list, dict))]\nask(1)\nseed_in_sight"
    async with ProcessSandbox() as sandbox:
        execution = await sandbox.replay(
            Recording(code=code, functions=["ask"], inputs={"seed_in_sight": 1}, seed=SEED)
        )
        await execution.next()
        order = execution._channel.transcript.order  # type: ignore[attr-defined]
        await execution.cancel()
    assert SEED.hex().encode() not in order
    assert b'"seed":' in order  # what is told is derived from it
