"""Saving code as a tool: parsed and never run, versioned, never overwritten silently, callable in later actions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hatchway import CodeMode, Rule, Tool
from hatchway.core.errors import CodeRuntimeError, ToolError
from hatchway.sandboxes.jail import JailSandbox
from hatchway.sandboxes.process import ProcessSandbox
from hatchway.tools.gentools import save_tool, save_tool_tool

CODE = '''
def helper(n):
    return n * 2


def run(a: int, /, *rest: int, scale: float = 1.5, **more: str) -> list[float]:
    """Scale numbers."""
    return [helper(n) * scale for n in (a, *rest)]
'''


def test_files_of_a_saved_tool(tmp_path: Path) -> None:
    assert save_tool("scale", CODE, "maths", root=tmp_path) == "from gentools.maths.scale import run"
    folder = tmp_path / "gentools" / "maths" / "scale"
    assert sorted(path.name for path in folder.iterdir()) == ["__init__.py", "api.py", "impl.py"]
    assert (folder / "api.py").read_text() == (
        "from __future__ import annotations\n\nfrom .impl import run as _impl\n\nVERSION = 1\n\n\n"
        "def run(a: int, /, *rest: int, scale: float=1.5, **more: str) -> list[float]:\n"
        '    """Scale numbers."""\n    return _impl(a, *rest, scale=scale, **more)\n'
    )


def test_never_overwritten_silently(tmp_path: Path) -> None:
    save_tool("scale", CODE, root=tmp_path)
    with pytest.raises(ToolError, match=r"the tool saved\.scale is there already"):
        save_tool("scale", "def run():\n    'Other.'\n", root=tmp_path)
    save_tool("scale", "def run():\n    'Other.'\n", new_version=True, root=tmp_path)
    folder = tmp_path / "gentools" / "saved" / "scale"
    assert "VERSION = 2" in (folder / "api.py").read_text()
    assert (folder / "v1" / "impl.py").read_text() == CODE


def test_what_was_written_by_hand_or_half_saved_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "gentools" / "saved" / "scale"
    folder.mkdir(parents=True)
    (folder / "api.py").write_text("def run():\n    'By hand.'\n")
    save_tool("scale", CODE, new_version=True, root=tmp_path)
    assert "VERSION = 2" in (folder / "api.py").read_text()
    assert "By hand." in (folder / "v1" / "api.py").read_text()
    (folder / "v2").mkdir()  # killed after the old code was kept and the new one written
    (folder / "v2" / "impl.py").write_text(CODE)
    (folder / "impl.py").write_text("def run(): ...")
    save_tool("scale", CODE, new_version=True, root=tmp_path)
    assert (folder / "v2" / "impl.py").read_text() == CODE
    assert "VERSION = 2" in (folder / "v2" / "api.py").read_text()


@pytest.mark.parametrize(
    ("name", "category", "code", "said"),
    [
        ("../x", "c", CODE, "'../x' is no identifier"),
        ("x", "/etc", CODE, "'/etc' is no identifier"),
        ("__init__", "c", CODE, "is no identifier"),
        ("x", "c", "1 +", "the code cannot be saved: invalid syntax, line 1"),
        ("x", "c", "y = 1", "the code defines neither a function `run` nor one named 'x'"),
        ("x", "c", "def run(): pass", "a saved tool says what it does"),
        (
            "x",
            "c",
            "def run(a, a):\n    'Two.'",
            "the code cannot be saved: duplicate argument 'a' in function definition, line 1",
        ),
        ("x", "c", "await f()\ndef run():\n    'x'", "the code cannot be saved: 'await' outside function, line 1"),
        ("x", "c", "(" * 50_000, "the code cannot be saved"),
    ],
)
def test_what_cannot_be_saved(name: str, category: str, code: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ToolError) as raised:
        save_tool(name, code, category, root=tmp_path)
    assert said in raised.value.message
    assert not list(tmp_path.rglob("*.py"))


@pytest.mark.anyio
async def test_types_and_defaults_of_the_code_itself(tmp_path: Path) -> None:
    code = """
from dataclasses import dataclass
from typing import Any

try:
    LIMIT = 2
except ImportError:
    LIMIT = 0

@dataclass
class Point:
    x: int = 1

