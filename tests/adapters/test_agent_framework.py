"""Microsoft Agent Framework: what the table of frameworks does not show. The shipped providers' bugs are tests here."""

import asyncio
import json
import runpy
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from agent_framework import (
    Agent,
    AgentSession,
    Content,
    FunctionInvocationContext,
    FunctionMiddleware,
    FunctionTool,
    Message,
    MiddlewareBundle,
    MiddlewareTermination,
    SessionContext,
    function_middleware,
)

from hatchway.adapters.agent_framework import (
    AllowedDomain,
    FileMount,
    JailCodeActProvider,
    MontyCodeActProvider,
    MontyExecuteCodeTool,
)
from hatchway.adapters.agent_framework.environments import MOST
from hatchway.adapters.agent_framework.tools import SCHEMA
from hatchway.core.errors import InvalidSetting, InvalidTool
from hatchway.core.limits import Limits

pytestmark = pytest.mark.anyio
DRIVER = runpy.run_path(str(Path(__file__).parent / "frameworks" / "agent_framework_driver.py"))


def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b


def asking(func: Any, name: str | None = None) -> FunctionTool:
    return FunctionTool(name=name or func.__name__, description="", func=func, approval_mode="always_require")


async def ran(code: str, *, provider: Any = None, agent: Any = None, **settings: Any) -> tuple[str, list[Content]]:
    """What the model saw, and the contents of the result."""
    own = provider or MontyCodeActProvider(**settings)
    client = DRIVER["Scripted"](code)
    made = Agent(client=client, context_providers=[own], **(agent or {}))
    await made.run("go", session=made.create_session())
    if provider is None:
        await own.aclose()
    [result] = client.saw
    return result.result, list(result.items or [])


async def prepared(provider: Any) -> tuple[SessionContext, FunctionTool]:
    context = SessionContext(input_messages=[])
    await provider.before_run(agent=None, session=None, context=context, state={})
    [tool] = context.tools
    return context, tool


# -- the registry


async def test_twelve_methods_keep_what_they_are_given(tmp_path: Path) -> None:
    (tmp_path / "users.json").write_text("[]")
    provider = MontyCodeActProvider()
    provider.add_tools(add)
    provider.add_tools([asking(add, "plus"), asking(add)])
    assert [(tool.name, tool.approval_mode) for tool in provider.get_tools()] == [
        ("add", "always_require"),
        ("plus", "always_require"),
    ]
    provider.remove_tool("plus")
    with pytest.raises(KeyError):
        provider.remove_tool("plus")
    provider.clear_tools()
    assert provider.get_tools() == []
    provider.add_file_mounts((tmp_path / "users.json", "data/users.json"))
    provider.add_file_mounts([FileMount(tmp_path, "data/users.json")])
    assert provider.get_file_mounts() == [FileMount(tmp_path, "/input/data/users.json")]
    provider.remove_file_mount("data/users.json")
    with pytest.raises(KeyError):
        provider.remove_file_mount("data/users.json")
    provider.clear_file_mounts()
    provider.add_allowed_domains("https://API.github.com/foo")
    provider.add_allowed_domains(("api.github.com", "GET"))
    provider.add_allowed_domains([("a.example", ["GET", "HEAD"]), AllowedDomain("b.example"), "c.example"])
    assert provider.get_allowed_domains() == [
        AllowedDomain("api.github.com", ("GET",)),
        AllowedDomain("a.example", ("GET", "HEAD")),
        AllowedDomain("b.example"),
        AllowedDomain("c.example"),
    ]
    provider.remove_allowed_domain("B.example")
    with pytest.raises(KeyError):
        provider.remove_allowed_domain("b.example")
    provider.clear_allowed_domains()
    assert provider.get_allowed_domains() == []


async def test_one_field_schema_and_detail_in_the_description() -> None:
    context, tool = await prepared(MontyCodeActProvider(tools=[add]))
    assert tool.name == "execute_code"
    assert tool.parameters() == SCHEMA
    assert list(SCHEMA["properties"]) == ["code"]
    assert "async def add(a: int, b: int = 2)" in tool.description
    assert "call_tool" in tool.description
    assert tool.description.count("async def add(") == 1
    [instruction] = context.instructions
    assert "add" not in instruction.replace("addition", "")
    assert len(instruction) < 400


async def test_without_tools_it_is_an_interpreter() -> None:
    provider = MontyCodeActProvider()
    _, tool = await prepared(provider)
    assert "call_tool" not in tool.description
    assert (await ran("1 + 1", provider=provider))[0] == "2"
    await provider.aclose()


