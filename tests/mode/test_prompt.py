"""The prompt: each flag says its line, each tool stands once, the same input gives the same bytes."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Literal, TypedDict

import pytest

from hatchway import CodeConstraints, CodeMode, CodeRuntimeError, Tool
from hatchway.mode.prompt import build_code_mode_prompt

FLAGS = [f.name for f in fields(CodeConstraints) if f.name.startswith("supports_")]


def test_full_python() -> None:
    prompt = build_code_mode_prompt(signatures=["def f() -> int: ..."], constraints=CodeConstraints())
    assert "The sandbox runs full Python" in prompt
    assert "does not have" not in prompt
    assert prompt.count("def f() -> int: ...") == 1


@pytest.mark.parametrize("flag", FLAGS)
def test_a_flag_that_is_off_is_told(flag: str) -> None:
    full = build_code_mode_prompt(signatures=[], constraints=CodeConstraints())
    without = build_code_mode_prompt(signatures=[], constraints=replace(CodeConstraints(), **{flag: False}))
    told = [line for line in without.splitlines() if line.startswith("- ") and line not in full]
    assert len(told) == 1


def test_each_tool_stands_once() -> None:
    stub = "def f(x: int) -> int:\n    ..."
    prompt = build_code_mode_prompt(signatures=[stub, stub, "def g(): ..."], constraints=CodeConstraints())
    assert prompt.count(stub) == 1
    assert prompt.count("def g") == 1


def test_modules_packages_and_instructions() -> None:
    constraints = CodeConstraints(modules=("json", "re"), packages=("numpy",), additional_instructions="Be kind.")
    prompt = build_code_mode_prompt(signatures=[], constraints=constraints)
    assert "- Import only: json, re." in prompt
    assert "- Installed packages: numpy." in prompt
    assert "Be kind." in prompt
    assert "There are no host functions" in prompt


def test_what_there_is_does_not_stand_among_what_is_lacking() -> None:
    constraints = CodeConstraints(supports_del=False, modules=("json",), displays=True)
    lacking, there = build_code_mode_prompt(signatures=[], constraints=constraints).split("\n\nAbout the rest:\n")
    assert lacking.splitlines()[-2:] == [
        "The sandbox runs a subset of Python. It does not have:",
        "- `del`. Rebind the name, or build a new dict or list.",
    ]
    assert there.startswith(
        "- Import only: json.\n- No network: only host functions reach outside.\n- Pictures come out"
    )


def test_network_is_told_only_where_there_is_none() -> None:
    reached = build_code_mode_prompt(signatures=[], constraints=CodeConstraints(network=True))
    assert "network" not in reached


def test_state_is_told_where_it_is_known() -> None:
    def prompt(state: Literal["fresh", "kept"] | None) -> str:
        return build_code_mode_prompt(signatures=[], constraints=CodeConstraints(), state=state)

    assert "Each piece starts fresh: names and imports of earlier ones are gone." in prompt("fresh")
    assert "Names, imports and functions are kept from one piece to the next." in prompt("kept")
    assert "starts fresh" not in prompt(None)
    assert "are kept" not in prompt(None)


class Line(TypedDict):
    """A record."""

    sku: str


@pytest.mark.anyio
async def test_a_model_is_told_that_classes_of_stubs_are_not_there() -> None:
    def order(line: Line) -> str:
        return line["sku"]

    def name() -> str:
        return ""

    told = "pass and expect plain dicts, the names of the classes are not defined."
    async with CodeMode("monty", tools=[order]) as mode:
        assert told in mode.prompt()
        assert (await mode.run("order({'sku': 'a'})")).output == "a"
        with pytest.raises(CodeRuntimeError, match="name 'Line' is not defined"):
            await mode.run("order(Line(sku='a'))")
    async with CodeMode("monty", tools=[name]) as mode:
        assert told not in mode.prompt()


def test_the_same_bytes_each_time() -> None:
    def build() -> str:
        return build_code_mode_prompt(signatures=["def f(): ...", "def g(): ..."], constraints=CodeConstraints())

    assert build() == build()


def test_braces_in_a_stub_are_kept() -> None:
    stub = 'def f(x: dict = {}) -> str:\n    """Gives {x}."""\n    ...'
    assert stub in build_code_mode_prompt(signatures=[stub], constraints=CodeConstraints())


@pytest.mark.anyio
async def test_discovery_keeps_the_prompt_small_and_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    schema = {"type": "object", "properties": {"query": {"type": "string", "description": "What to look for. " * 5}}}
    tools = [
        Tool(
            name=f"server{n % 5}.tool_{n}",
            description="Does things. " * 20,
            parameters=schema,
            func=lambda query: query,
        )
        for n in range(100)
    ]
    async with CodeMode("monty", tools=tools, discovery="hybrid") as mode:
        prompt = mode.prompt()
        assert len(prompt) / 4 < 1000
        assert "server4 (20)" in prompt
        found = await mode.run("describe(list_tools('server1')[0]['name'])")
        assert "def tool_1(" in found.output
        assert (await mode.run("server2.tool_2(query='x')")).output == "x"
        assert mode.prompt() == prompt
    async with CodeMode("monty", tools=reversed(tools), discovery="hybrid") as mode:
        assert mode.prompt() == prompt
