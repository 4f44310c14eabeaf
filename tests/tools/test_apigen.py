"""Generated modules: they compile and run whatever a server sends, carry none of its code, and call what they say."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hatchway import CodeMode, CodeSandbox, Rule, ToolError
from hatchway.core.errors import InvalidSetting, InvalidTool
from hatchway.sandboxes.container import ContainerSandbox
from hatchway.sandboxes.jail import JailSandbox
from hatchway.sandboxes.process import ProcessSandbox
from hatchway.tools import host_module
from hatchway.tools.apigen import generate_mcp_sources, write_sources
from hatchway.tools.functions import Tool
from hatchway.tools.mcp.servers import McpServers
from hatchway.tools.module_text import module_text

SUITE = Path(__file__).parents[2].parent / "shared" / "data" / "json-schema-test-suite"
ODD = {"command": sys.executable, "args": [str(Path(__file__).parent / "mcp" / "odd_server.py")]}
HOSTILE = ['"""', "\\", "'''", "\n", "\r", "\u2028", "\x0c", "#", "${x}", "{0}", "\x00", "import os", "__class__", "]"]
hostile = st.lists(st.sampled_from(HOSTILE) | st.text(max_size=5), max_size=5).map("".join)
words = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object", "nonsense"])


SANDBOXES: dict[str, Callable[[Any], CodeSandbox]] = {
    "process": lambda granted: ProcessSandbox(file_mounts=granted),
    "jail": lambda granted: JailSandbox(file_mounts=granted, spares=0),
    "container": lambda granted: ContainerSandbox(file_mounts=granted, spares=0),
}


def made(parameters: Any, returns: Any = None, description: str = "", name: str = "server.tool") -> Tool:
    return Tool(name=name, description=description, parameters=parameters, returns=returns, func=lambda **_: None)


def loaded(text: str, calls: list[Any] | None = None) -> dict[str, Any]:
    """The module's names; what it calls is kept."""
    own = types.ModuleType("mcptools._host")
    heard = calls if calls is not None else []
    vars(own).update(call=lambda *told: heard.append(told), acall=None)
    before = {name: sys.modules.get(name) for name in ("mcptools", "mcptools._host")}
    sys.modules.update({"mcptools": types.ModuleType("mcptools"), "mcptools._host": own})
    namespace: dict[str, Any] = {"__name__": "generated"}
    sys.modules["generated"] = types.ModuleType("generated")
    try:
        exec(compile(text, "generated", "exec"), namespace)
    finally:
        del sys.modules["generated"]
        for name, module in before.items():
            sys.modules.pop(name) if module is None else sys.modules.update({name: module})
    return namespace