@pytest.mark.parametrize(
    ("given", "tools", "per_call", "effective"),
    [
        ("never_require", [add], False, "never_require"),
        ("never_require", [add, asking(add, "plus")], False, "always_require"),
        ("never_require", [add, asking(add, "plus")], True, "never_require"),
        ("always_require", [add], False, "always_require"),
        ("always_require", [add], True, "always_require"),
        (None, [add], False, "never_require"),
    ],
)
async def test_effective_approval(given: Any, tools: Any, per_call: bool, effective: str) -> None:
    provider = MontyCodeActProvider(tools=tools, approval_mode=given, per_call_approval=per_call)
    assert (await prepared(provider))[1].approval_mode == effective


async def test_words_the_framework_takes_for_never_are_refused() -> None:
    with pytest.raises(InvalidSetting, match="approval_mode is"):
        MontyCodeActProvider(approval_mode="sometimes")  # type: ignore[arg-type]
    odd = asking(add)
    odd.approval_mode = "per_call"  # type: ignore[assignment]
    with pytest.raises(InvalidSetting, match="the tool 'add' has the unknown approval_mode 'per_call'"):
        MontyCodeActProvider(tools=[odd])
    with pytest.raises(InvalidTool, match="neither a FunctionTool nor a function"):
        MontyCodeActProvider(tools=[{"type": "web_search"}])


async def test_run_keeps_the_tools_it_began_with() -> None:
    provider = MontyCodeActProvider(tools=[add])
    _, before = await prepared(provider)
    provider.clear_tools()
    _, after = await prepared(provider)
    assert "async def add" in before.description
    assert "async def add" not in after.description
    assert [item.text for item in await before.invoke(arguments={"code": "add(1)"})] == ["3"]
    assert "add" in (await after.invoke(arguments={"code": "add(1)"}))[0].text
    await provider.aclose()


async def test_once_approved_the_calls_inside_are_not_asked_about() -> None:
    provider = MontyCodeActProvider(tools=[asking(add)])
    client = DRIVER["Scripted"]("[add(1), call_tool('add', a=2)]")
    agent = Agent(client=client, context_providers=[provider])
    session = agent.create_session()
    asked = await agent.run("go", session=session)
    [request] = asked.user_input_requests
    assert client.saw == []
    yes = Message(role="user", contents=[request.to_function_approval_response(approved=True)])
    await agent.run(yes, session=session)
    assert client.saw[0].result == "[3,4]"
    await provider.aclose()


async def test_call_tool_is_asked_about_like_the_tool_it_names() -> None:
    provider = MontyCodeActProvider(tools=[asking(add)], per_call_approval=True)
    client = DRIVER["Scripted"]("call_tool('add', a=2)")
    agent = Agent(client=client, context_providers=[provider])
    session = agent.create_session()
    [request] = (await agent.run("go", session=session)).user_input_requests
    [call] = request.additional_properties["hatchway"]["calls"]
    assert (call["tool_name"], call["arguments"]) == ("add", {"a": 2})
    with pytest.raises(InvalidSetting, match="99: no such pending call; pending are 0\ndecide about one of these"):
        provider.decide(request, {"99": True}, session=session)
    yes = Message(role="user", contents=[provider.decide(request, {call["call_id"]: True}, session=session)])
    await agent.run(yes, session=session)
    assert client.saw[0].result == "4"
    await provider.aclose()


async def test_state_is_json_and_scoped_once() -> None:
    provider = MontyCodeActProvider(tools=[asking(add)], per_call_approval=True)
    agent = Agent(client=DRIVER["Scripted"]("add(1)"), context_providers=[provider])
    session = agent.create_session()
    await agent.run("go", session=session)
    assert list(session.state["monty_codeact"]) == ["paused"]
    stored = AgentSession.from_dict(json.loads(json.dumps(session.to_dict())))
    assert stored.state["monty_codeact"] == session.state["monty_codeact"]
    await provider.aclose()


# -- the bugs of the shipped providers


def test_error_of_a_tool_result_is_text_too() -> None:
    """The framework drops error contents: without a text beside it the model would see nothing."""
    from hatchway.adapters.agent_framework.contents import failure_contents
    from hatchway.core.errors import CodeRuntimeError

    contents = failure_contents(CodeRuntimeError("it broke", stdout="so far"), "flat")
    assert [content.type for content in contents] == ["text", "error"]
    told = Content.from_function_result(call_id="1", result=contents).result
    assert "it broke" in told
    assert "so far" in told


