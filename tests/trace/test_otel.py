"""Spans: one per action, one per call beneath it, named by the GenAI conventions."""

import asyncio
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from hatchway import Allow, ApprovalRequired, CodeMode, CodeRuntimeError, tool
from hatchway.core.errors import SandboxUnavailable
from hatchway.hosted import AnthropicAdapter, GeminiAdapter, OpenAIAdapter, code_tool
from hatchway.testing import ScriptedVendor, VendorReply

pytestmark = pytest.mark.anyio
ADAPTERS: dict[str, Any] = {"openai": OpenAIAdapter, "anthropic": AnthropicAdapter, "gemini": GeminiAdapter}


def add(a: int, b: int) -> int:
    with trace.get_tracer("test").start_as_current_span("inside the tool"):
        return a + b


async def test_an_action_is_the_parent_of_its_calls(spans: InMemorySpanExporter) -> None:
    async with CodeMode("monty", tools=[add]) as mode:
        await mode.run("add(1, 2)")
    named = {span.name: span for span in spans.get_finished_spans()}
    action, call, inner = (
        named["execute_tool execute_code"],
        named["execute_tool add"],
        named["inside the tool"],
    )
    assert call.parent is not None
    assert inner.parent is not None
    assert call.parent.span_id == action.context.span_id
    assert inner.parent.span_id == call.context.span_id
    assert call.attributes is not None
    assert call.attributes["gen_ai.operation.name"] == "execute_tool"
    assert call.attributes["gen_ai.tool.name"] == "add"
    assert call.attributes["gen_ai.tool.call.id"]
    assert action.attributes is not None
    assert action.attributes["hatchway.sandbox"] == "monty"


async def test_a_failing_action_marks_its_span(spans: InMemorySpanExporter) -> None:
    async with CodeMode("monty") as mode:
        with pytest.raises(CodeRuntimeError):
            await mode.run("1/0")
    (span,) = spans.get_finished_spans()
    assert span.attributes is not None
    assert span.attributes["error.type"] == "CodeRuntimeError"
    assert not span.status.is_ok


SECRET = "hunter2"


def fails(password: str) -> str:
    raise LookupError(f"no {password}")


async def naps(password: str) -> str:
    await asyncio.sleep(60)
    return password


async def test_spans_say_what_failed_and_never_with_which_words(spans: InMemorySpanExporter) -> None:
    tools = [tool(fails, name="fails"), tool(fails, name="barred", approval="deny"), tool(naps, timeout=0.01)]
    caught = "\n".join(
        f"try:\n    {call}\nexcept RuntimeError as e:\n    print(e)"
        for call in ("fails('hunter2')", "barred('hunter2')", "fails(hunter2='hunter2')", "await naps('hunter2')")
    )
    async with CodeMode("monty", tools=tools) as mode:
        await mode.run(caught)
        with pytest.raises(CodeRuntimeError):
            await mode.run(f"raise ValueError({SECRET!r})")
        with pytest.raises(CodeRuntimeError):
            await mode.run(f"secret_{SECRET}({SECRET!r})")
    found = [
        (span.name, dict(span.attributes or {})["error.type"])
        for span in spans.get_finished_spans()
        if _is_failed(span)
    ]
    assert found == [
        ("execute_tool fails", "LookupError"),
        ("execute_tool barred", "ToolDenied"),
        ("execute_tool fails", "ToolError"),
        ("execute_tool naps", "ToolError"),
        ("execute_tool execute_code", "CodeRuntimeError"),
        ("execute_tool execute_code", "CodeRuntimeError"),
    ]
    assert not any(SECRET in span.to_json() for span in spans.get_finished_spans())


async def test_a_cancelled_action_is_marked_and_a_paused_one_is_not(spans: InMemorySpanExporter) -> None:
    async with CodeMode("monty", tools=[tool(add, approval="ask")]) as mode:
        running = asyncio.ensure_future(mode.run("while True: pass"))
        await asyncio.sleep(0.1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        with pytest.raises(ApprovalRequired) as paused:
            await mode.run("add(1, 2)")
        await mode.resume(paused.value.run_id, {call.call_id: Allow() for call in paused.value.pending})
    actions = [span for span in spans.get_finished_spans() if span.name == "execute_tool execute_code"]
    assert [_is_failed(span) for span in actions] == [True, False, False]
    cancelled, paused_one, resumed = (dict(span.attributes or {}) for span in actions)
    assert cancelled["error.type"] == "CancelledError"
    assert paused_one["hatchway.run.id"] == resumed["hatchway.run.id"]


def _is_failed(span: ReadableSpan) -> bool:
    return span.status.status_code is trace.StatusCode.ERROR


async def test_a_request_to_a_vendor_is_noted_in_its_span(spans: InMemorySpanExporter) -> None:
    call = {"type": "function_call", "call_id": "c", "name": "add", "arguments": '{"a": 1, "b": 2}'}
    code = {"type": "code_interpreter_call", "id": "i", "code": "1", "container_id": "cntr_1", "status": "completed"}
    base = {"id": "resp_1", "model": "real", "status": "completed", "usage": {"input_tokens": 5, "output_tokens": 6}}
    vendor = ScriptedVendor("openai", [{**base, "output": [call]}, {**base, "output": [code]}])
    tools = [code_tool("openai", container={"memory_limit": "4g"}), add]
    async with OpenAIAdapter("m", client=vendor.client(), tools=tools) as adapter:
        await adapter.run("go")
    named = {span.name: span for span in spans.get_finished_spans()}
    action, made = named["execute_tool execute_code"], named["execute_tool add"]
    assert made.parent is not None
    assert made.parent.span_id == action.context.span_id
    assert action.attributes is not None
    known = {name: action.attributes.get(name) for name in action.attributes}
    assert known["gen_ai.provider.name"] == known["hatchway.sandbox"] == "openai"
    assert known["hatchway.vendor.request.id"] == "req_1"
    assert (known["gen_ai.request.model"], known["gen_ai.response.model"]) == ("m", "real")
    assert (known["gen_ai.usage.input_tokens"], known["gen_ai.usage.output_tokens"]) == (10, 12)  # of both requests
    assert (known["hatchway.container.id"], known["hatchway.container.memory_limit"]) == ("cntr_1", "4g")
    assert "gen_ai.request.max_tokens" not in known


@pytest.mark.parametrize("provider", list(ADAPTERS))
async def test_a_vendor_that_refuses_is_noted_in_the_span(spans: InMemorySpanExporter, provider: Any) -> None:
    headers = {"x-request-id": "req_9", "request-id": "req_9"}
    vendor = ScriptedVendor(provider, [VendorReply(status=401, body={"error": {"message": "no"}}, headers=headers)])
    async with ADAPTERS[provider]("m", client=vendor.client(), tools=[code_tool(provider)]) as adapter:
        with pytest.raises(SandboxUnavailable):
            await adapter.run("a secret")
    (span,) = [each for each in spans.get_finished_spans() if each.name == "execute_tool execute_code"]
    assert span.attributes is not None
    known = dict(span.attributes)
    assert (known["gen_ai.provider.name"], known["gen_ai.request.model"]) == (provider, "m")
    assert (known["hatchway.vendor.request.id"], known["error.type"]) == ("req_9", "SandboxUnavailable")
    assert "secret" not in span.to_json()
