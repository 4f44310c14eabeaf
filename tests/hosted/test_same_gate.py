"""A call from a vendor's code leaves the same tracks as one from a sandbox of ours: decided, journaled, traced."""

from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from hatchway import CodeMode, tool
from hatchway.core.events import AgentEvent, CallDecided, CallFailed, CallStarted, ToolOutput
from hatchway.hosted import AnthropicAdapter, OpenAIAdapter, code_tool
from hatchway.journal.store import Journal
from hatchway.testing import CallsTool, CodeEnded, ScriptedVendor, VendorSays

pytestmark = pytest.mark.anyio
ADAPTERS: dict[str, Any] = {"openai": OpenAIAdapter, "anthropic": AnthropicAdapter}
GATE = (CallDecided, CallStarted, ToolOutput, CallFailed)
CALLS = [("pay", {"euro": 1}), ("pay", {"euro": 1000}), ("wipe", {})]


@tool(approval="ask")
def pay(euro: int) -> str:
    """Pay."""
    return f"paid {euro}"


@tool(approval="deny")
def wipe() -> None:
    """Wipe."""
    raise AssertionError("it must not run")


def approve(call: Any) -> bool:
    return call.kwargs["euro"] < 10


async def at_vendor(provider: Any, journal: str, events: list[AgentEvent]) -> None:
    calls = [CallsTool(name, given, call_id=f"c{n}", by="code") for n, (name, given) in enumerate(CALLS)]
    vendor = ScriptedVendor(provider, [VendorSays(*calls), VendorSays(CodeEnded("done"), "done")])
    code = code_tool(provider, tools=[pay, wipe], approve=approve)
    settings: dict[str, Any] = {"tools": [code], "journal": journal, "on_event": events.append}
    async with ADAPTERS[provider]("m", client=vendor.client(), **settings) as adapter:
        await adapter.run("go")


async def here(journal: str, events: list[AgentEvent]) -> None:
    each = "async def t(f):\n    try:\n        await f\n    except Exception as e:\n        print(e)\n"
    code = f"import asyncio\n{each}await asyncio.gather(t(pay(1)), t(pay(1000)), t(wipe()))"
    settings: dict[str, Any] = {"approve": approve, "journal": journal, "on_event": events.append, "calls": "async"}
    async with CodeMode("monty", tools=[pay, wipe], **settings) as mode:
        await mode.run(code)


def tracks(journal: str) -> list[tuple[str, int]]:
    """How often each kind of entry about a call is in the journal."""
    with Journal(journal) as store:
        (run,) = store.runs()
        kinds = [entry.kind for entry in store.entries(run.run_id) if entry.call_id]
    return sorted((kind, kinds.count(kind)) for kind in set(kinds))


@pytest.mark.parametrize("provider", list(ADAPTERS))
async def test_the_same_tracks(provider: str, tmp_path: Path, spans: InMemorySpanExporter) -> None:
    seen: dict[str, Any] = {}
    for place in (provider, "here"):
        events: list[AgentEvent] = []
        journal = str(tmp_path / f"{place}.db")
        spans.clear()
        await (here(journal, events) if place == "here" else at_vendor(place, journal, events))
        told = sorted(type(event).__name__ for event in events if isinstance(event, GATE))
        named = [span for span in spans.get_finished_spans() if span.name.startswith("execute_tool ")]
        under = {span.name for span in named if span.parent is not None}
        failed = sorted(str((span.attributes or {}).get("error.type", "")) for span in named)
        seen[place] = (told, tracks(journal), sorted(under), failed)
    assert seen[provider] == seen["here"]
    told, journaled, under, failed = seen["here"]
    assert told.count("CallFailed") == 2
    assert told.count("ToolOutput") == 1
    assert journaled
    assert under == ["execute_tool pay", "execute_tool wipe"]  # what was denied did not run: its span says so
    assert "ToolDenied" in failed