@pytest.mark.parametrize("provider", [MontyCodeActProvider, JailCodeActProvider])
async def test_spinning_code_leaves_the_loop_alone_and_can_be_cancelled(provider: Any) -> None:
    own = provider(limits=Limits(wall_seconds=60))
    _, tool = await prepared(own)
    running = asyncio.create_task(tool.invoke(arguments={"code": "while True: pass"}))
    await asyncio.wait_for(_beats(20), 30)
    assert not running.done()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 30)
    await own.aclose()


async def _beats(many: int) -> None:
    for _ in range(many):
        await asyncio.sleep(0.01)


async def test_more_than_five_hundred_calls() -> None:
    saw, _ = await ran("sum([await add(i) for i in range(1200)])", tools=[add])
    assert saw == str(sum(range(1200)) + 2400)


async def test_errors_of_the_tools_own_kind_can_be_caught() -> None:
    class Odd(Exception):
        pass

    def odd() -> None:
        raise Odd("no luck")

    saw, _ = await ran("try:\n    odd()\nexcept RuntimeError as e:\n    told = str(e)\ntold", tools=[odd])
    assert saw == "ToolError: Odd: no luck"


async def test_tool_that_runs_out_of_invocations_is_an_error_in_the_code() -> None:
    once = FunctionTool(name="add", description="", func=add, max_invocations=1)
    saw, _ = await ran("add(1)\ntry:\n    add(1)\nexcept RuntimeError as e:\n    told = 'over'\ntold", tools=[once])
    assert saw == "over"


async def test_tools_with_a_context_get_session_and_kwargs() -> None:
    def whose(ctx: FunctionInvocationContext, word: str) -> str:
        return f"{word} {ctx.kwargs['user']} {ctx.session is not None}"

    provider = MontyCodeActProvider(tools=[whose])
    _, tool = await prepared(provider)
    assert "ctx" not in tool.description
    client = DRIVER["Scripted"]("whose('hello')")
    agent = Agent(client=client, context_providers=[provider])
    await agent.run("go", session=agent.create_session(), function_invocation_kwargs={"user": "ada"})
    assert client.saw[0].result == "hello ada True"
    await provider.aclose()


async def test_results_that_are_no_json_reach_the_code() -> None:
    @dataclass
    class Row:
        name: str

    def many() -> list[Any]:
        return [date(2026, 1, 2), b"\x00", Row("x"), {1, 2}]

    def content() -> Content:
        return Content.from_text("told")

    code = "d, b, r, s = many()\n[d.year, len(b), r['name'], sum(s), content()]"
    assert (await ran(code, tools=[many, content], type_check=False))[0] == '[2026,1,"x",3,"told"]'


async def test_last_value_that_is_no_json_keeps_what_was_printed() -> None:
    saw, _ = await ran("print('kept')\n{1.5}")
    assert saw == "kept\n[1.5]"


