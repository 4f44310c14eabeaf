"""The samples of the documents this grew from, run as they stand there: only what they import is ours."""

import inspect
import json
import re
import runpy
import textwrap
from pathlib import Path
from typing import Any

import pytest

from hatchway import CodeConstraints, FunctionCall
from hatchway.sandboxes.monty import MontySandbox
from hatchway.sandboxes.registry import availability

pytestmark = pytest.mark.anyio
SEEDS = Path(__file__).resolve().parents[2].parent / "shared" / "seeds"
Scripted: Any = runpy.run_path(str(Path(__file__).parent / "frameworks" / "agent_framework_driver.py"))["Scripted"]


def seed(start: str) -> str:
    """The text of one of the documents."""
    found = sorted(SEEDS.glob(f"{start}_*.txt"))
    if not found:
        pytest.skip(f"no document {start} in {SEEDS}")
    return found[0].read_text()


def between(text: str, first: str, last: str) -> str:
    """From one piece of the text up to and with another."""
    begin = text.index(first)
    return text[begin : text.index(last, begin) + len(last)]


def provider_of(sandbox: str) -> Any:
    """What the import line names in place of the sample's provider."""
    from hatchway.adapters import agent_framework

    if (found := availability(sandbox)).state != "usable":
        pytest.skip(f"{sandbox}: {found.reason}")
    return getattr(agent_framework, f"{sandbox.capitalize()}CodeActProvider")


async def answer(agent: Any) -> Any:
    """What the model saw of its code."""
    await agent.run("go", session=agent.create_session())
    [result] = agent.client.saw
    return result.result


