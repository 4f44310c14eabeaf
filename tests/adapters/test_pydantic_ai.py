"""Pydantic AI: what the table of frameworks does not show."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities import (
    AbstractCapability,
    CombinedCapability,
    HandleDeferredToolCalls,
    WrapperCapability,
)
from pydantic_ai.exceptions import ApprovalRequired, ToolFailed, UserError
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolDenied
from pydantic_ai.toolsets import ExternalToolset, FunctionToolset

from hatchway import Allow, Deny, Edit
from hatchway.adapters.pydantic_ai import CodeModeCapability, CodeModeToolset, build_code_mode_prompt, decided
from hatchway.core.errors import InvalidSetting

pytestmark = pytest.mark.anyio
DID: list[str] = []


class Row(BaseModel):
    name: str
    size: float = 1.0


def tools() -> FunctionToolset[Any]:
    DID.clear()
    made = FunctionToolset[Any]()

    @made.tool_plain
    def look(name: str) -> Row:
        """Look something up."""
        DID.append(f"look {name}")
        return Row(name=name)

    @made.tool_plain(requires_approval=True)
    def wipe(path: str) -> str:
        """Delete something."""
        DID.append(f"wipe {path}")
        return f"wiped {path}"

    @made.tool
    def whose(ctx: RunContext[Any]) -> str:
        """Who asks."""
        return f"{ctx.deps} by {ctx.tool_name}"

    return made


def scripted(*codes: str, name: str = "execute_code", seen: list[Any] | None = None) -> FunctionModel:
    waiting = list(codes)

    def say(messages: list[Any], info: Any) -> ModelResponse:
        if seen is not None:
            seen.append(info)
        if waiting:
            return ModelResponse(parts=[ToolCallPart(name, {"code": waiting.pop(0)})])
        return ModelResponse(parts=[TextPart("done")])

    return FunctionModel(say)


def agent_of(model: Any, toolset: Any, **more: Any) -> Agent[Any, Any]:
    return Agent(model, toolsets=[toolset], output_type=[str, DeferredToolRequests], **more)


def returns(result: Any) -> list[ToolReturnPart]:
    return [part for m in result.all_messages() for part in m.parts if isinstance(part, ToolReturnPart)]


async def ran(*codes: str, wrapped: Any = None, deps: Any = None, **settings: Any) -> list[Any]:
    toolset = CodeModeToolset(wrapped or tools(), **{"sandbox": "monty", **settings})
    result = await agent_of(scripted(*codes), toolset).run("go", deps=deps)
    await toolset.aclose()
    return [part.content for part in returns(result)]


async def test_unapproved_tool_never_runs_whoever_asks() -> None:
    toolset = CodeModeToolset(tools(), sandbox="monty")
    result = await agent_of(scripted("wipe('/p')"), toolset).run("go")
    assert isinstance(result.output, DeferredToolRequests)
    assert DID == []
    await toolset.aclose()


async def test_predicate_that_asks_for_approval_holds_inside_code() -> None:
    wrapped = tools().approval_required(lambda ctx, definition, args: args.get("name") == "secret")
    toolset = CodeModeToolset(wrapped, sandbox="monty")
    agent = agent_of(scripted("[look('open')['name'], look('secret')['name']]"), toolset)
    result = await agent.run("go")
    assert DID == ["look open"]
    done = await agent.run(message_history=result.all_messages(), deferred_tool_results=decided(result.output, True))
    assert returns(done)[-1].content == ["open", "secret"]
    assert DID == ["look open", "look secret"]
    await toolset.aclose()


async def test_what_a_tool_says_when_it_asks_comes_back_to_it() -> None:
    made = FunctionToolset[Any]()

    @made.tool
    def pay(ctx: RunContext[Any], euros: int) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"limit": 10})
        return f"{euros} of {ctx.tool_call_metadata['limit']}"

    toolset = CodeModeToolset(made, sandbox="monty")
    agent = agent_of(scripted("pay(5)"), toolset)
    result = await agent.run("go")
    [metadata] = result.output.metadata.values()
    assert metadata["original_metadata"] == {"limit": 10}
    assert metadata["_approval_call"] == {"tool_name": "pay", "args": {"euros": 5}}
    assert metadata["code_mode"]["tool_name"] == "pay"
    assert metadata["code_mode"]["tool_args"] == {"euros": 5}
    stored = json.loads(json.dumps(result.output.metadata))
    results = DeferredToolResults(approvals=dict.fromkeys(stored, True), metadata=stored)
    done = await agent.run(message_history=result.all_messages(), deferred_tool_results=results)
    assert returns(done)[-1].content == "5 of 10"
    await toolset.aclose()


async def test_inline_handler_answers_without_leaving_the_run() -> None:
    asked: list[str] = []

    async def handler(ctx: Any, requests: DeferredToolRequests) -> DeferredToolResults:
        asked.extend(call.tool_name for call in requests.approvals)
        return requests.build_results(
            approvals={c.tool_call_id: c.args["path"] == "/a" or ToolDenied("not that") for c in requests.approvals}
        )

    toolset = CodeModeToolset(tools(), sandbox="monty")
    code = "first = wipe('/a')\ntry:\n    wipe('/b')\nexcept RuntimeError as e:\n    told = str(e)\n[first, told]"
    agent = agent_of(scripted(code), toolset, capabilities=[HandleDeferredToolCalls(handler)])
    result = await agent.run("go")
    assert returns(result)[-1].content == ["wiped /a", "ToolDenied: not that"]
    assert asked == ["wipe", "wipe"]
    assert DID == ["wipe /a"]
    await toolset.aclose()


async def test_hooks_of_capabilities_see_nested_calls() -> None:
    seen: list[tuple[str, str]] = []

    class Watch(AbstractCapability[Any]):
        async def before_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
            seen.append((call.tool_name, call.tool_call_id))
            return args

    toolset = CodeModeToolset(tools(), sandbox="monty")
    result = await agent_of(scripted("whose()"), toolset, capabilities=[Watch()]).run("go", deps="ada")
    assert returns(result)[-1].content == "ada by whose"
    assert [name for name, _ in seen] == ["execute_code", "whose"]
    assert seen[1][1].startswith(f"{seen[0][1]}__")
    await toolset.aclose()


class Idle(AbstractCapability[Any]):
    """Has no hooks of tools."""

    async def before_node_run(self, ctx: Any, *, node: Any) -> Any:
        return node


class Refuses(AbstractCapability[Any]):
    """Lets no tool but the code itself run."""

    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        if call.tool_name != "execute_code":
            raise ToolFailed("not here")
        return await handler(args)


async def _refused(ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
    if call.tool_name != "execute_code":
        raise ToolFailed("not here")
    return args


def _refusing_instance() -> Any:
    made: Any = Idle()
    made.before_tool_execute = _refused
    return made


@pytest.mark.parametrize(
    "refusing",
    [
        Refuses,
        lambda: CombinedCapability([Idle(), CombinedCapability([Refuses()])]),
        lambda: WrapperCapability(Refuses()),
        _refusing_instance,
    ],
    ids=["plain", "combined", "wrapped", "instance"],
)
async def test_no_hook_is_passed_by_however_it_is_had(refusing: Any) -> None:
    toolset = CodeModeToolset(tools(), sandbox="monty")
    code = "try:\n    look('x')\nexcept RuntimeError as e:\n    told = str(e)\ntold"
    result = await agent_of(scripted(code), toolset, capabilities=[Idle(), refusing()]).run("go")
    assert returns(result)[-1].content == "ToolError: not here"
    assert DID == []
    await toolset.aclose()


def test_hooks_that_do_nothing_are_known() -> None:
    from hatchway.adapters.pydantic_ai.nested import has_tool_hooks

    assert not has_tool_hooks(CombinedCapability([Idle(), CodeModeCapability(sandbox="monty")]))
    assert has_tool_hooks(CombinedCapability([Idle(), HandleDeferredToolCalls(lambda ctx, requests: None)]))


async def test_spans_nest() -> None:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from pydantic_ai.capabilities import Instrumentation
    from pydantic_ai.models.instrumented import InstrumentationSettings

    exporter, owner = InMemorySpanExporter(), trace.get_tracer_provider()
    if not isinstance(owner, TracerProvider):
        owner = TracerProvider()
        trace.set_tracer_provider(owner)  # ours come between the framework's
    owner.add_span_processor(SimpleSpanProcessor(exporter))
    seen = Instrumentation(settings=InstrumentationSettings(tracer_provider=owner))
    toolset = CodeModeToolset(tools(), sandbox="monty")
    await agent_of(scripted("look('x')['name']"), toolset, capabilities=[seen]).run("go")
    await toolset.aclose()
    spans = exporter.get_finished_spans()
    inner = [span for span in spans if span.name == "execute_tool look"]
    outer = next(span for span in reversed(spans) if span.name == "execute_tool execute_code")  # the last to end
    by_id = {span.context.span_id: span for span in spans}
    assert len(inner) == 2  # the framework's and, around it, ours
    for above in inner:
        while above.parent is not None and above is not outer:
            above = by_id[above.parent.span_id]
        assert above is outer


async def test_token_settles_its_own_pause_and_no_other() -> None:
    toolset = CodeModeToolset(tools(), sandbox="monty")
    agent = agent_of(scripted("[wipe('/a'), wipe('/b')]"), toolset)
    first = await agent.run("go")
    token = decided(first.output, True)
    second = await agent.run(message_history=first.all_messages(), deferred_tool_results=token)
    assert isinstance(second.output, DeferredToolRequests)
    assert DID == ["wipe /a"]
    again = await agent.run(message_history=first.all_messages(), deferred_tool_results=token)
    [metadata] = again.output.metadata.values()
    assert metadata["code_mode"]["tool_args"] == {"path": "/b"}
    assert DID == ["wipe /a"]
    await toolset.aclose()


async def test_altered_token_runs_nothing() -> None:
    toolset = CodeModeToolset(tools(), sandbox="monty")
    agent = agent_of(scripted("wipe('/a')"), toolset)
    paused = await agent.run("go")
    results = decided(paused.output, True)
    [metadata] = results.metadata.values()
    data = metadata["code_mode"]["checkpoint_data"]
    metadata["code_mode"]["checkpoint_data"] = data[:-8] + ("AAAA" if data[-8:-4] != "AAAA" else "BBBB") + data[-4:]
    result = await agent.run(message_history=paused.all_messages(), deferred_tool_results=results)
    assert returns(result)[-1].outcome == "failed"
    assert "sandbox failed: checkpoint refused" in returns(result)[-1].content
    assert DID == []
    await toolset.aclose()


async def test_approval_without_its_metadata_does_not_run_the_code_again() -> None:
    toolset = CodeModeToolset(tools(), sandbox="monty")
    agent = agent_of(scripted("look('x')\nwipe('/a')"), toolset)
    paused = await agent.run("go")
    with pytest.raises(UserError, match="pass its metadata on"):
        await agent.run(
            message_history=paused.all_messages(), deferred_tool_results=paused.output.build_results(approve_all=True)
        )
    assert DID == ["look x"]
    await toolset.aclose()


async def test_run_of_a_process_that_is_gone_is_told_to_the_model() -> None:
    first, second = (CodeModeToolset(tools(), sandbox="monty") for _ in range(2))
    paused = await agent_of(scripted("wipe('/a')"), first).run("go")
    agent = agent_of(scripted(), second)
    assert second.desk is not None
    assert first.desk is not None
    second.desk._own_key = first.desk.key  # a process that knows the key and not the run
    result = await agent.run(message_history=paused.all_messages(), deferred_tool_results=decided(paused.output, True))
    assert "sandbox failed: no run" in returns(result)[-1].content
    assert DID == []
    await first.aclose()
    await second.aclose()


async def test_each_call_of_a_pause_is_decided_by_itself() -> None:
    toolset = CodeModeToolset(tools(), sandbox="process")
    code = "import asyncio\nawait asyncio.gather(*[wipe(p) for p in 'abc'], return_exceptions=True)"
    agent = agent_of(scripted(code + "\nNone"), toolset)
    paused = await agent.run("go")
    [metadata] = paused.output.metadata.values()
    a, b, c = (call["call_id"] for call in metadata["code_mode"]["calls"])
    with pytest.raises(InvalidSetting, match="stranger: no such pending call; pending are "):
        decided(paused.output, {"stranger": True})
    answers = decided(paused.output, {a: Allow(), b: Deny("no"), c: Edit({"path": "other"})})
    await agent.run(message_history=paused.all_messages(), deferred_tool_results=answers)
    assert sorted(DID) == ["wipe a", "wipe other"]
    await toolset.aclose()


async def test_denied_action_without_the_capability_is_dropped_by_the_framework() -> None:
    toolset = CodeModeToolset(tools(), sandbox="monty")
    agent = agent_of(scripted("wipe('/a')"), toolset)
    paused = await agent.run("go")
    denied = DeferredToolResults(
        approvals=dict.fromkeys(paused.output.metadata, ToolDenied("no")), metadata=paused.output.metadata
    )
    result = await agent.run(message_history=paused.all_messages(), deferred_tool_results=denied)
    assert returns(result)[-1].outcome == "denied"
    assert DID == []
    await toolset.aclose()


@pytest.mark.parametrize(("state", "second"), [("none", "retried"), ("run", "success")])
async def test_names_persist_as_asked(state: Any, second: str) -> None:
    toolset = CodeModeToolset(tools(), sandbox="process", state=state)
    result = await agent_of(scripted("kept = 41", "kept + 1"), toolset).run("go")
    assert [part.outcome for part in returns(result)] == ["success", second]
    await toolset.aclose()


async def test_names_persist_over_a_conversation_and_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HATCHWAY_KEY_FILE", str(tmp_path / "key"))
    settings: Any = {"sandbox": "process", "state": "conversation", "journal": str(tmp_path / "journal.db")}
    first = CodeModeToolset(tools(), **settings)
    said = await agent_of(scripted("kept = look('x')['name'] * 2"), first).run("go")
    await first.aclose()
    second = CodeModeToolset(tools(), **settings)
    result = await agent_of(scripted("kept"), second).run("more", message_history=said.all_messages())
    assert returns(result)[-1].content == "xx"
    assert DID == []  # the list was emptied since, and the look was not repeated
    await second.aclose()


async def test_deferred_tools_are_found_in_the_code_and_not_in_the_prompt() -> None:
    made = tools()

    @made.tool_plain(defer_loading=True)
    def send_invoice(customer: str) -> str:
        """Send an invoice to a customer."""
        return f"sent to {customer}"

    seen: list[Any] = []
    toolset = CodeModeToolset(made, sandbox="monty")
    code = "found = search_tools('invoice customer')\n[len(found), 'send_invoice' in found[0], send_invoice('ada')]"
    result = await agent_of(scripted(code, seen=seen), toolset).run("go")
    assert returns(result)[-1].content == [1, True, "sent to ada"]
    [tool] = [tool for tool in seen[0].function_tools if tool.name == "execute_code"]
    assert "send_invoice" not in tool.description
    assert "search_tools" in tool.description
    await toolset.aclose()


async def test_one_tool_with_the_name_and_schema_it_was_given() -> None:
    seen: list[Any] = []
    toolset = CodeModeToolset(tools(), sandbox="monty", tool_name="run_code")
    await agent_of(scripted("1", name="run_code", seen=seen), toolset).run("go")
    [tool] = seen[0].function_tools
    assert tool.name == "run_code"
    assert "`run_code`" in tool.description
    assert "async def look(name: str)" in tool.description
    assert tool.description.count("async def look") == 1
    assert list(tool.parameters_json_schema["properties"]) == ["code"]
    assert tool.sequential
    await toolset.aclose()


async def test_code_is_checked_before_it_runs() -> None:
    [told] = await ran("look('x')\nlook(5)")
    assert told.startswith("Type error in the code:")
    assert DID == []


async def test_output_that_is_no_json_is_told_all_the_same() -> None:
    saw = await ran("{1.5}", "b'\\xff'", "float('inf')", "print('kept')\n{'a': {1}}")
    assert saw[0] == [1.5]
    assert saw[2] == "Infinity"
    assert saw[3] == {"output": {"a": [1]}, "stdout": "kept\n"}


async def test_names_no_code_can_write_are_changed() -> None:
    made = FunctionToolset[Any]()
    made.add_function(lambda x=1: x + 1, name="get-issue", takes_ctx=False)
    made.add_function(lambda: "printed", name="print", takes_ctx=False)
    assert await ran("[get_issue(4), tool_print()]", wrapped=made) == [[5, "printed"]]


async def test_tools_answered_from_outside_stay_tools_of_the_model() -> None:
    from pydantic_ai.tools import ToolDefinition
    from pydantic_ai.toolsets import CombinedToolset

    seen: list[Any] = []
    both = CombinedToolset([tools(), ExternalToolset([ToolDefinition(name="browser")])])
    toolset = CodeModeToolset(both, sandbox="monty")
    await agent_of(scripted("1", seen=seen), toolset).run("go")
    assert sorted(tool.name for tool in seen[0].function_tools) == ["browser", "execute_code"]
    await toolset.aclose()


async def test_no_backend_is_imported_and_a_missing_one_says_what_to_install() -> None:
    program = (
        "import sys\nsys.modules['pydantic_monty'] = None\n"
        "from hatchway.adapters.pydantic_ai import CodeModeToolset\n"
        "from pydantic_ai.toolsets import FunctionToolset\n"
        "assert not [m for m in sys.modules if m.startswith('hatchway.sandboxes.') and m.split('.')[2] in"
        " ('monty', 'jail', 'process', 'container')], sys.modules\n"
        "CodeModeToolset(FunctionToolset(), sandbox='process')\n"
        "import asyncio\nfrom pydantic_ai import Agent\nfrom pydantic_ai.models.test import TestModel\n"
        "agent = Agent(TestModel(), toolsets=[CodeModeToolset(FunctionToolset(), sandbox='monty')])\n"
        "told = [p for m in agent.run_sync('go').all_messages() for p in m.parts]\n"
        "print([p.content for p in told if p.part_kind == 'tool-return'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=True)
    assert "sandbox failed: " in done.stdout
    assert "pip install 'hatchway'" in done.stdout


async def test_settings_are_checked_when_it_is_made() -> None:
    with pytest.raises(TypeError, match="sandbox"):
        CodeModeToolset(tools())  # type: ignore[call-arg]
    with pytest.raises(InvalidSetting, match="no sandbox 'jial'"):
        CodeModeToolset(tools(), sandbox="jial")
    with pytest.raises(InvalidSetting, match="state is"):
        CodeModeToolset(tools(), sandbox="monty", state="for ever")  # type: ignore[arg-type]


async def test_capability_keeps_its_sandbox_warm_between_runs() -> None:
    capability = CodeModeCapability[Any](sandbox="monty")
    for _ in range(2):
        agent = Agent(scripted("look('x')['size']"), toolsets=[tools()], capabilities=[capability])
        assert returns(await agent.run("go"))[-1].content == 1.0
    assert capability._desk is not None
    [modes] = capability._desk._open.values()
    assert len(modes) == 1
    await capability.aclose()


def test_prompt_is_the_one_of_the_mode() -> None:
    from hatchway.mode import prompt

    assert build_code_mode_prompt is prompt.build_code_mode_prompt