async def test_function_middleware_of_the_agent_sees_nested_calls() -> None:
    seen: list[str] = []

    class Audit(FunctionMiddleware):
        async def process(self, context: Any, call_next: Callable[[], Awaitable[None]]) -> None:
            seen.append(f"audit {context.function.name}")
            await call_next()

    @function_middleware
    async def change(context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        await call_next()
        if context.function.name == "add":
            context.result += 100

    saw, _ = await ran("add(1)", tools=[add], agent={"middleware": [Audit(), change]})
    assert saw == "103"
    assert seen == ["audit execute_code", "audit add"]


async def test_middleware_known_by_what_it_takes_sees_nested_calls() -> None:
    seen: list[str] = []

    async def audit(context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        seen.append(context.function.name)
        await call_next()

    async def quoted(context: "FunctionInvocationContext", call_next: Any) -> None:
        seen.append(f"quoted {context.function.name}")
        await call_next()

    class Counter:
        async def __call__(self, context: FunctionInvocationContext, call_next: Any) -> None:
            seen.append(f"counter {context.function.name}")
            await call_next()

    await ran("add(1)", tools=[add], agent={"middleware": [audit, quoted, Counter()]})
    assert seen[3:] == ["add", "quoted add", "counter add"]


async def test_middleware_that_ends_a_nested_call_decides_its_result() -> None:
    @function_middleware
    async def canned(context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        if context.function.name == "add":
            raise MiddlewareTermination(result=40)
        await call_next()

    assert (await ran("add(1) + 2", tools=[add], agent={"middleware": [canned]}))[0] == "42"


@pytest.mark.filterwarnings("ignore:.*experimental:FutureWarning")
async def test_middleware_nobody_can_look_into_is_refused_where_calls_would_pass_it_by() -> None:
    class Audit(FunctionMiddleware):
        async def process(self, context: Any, call_next: Callable[[], Awaitable[None]]) -> None:
            await call_next()

    bundle = {"middleware": [MiddlewareBundle([Audit()])]}
    with pytest.raises(InvalidSetting, match=r"calls inside the code cannot pass MiddlewareBundle\(Audit\)"):
        await ran("add(1)", tools=[add], agent=bundle)
    assert (await ran("1", agent=bundle))[0] == "1"


# -- environments


async def test_workspace_is_read_and_files_are_handed_back(tmp_path: Path) -> None:
    from hatchway.sandboxes.registry import availability

    if (found := availability("jail")).state != "usable":
        pytest.skip(found.reason)
    (tmp_path / "note.txt").write_text("seen")
    provider = JailCodeActProvider(workspace_root=tmp_path)
    code = (
        "from pathlib import Path\nPath('output/made.txt').write_text('out')\ntry:\n"
        "    Path('input/new').write_text('')\nexcept OSError as e:\n    told = type(e).__name__\n"
        "[Path('input/note.txt').read_text(), told]"
    )
    saw, items = await ran(code, provider=provider)
    assert json.loads(saw)[0] == "seen"
    assert json.loads(saw)[1] in ("OSError", "PermissionError")
    assert [item.type for item in items] == ["text", "data"]
    assert not (tmp_path / "new").exists()
    await provider.aclose()


async def test_results_in_the_form_of_a_code_interpreter() -> None:
    saw, items = await ran("1 / 0", result_form="code_interpreter")
    assert "ZeroDivisionError" in saw
    assert [item.type for item in items] == ["text", "code_interpreter_tool_result"]
    assert [item.type for item in items[1].outputs or []] == ["text", "error"]


async def test_runs_at_once_share_nothing_and_do_not_wait_for_each_other() -> None:
    arrived, all_there = 0, asyncio.Event()

    async def meet(n: int) -> int:
        """Comes back once four are there."""
        nonlocal arrived
        arrived += 1
        if arrived == 4:
            all_there.set()
        await asyncio.wait_for(all_there.wait(), 60)
        return n

    provider = MontyCodeActProvider(tools=[meet])
    _, tool = await prepared(provider)
    codes = [f"kept = {n}\nmeet({n}) + kept" for n in range(4)]
    done = await asyncio.gather(*[tool.invoke(arguments={"code": code}) for code in codes])
    assert [contents[0].text for contents in done] == ["0", "2", "4", "6"]
    await provider.aclose()


async def test_environments_are_reused_and_the_oldest_is_closed() -> None:
    provider = MontyCodeActProvider(tools=[add])
    for n in range(MOST + 3):
        provider.add_tools(FunctionTool(name="number", description=f"Number {n}.", func=add))
        _, tool = await prepared(provider)
        used: set[Any] = set()
        for _ in range(2):
            await tool.invoke(arguments={"code": "1"})
            [here] = provider._environments._kept.values()
            used.add(list(here.kept.values())[-1])
        assert len(used) == 1
    [here] = provider._environments._kept.values()
    assert len(here.kept) == MOST
    await provider.aclose()
    assert not provider._environments._kept


async def test_tool_that_stands_alone_says_everything_itself() -> None:
    tool = MontyExecuteCodeTool(tools=[add, asking(add, "plus")])
    assert tool.approval_mode == "always_require"
    assert "async def plus" in tool.description
    assert [item.text for item in await tool.invoke(arguments={"code": "plus(1) + add(1)"})] == ["6"]
    with pytest.raises(TypeError, match="takes no image"):
        MontyExecuteCodeTool(image="x")
    await tool.aclose()


async def test_spans_nest() -> None:
    from agent_framework import observability
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, owner = InMemorySpanExporter(), trace.get_tracer_provider()
    if not isinstance(owner, TracerProvider):
        owner = TracerProvider()
        trace.set_tracer_provider(owner)
    owner.add_span_processor(SimpleSpanProcessor(exporter))
    was = observability.OBSERVABILITY_SETTINGS.enable_instrumentation
    observability.OBSERVABILITY_SETTINGS.enable_instrumentation = True
    try:
        await ran("add(1)", tools=[add])
    finally:
        observability.OBSERVABILITY_SETTINGS.enable_instrumentation = was
    spans = exporter.get_finished_spans()
    ids = {span: str((span.attributes or {}).get("gen_ai.tool.call.id", "")) for span in spans}
    [inner] = [span for span in spans if ids[span].startswith("call-1__")]
    [outer] = [span for span in spans if ids[span] == "call-1"]
    assert (inner.name, outer.name) == ("execute_tool add", "execute_tool execute_code")
    by_id = {span.context.span_id: span for span in spans}
    above = inner
    while above.parent is not None and above is not outer:
        above = by_id[above.parent.span_id]
    assert above is outer