def is_harmless(text: str) -> bool:
    """Whether the module does nothing but define: imports, classes, two functions with one call each."""
    statements = ast.parse(text).body
    allowed = (ast.ImportFrom, ast.Import, ast.ClassDef, ast.Assign, ast.FunctionDef, ast.AsyncFunctionDef, ast.Expr)
    called = {
        node.func.id
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    everything = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    return (
        all(isinstance(each, allowed) for each in statements)
        and called <= {"call", "acall", "TypedDict"}
        and all(isinstance(node.func, ast.Name) for node in everything)
    )


def schemas(leaf: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    def node(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        named = st.dictionaries(hostile, inner, max_size=3)
        return st.fixed_dictionaries(
            {},
            optional={
                "type": words | st.lists(words, max_size=3),
                "properties": named,
                "required": st.lists(hostile, max_size=2),
                "items": inner | st.lists(inner, max_size=2),
                "anyOf": st.lists(inner, min_size=1, max_size=3),
                "allOf": st.lists(inner, min_size=1, max_size=3),
                "additionalProperties": inner | st.booleans(),
                "enum": st.lists(hostile | st.integers() | st.none(), max_size=3),
                "const": hostile,
                "default": hostile,
                "title": hostile,
                "description": hostile,
                "$ref": st.sampled_from(["#", "#/properties/x", "#/$defs/A", "nowhere"]),
            },
        )

    return st.recursive(leaf, node, max_leaves=8)


@settings(max_examples=150, deadline=None)
@given(schemas(st.just({})), schemas(st.just({})), hostile)
def test_whatever_the_schema_the_module_compiles_and_only_defines(takes: Any, gives: Any, said: str) -> None:
    parameters = {"type": "object", "properties": {"x": takes, said: takes}, "$defs": {"A": gives}}
    returns = gives if isinstance(gives, dict) else None
    try:
        tool = made(parameters, returns, said)
    except InvalidTool:
        return
    text = module_text(tool)
    assert is_harmless(text)
    assert {"Params", "run", "arun"} <= loaded(text).keys()


@pytest.mark.skipif(not SUITE.is_dir(), reason="../shared/data/json-schema-test-suite is not here")
def test_every_schema_of_the_official_suite() -> None:
    made_modules = checked = 0
    for path in sorted((SUITE / "draft2020-12").glob("*.json")):
        for group in json.loads(path.read_text(encoding="utf-8")):
            parameters = {"type": "object", "properties": {"v": group["schema"]}, "required": ["v"]}
            try:
                tool = made(parameters, group["schema"] if isinstance(group["schema"], dict) else None)
            except InvalidTool:
                continue
            heard: list[Any] = []
            module = loaded(module_text(tool), heard)
            made_modules += 1
            for case in group["tests"]:
                module["run"](module["Params"](v=case["data"]))
                assert heard.pop() == ("server.tool", {"v": case["data"]})
                checked += 1
    assert made_modules > 200
    assert checked > 800


def test_names_that_are_none_and_names_that_are_ours() -> None:
    properties = {
        "from": {"type": "string"},
        "x-y": {"type": "integer"},
        "Params": {"title": "Result", "properties": {"run": {"type": "integer"}}},
    }
    tool = made(
        {"type": "object", "properties": properties, "required": ["from"]},
        {"type": "array", "items": {"type": "integer"}},
    )
    heard: list[Any] = []
    module = loaded(module_text(tool), heard)
    given = {"from": "a", "x-y": 1, "Params": {"run": 2}}
    module["run"](module["Params"](**given))
    assert heard == [("server.tool", given)]
    assert module["Result"] == list[int]


def test_defaults_and_descriptions_are_told_whatever_the_names() -> None:
    hostile = {"default": 'a\nimport os # "', "description": "What to\nlook for."}
    part = {"properties": {"n": {"type": "integer", "default": 7}, "word": {"type": "string", **hostile}}}
    text = module_text(made({"type": "object", **part}))
    assert "    n: NotRequired[int]  # (default: 7)\n" in text
    assert "    word: NotRequired[str]  # What to look for. (default: 'a\\nimport os # \"')\n" in text
    part["properties"]["x-y"] = {"type": "boolean", "description": "Not an identifier."}
    text = module_text(made({"type": "object", **part}))
    assert '    "x-y": NotRequired[bool],  # Not an identifier.\n' in text
    assert {*loaded(text, [])["Params"].__annotations__} == {"n", "word", "x-y"}


def test_a_call_that_does_not_fit_is_refused_at_the_gate() -> None:
    tool = made({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    with pytest.raises(ToolError, match=r"server\.tool\(\): parameter 'n' must be an integer, got 'x' \(str\)"):
        tool.bind((), {"n": "x"})


def test_outside_a_sandbox_it_says_so() -> None:
    with pytest.raises(RuntimeError, match="called by code that runs in a Hatchway sandbox"):
        host_module.call("server.tool", {})


def test_what_is_right_is_not_touched_and_what_is_gone_is_removed(tmp_path: Path) -> None:
    one, two = made({"type": "object"}, name="s.one"), made({"type": "object"}, name="s.two")
    first = write_sources([one, two], ["s"], tmp_path)
    assert len(first.written) == 5
    times = {path: path.stat().st_mtime_ns for path in first.written}
    again = write_sources([one, two], ["s"], tmp_path)
    assert (again.written, again.unchanged, again.removed) == ((), 5, ())
    assert times == {path: path.stat().st_mtime_ns for path in first.written}
    own = tmp_path / "mcptools" / "s" / "mine.py"
    own.write_text("x = 1\n")
    assert write_sources([one], ["s"], tmp_path).removed == (tmp_path / "mcptools" / "s" / "two.py",)
    assert own.exists()
    with pytest.raises(InvalidSetting, match=r"mine\.py was not made by Hatchway"):
        write_sources([made({"type": "object"}, name="s.mine")], ["s"], tmp_path)


@pytest.mark.anyio
@pytest.mark.parametrize("backend", ["process", "jail", "container"])
async def test_imported_inside_a_sandbox(backend: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    code = (
        "import asyncio\nfrom mcptools.odd.echo import Params, arun, run\n"
        "several = await asyncio.gather(arun(Params(text='b')), arun({'text': 'c'}))\n"
        "try:\n    run({'text': 1})\nexcept ToolError as e:\n    refused = str(e)\n"
        "[run(Params(text='a')), *several, refused]"
    )
    async with McpServers({"odd": ODD}) as servers:
        await generate_mcp_sources(servers, tmp_path)
        granted: Any = [(tmp_path / "mcptools", "mcptools")]
        if backend == "container":
            request.getfixturevalue("docker_engine")  # skips where there is none
            tmp_path.chmod(0o755)
        made_sandbox = SANDBOXES[backend](granted)
        if type(made_sandbox).probe().state != "usable":
            pytest.skip(type(made_sandbox).probe().reason)
        async with made_sandbox, CodeMode(made_sandbox, mcp_servers=servers, rules=[Rule("allow")]) as mode:
            output = (await mode.run(code)).output
    assert output == ["a", "b", "c", "odd.echo(): parameter 'text' must be a string, got 1 (int)"]


@pytest.mark.slow
def test_a_type_checker_takes_right_calls_and_refuses_wrong_ones(tmp_path: Path) -> None:
    node = {"type": "object", "properties": {"name": {"type": "string"}, "next": {"$ref": "#/$defs/Node"}}}
    parameters = {
        "type": "object",
        "properties": {
            "root": {"$ref": "#/$defs/Node"},
            "unit": {"enum": ["c", "f"]},
            "pair": {"prefixItems": [{"type": "string"}, {"type": "integer"}], "type": "array"},
        },
        "required": ["root"],
        "$defs": {"Node": {**node, "required": ["name"]}},
    }
    write_sources([made(parameters, node | {"$defs": {"Node": node}}, name="s.t")], ["s"], tmp_path)
    head = "from mcptools.s.t import Params, run\n"
    (tmp_path / "right.py").write_text(
        head + "run(Params(root={'name': 'a', 'next': {'name': 'b'}}, unit='c', pair=['a', 1])).get('next')\n"
    )
    (tmp_path / "wrong.py").write_text(head + "run(Params(root={'name': 1}, unit='k'))\nrun()\n")
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    command = [sys.executable, "-m", "pyright", "--outputjson", "-p", str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=110, stdin=subprocess.DEVNULL)
    told = json.loads(ran.stdout)["generalDiagnostics"]
    assert {Path(each["file"]).name for each in told if each["severity"] == "error"} == {"wrong.py"}
    assert len([each for each in told if each["severity"] == "error"]) == 3
