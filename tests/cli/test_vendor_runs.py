"""Runs of code at a vendor, seen by commands: told of, decided about, and gone on with by the program that asked."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hatchway import ApprovalRequired, tool
from hatchway.hosted import AnthropicAdapter, code_tool
from hatchway.testing import CallsTool, CodeEnded, ScriptedVendor, VendorSays


@tool(approval="ask")
def pay(euro: int) -> str:
    """Pay somebody."""
    return f"paid {euro}"


CALL = CallsTool("pay", {"euro": 3}, by="await pay(3)", call_id="t1")


def adapter(place: Path, *script: VendorSays) -> AnthropicAdapter:
    client = ScriptedVendor("anthropic", script).client()
    return AnthropicAdapter("m", client=client, tools=[code_tool("anthropic", tools=[pay])], journal=place)


async def paused(place: Path) -> str:
    async with adapter(place, VendorSays(CALL)) as anthropic:
        with pytest.raises(ApprovalRequired) as waiting:
            await anthropic.run("Pay the baker.")
    return waiting.value.run_id


async def resumed(place: Path, run_id: str) -> str:
    async with adapter(place, VendorSays(CodeEnded("paid 3"), "Done.")) as anthropic:
        return (await anthropic.resume(run_id)).text


def test_a_request_is_approved_by_a_command_and_resumed_by_its_program(
    hatchway: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = str(tmp_path / "signing.key")
    monkeypatch.setenv("HATCHWAY_KEY_FILE", key)
    place = hatchway.cwd / "journal.db"
    run_id = asyncio.run(paused(place))
    next_step = f"in your program: AnthropicAdapter(…, journal=…).resume('{run_id[:8]}')"
    refused = f"Error: run {run_id[:8]} is a request to a model at anthropic, no code of ours"

    for command, hint in (("resume", next_step), ("replay", f"hatchway show {run_id} --journal journal.db")):
        ran = hatchway(command, run_id, "--journal", "journal.db", HATCHWAY_KEY_FILE=key)
        assert (ran.returncode, ran.stderr) == (2, f"{refused}\n{hint}\n")
    ran = hatchway("approve", run_id, "--journal", "journal.db", HATCHWAY_KEY_FILE=key)
    assert ran.returncode == 0
    assert f"every call is decided: {next_step}" in ran.stderr
    assert asyncio.run(resumed(place, run_id)) == "Done."