async def run(point: Point = Point(3), /, *, times: int = LIMIT, more: Any = [n for n in range(LIMIT)]) -> list[int]:
    'Repeat a point.'
    return [point.x] * times + more
"""
    line = save_tool("repeat", code, "maths", root=tmp_path)
    api = (tmp_path / "gentools" / "maths" / "repeat" / "api.py").read_text()
    assert (
        "from .impl import Any\nfrom .impl import LIMIT\nfrom .impl import Point\nfrom .impl import run as _impl" in api
    )
    sandbox = ProcessSandbox(file_mounts=[(tmp_path / "gentools", "gentools")])
    told = "from typing import get_type_hints\n[await run(), sorted(get_type_hints(run))]"
    async with sandbox, CodeMode(sandbox) as mode:
        assert (await mode.run(f"{line}\n{told}")).output == [[3, 3, 0, 1], ["more", "point", "return", "times"]]


@pytest.mark.anyio
@pytest.mark.parametrize("backend", [ProcessSandbox, JailSandbox])
async def test_its_code_calls_the_tools_of_the_action(backend: Any, tmp_path: Path) -> None:
    if backend.probe().state != "usable":
        pytest.skip(backend.probe().reason)
    code = "def each(names):\n    return [shop.price(name) for name in names]\n"
    code += "def run(names: list[str]) -> float:\n    'What they cost.'\n    return sum(each(names)) + fee()\n"
    line = save_tool("cost", code, "shop", root=tmp_path)
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    price = Tool(name="shop.price", parameters=schema, func=lambda name: len(name))
    sandbox = backend(file_mounts=[(tmp_path / "gentools", "gentools")])

    def fee() -> int:
        return 10

    async with sandbox, CodeMode(sandbox, tools=[price, fee]) as mode, mode.session() as session:
        assert (await session.run(f"{line}\nrun(['ab', 'c'])")).output == 13
        assert (await session.run("run(['abc'])")).output == 13
        assert (await session.run("fee = lambda: 0\nrun(['abc'])")).output == 3
    async with backend(file_mounts=[(tmp_path / "gentools", "gentools")]) as bare, CodeMode(bare) as mode:
        with pytest.raises(CodeRuntimeError, match="name 'shop' is not defined"):
            await mode.run(f"{line}\nrun(['ab'])")


def test_nothing_of_it_runs_here(tmp_path: Path) -> None:
    code = f"open({str(tmp_path / 'ran')!r}, 'w')\nimport nowhere\ndef run():\n    'x'\n"
    save_tool("bad", code, root=tmp_path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.anyio
async def test_saved_by_code_and_called_by_later_code(tmp_path: Path) -> None:
    saving = f"save_tool('scale', {CODE!r}, 'maths')"
    async with CodeMode("monty", tools=[save_tool_tool(tmp_path)], rules=[Rule("allow", "save_tool")]) as mode:
        line = (await mode.run(saving)).output
    sandbox = ProcessSandbox(file_mounts=[(tmp_path / "gentools", "gentools")])
    async with sandbox, CodeMode(sandbox) as mode:
        assert (await mode.run(f"{line}\nrun(1, 2, scale=2.0)")).output == [4.0, 8.0]


@pytest.mark.anyio
async def test_a_tool_saved_anew_is_imported_anew_in_the_same_session(tmp_path: Path) -> None:
    def code(rate: int) -> str:
        return f"def run(n: int) -> int:\n    'Times.'\n    return n * {rate} + fee()\n"

    def fee() -> int:
        return 100

    line = save_tool("scale", code(2), "maths", root=tmp_path)
    sandbox = ProcessSandbox(workdir=tmp_path)
    async with sandbox, CodeMode(sandbox, tools=[fee]) as mode, mode.session() as session:
        assert (await session.run(f"{line}\nold = run\nrun(1)")).output == 102
        save_tool("scale", code(3), "maths", new_version=True, root=tmp_path)
        again = f"{line}\nfrom gentools.maths.scale import VERSION\n[run(1), old(1), VERSION]"
        assert (await session.run(again)).output == [103, 102, 2]
        assert (await session.run("from gentools.maths.scale.v1 import run as first\nfirst(1)")).output == 102