@pytest.mark.parametrize("sandbox", ["monty", "jail", "hyperlight"])
async def test_agent_with_code_act_tools(sandbox: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from agent_framework import Agent

    sample = between(seed("000"), "codeact = HyperlightCodeActProvider(", "context_providers=[codeact],\n)")
    monkeypatch.chdir(tmp_path)
    Path("workdir").mkdir()
    Path("workdir/note.txt").write_text("seen")

    def fetch_docs(topic: str) -> str:
        return f"docs of {topic}"

    def query_data(query: str) -> int:
        return len(query)

    def lookup_user(name: str) -> str:
        return name.title()

    def send_email(to: str) -> str:
        raise AssertionError("only the model may call this one")

    code = (
        "from pathlib import Path\n"
        "[fetch_docs('x'), query_data('abc'), lookup_user('ada'), Path('input/note.txt').read_text()]"
    )
    client = Scripted(code)
    names: dict[str, Any] = {"Agent": Agent, "HyperlightCodeActProvider": provider_of(sandbox), "client": client}
    names |= {tool.__name__: tool for tool in (fetch_docs, query_data, lookup_user, send_email)}
    exec(sample, names)
    assert json.loads(await answer(names["agent"])) == ["docs of x", 3, "Ada", "seen"]
    client.code, client.saw = "send_email('ada')", []
    assert "send_email" in await answer(names["agent"])
    assert names["codeact"].get_allowed_domains()[0].methods == ("GET",)
    await names["codeact"].aclose()


@pytest.mark.parametrize("sandbox", ["monty", "jail", "hyperlight"])
async def test_agent_with_an_interpreter(sandbox: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from agent_framework import Agent

    first, last = "code_interpreter = HyperlightCodeActProvider(", "context_providers=[code_interpreter],\n)"
    sample = between(seed("000"), first, last)
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    client = Scripted("sum(range(10))")
    names = {"Agent": Agent, "HyperlightCodeActProvider": provider_of(sandbox), "client": client}
    exec(sample, names)
    assert await answer(names["agent"]) == "45"
    await names["code_interpreter"].aclose()


def test_provider_has_the_constructor_and_the_methods_of_the_document() -> None:
    from hatchway.adapters.agent_framework import HyperlightCodeActProvider, JailCodeActProvider, MontyCodeActProvider

    text = between(seed("000"), "class HyperlightCodeActProvider(ContextProvider):", "file_mounts accepts")
    arguments, methods = text.split(") -> None: ...", 1)
    told = dict(re.findall(r"^(\w+): [^=\n]+ = (.+),$", arguments, re.MULTILINE))
    assert len(told) == 9
    has = inspect.signature(HyperlightCodeActProvider).parameters
    for name, default in told.items():
        assert has[name].default == eval(default), name
    assert [name for name in has if has[name].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD] == ["source_id"]
    names = re.findall(r"def (\w+)\(self(?:, (\w+):)?", methods)
    assert len(names) == 12
    for kind in (HyperlightCodeActProvider, JailCodeActProvider, MontyCodeActProvider):
        for name, argument in names:
            taken = list(inspect.signature(getattr(kind, name)).parameters)
            assert taken == ["self", *([argument] if argument else [])], name


def test_schema_is_the_one_of_the_document() -> None:
    from hatchway.adapters.agent_framework.tools import SCHEMA

    assert json.loads(between(seed("000"), '{\n"type": "object"', '"required": ["code"]\n}')) == SCHEMA


@pytest.mark.parametrize("mark", ["# Things the host does between tool calls:", '# "What happened?"'])
async def test_pull_loops(mark: str) -> None:
    from opentelemetry import trace
    from pydantic_ai.exceptions import ApprovalRequired

    blocks = re.findall(r"```python\n(.*?)```", seed("003"), re.DOTALL)
    sample = [block for block in blocks if mark in block][-1]
    asked: list[str] = []

    async def call_tool(name: str, *args: Any) -> int:
        asked.append(name)
        return 20

    async def real_tool(call: FunctionCall) -> int:
        return await call_tool(call.function_name)

    # the first of the two begins after the first event, the second gives its end
    start = "event = await execution.next()\n" if "return" not in sample else ""
    end = "return event.output\n" if "return" not in sample else ""
    lines = textwrap.indent(f"{start}{sample}\n{end}", "    ").replace(
        "event.function_name, ...", "event.function_name"
    )
    names: dict[str, Any] = {
        "FunctionCall": FunctionCall, "ApprovalRequired": ApprovalRequired, "tracer": trace.get_tracer("test"),
        "call_tool": call_tool, "real_tool": real_tool,
    }  # fmt: skip
    exec(f"async def drive(execution):\n{lines}", names)
    async with MontySandbox() as sandbox:
        execution = await sandbox.execute("ask(1) + ask(2) + 2", ["ask"])
        assert await names["drive"](execution) == 42
    assert asked == ["ask", "ask"]


async def test_toolset_is_made_as_the_document_says() -> None:
    from pydantic_ai import Agent
    from pydantic_ai.models.test import TestModel
    from pydantic_ai.toolsets import FunctionToolset

    from hatchway.adapters.pydantic_ai import CodeModeToolset

    sample = between(seed("003"), "CodeModeToolset(wrapped=toolset", "MontySandbox())")
    names = {"CodeModeToolset": CodeModeToolset, "MontySandbox": MontySandbox, "toolset": FunctionToolset()}
    toolset = eval(sample, names)
    async with toolset.sandbox:
        model = TestModel(call_tools=[])
        await Agent(model, toolsets=[toolset]).run("go")
        assert model.last_model_request_parameters is not None
        assert [tool.name for tool in model.last_model_request_parameters.function_tools] == ["execute_code"]
        await toolset.aclose()


def test_prompt_tells_each_restriction_the_document_has() -> None:
    from hatchway.adapters.pydantic_ai import build_code_mode_prompt

    flags = sorted(set(re.findall(r"not constraints\.(supports_\w+)", seed("003"))))
    assert len(flags) == 8
    full = build_code_mode_prompt(signatures=["def f() -> int: ..."], constraints=CodeConstraints())
    assert "def f() -> int: ..." in full
    told = set[str]()
    for flag in flags:
        prompt = build_code_mode_prompt(signatures=[], constraints=CodeConstraints(**{flag: False}))
        told.add(prompt)
        assert prompt != full
    assert len(told) == 8
    extra = CodeConstraints(additional_instructions="Mind the gap.")
    assert "Mind the gap." in build_code_mode_prompt(signatures=[], constraints=extra)
