"""The known bugs of the frameworks' own code modes, and of Monty, are not ours: `framework_bugs.md` lists all."""

import asyncio
import re
import runpy
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from hatchway.adapters.agent_framework import ContainerCodeActProvider, JailCodeActProvider, MontyCodeActProvider
from hatchway.adapters.agent_framework.environments import MOST
from hatchway.adapters.pydantic_ai import CodeModeToolset
from hatchway.core.limits import Limits
from hatchway.sandboxes.registry import availability

pytestmark = pytest.mark.anyio
TESTS = Path(__file__).parents[1]
AGENT_FRAMEWORK: Any = runpy.run_path(str(Path(__file__).parent / "test_agent_framework.py"))
PYDANTIC_AI: Any = runpy.run_path(str(Path(__file__).parent / "test_pydantic_ai.py"))

BUGS = re.findall(
    r"^\| (.+) \| `(.+)::(.+)` \|$", Path(__file__).with_name("framework_bugs.md").read_text(), re.MULTILINE
)
ran: Any = AGENT_FRAMEWORK["ran"]
prepared: Any = AGENT_FRAMEWORK["prepared"]
add: Any = AGENT_FRAMEWORK["add"]


def test_each_bug_has_its_test() -> None:
    assert len(BUGS) > 30
    assert [bug for bug, file, name in BUGS if f"def {name}(" not in (TESTS / file).read_text()] == []


async def test_timeout_around_an_endless_loop() -> None:
    provider = MontyCodeActProvider(limits=Limits(wall_seconds=60))
    _, tool = await prepared(provider)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(tool.invoke(arguments={"code": "while True: pass"}), 0.3)
    assert [item.text for item in await tool.invoke(arguments={"code": "1"})] == ["1"]
    await provider.aclose()


async def test_run_tool_says_who_added_it() -> None:
    provider = MontyCodeActProvider("mine", tools=[add])
    _, tool = await prepared(provider)
    assert tool.additional_properties == {"context_source": "mine"}


async def test_the_models_own_tool_is_not_offered_to_the_code() -> None:
    def execute_code(code: str) -> str:
        return code

    provider = MontyCodeActProvider(tools=[execute_code, add])
    assert [tool.name for tool in provider.get_tools()] == ["add"]


async def test_workspace_is_not_walked(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("seen")
    (tmp_path / "link").symlink_to("there")
    (tmp_path / "nowhere").symlink_to("/nonexistent/file")
    provider = MontyCodeActProvider(workspace_root=tmp_path)
    _, tool = await prepared(provider)
    (tmp_path / "later").write_text("new")  # what is there counts when it is read, not when the run began
    code = "from pathlib import Path\n[Path('/input/there').read_text(), Path('/input/later').read_text()]"
    assert (await tool.invoke(arguments={"code": code}))[0].text == '["seen","new"]'
    await provider.aclose()


@pytest.mark.parametrize("kind", [MontyCodeActProvider, JailCodeActProvider])
async def test_workspace_cannot_be_written_to(kind: Any, tmp_path: Path) -> None:
    if kind is JailCodeActProvider and (found := availability("jail")).state != "usable":
        pytest.skip(found.reason)
    provider = kind(workspace_root=tmp_path)
    saw, _ = await ran("from pathlib import Path\nPath('/input/new').write_text('x')", provider=provider)
    assert "Error" in saw
    assert list(tmp_path.iterdir()) == []
    await provider.aclose()


@pytest.mark.parametrize("kind", [MontyCodeActProvider, JailCodeActProvider])
async def test_memory_has_a_limit_nobody_asked_for(kind: Any) -> None:
    if kind is JailCodeActProvider and (found := availability("jail")).state != "usable":
        pytest.skip(found.reason)
    provider = kind()
    saw, items = await ran("print('so far')\nlen('a' * 10**10)", provider=provider)
    assert items[-1].type == "error"
    assert "so far" in saw
    assert "memory" in saw.lower()
    await provider.aclose()


async def test_sandbox_that_does_not_start_is_told_to_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    provider = ContainerCodeActProvider()
    saw, items = await ran("1", provider=provider)
    assert saw.startswith("sandbox failed: ")
    assert items[-1].error_code == "Sandbox failed"
    await provider.aclose()


async def test_runs_that_begin_at_once_open_one_sandbox() -> None:
    provider = MontyCodeActProvider(tools=[add])
    environments, snapshot = provider._environments, provider._registry.snapshot()

    async def used() -> Any:
        async with environments.use(snapshot) as environment:
            return environment

    assert len(set(await asyncio.gather(*[used() for _ in range(4)]))) == 1
    await provider.aclose()


async def test_sandbox_in_use_is_not_closed_for_want_of_room() -> None:
    provider = MontyCodeActProvider(tools=[add])
    async with AsyncExitStack() as stack:
        for n in range(MOST + 2):
            provider.add_tools(AGENT_FRAMEWORK["asking"](add, f"number_{n}"))
            environment = await stack.enter_async_context(provider._environments.use(provider._registry.snapshot()))
            assert (await environment.mode.run("1 + 1")).output == 2
        [here] = provider._environments._kept.values()
        assert len(here.kept) == MOST + 2
    await provider.aclose()


async def test_handler_that_does_not_answer_leaves_it_to_a_person() -> None:
    from pydantic_ai.capabilities import HandleDeferredToolCalls
    from pydantic_ai.tools import DeferredToolRequests

    async def handler(ctx: Any, requests: Any) -> None:
        return None

    toolset = CodeModeToolset(PYDANTIC_AI["tools"](), sandbox="monty")
    model = PYDANTIC_AI["scripted"]("wipe('/a')")
    agent = PYDANTIC_AI["agent_of"](model, toolset, capabilities=[HandleDeferredToolCalls(handler)])
    assert isinstance((await agent.run("go")).output, DeferredToolRequests)
    await toolset.aclose()


async def test_session_makes_more_than_five_hundred_calls() -> None:
    code = "total = 0\nfor _ in range(400):\n    total += (await look('x'))['size']\ntotal"
    saw = await PYDANTIC_AI["ran"](code, code, state="run")
    assert saw == [400.0, 400.0]


async def test_later_code_of_a_session_is_not_refused() -> None:
    assert await PYDANTIC_AI["ran"]("kept = look('x')", "kept['name'] * 2", state="run") == [None, "xx"]


async def test_nested_brackets_end_the_code_and_nothing_else() -> None:
    provider = MontyCodeActProvider()
    for brackets in ("(" * 20_000 + ")" * 20_000, "[" * 3_000 + "]" * 3_000):
        _, items = await ran(brackets, provider=provider)
        assert items[-1].type == "error"
    assert (await ran("1 + 1", provider=provider))[0] == "2"
    await provider.aclose()
