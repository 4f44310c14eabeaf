"""Packages inside: the code sees the standard library and exactly what was granted, read-only, in every sandbox."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hatchway.core.errors import CodeRuntimeError, InvalidSetting, SandboxUnavailable
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeSandbox
from hatchway.mode.mode import CodeMode
from hatchway.sandboxes.jail import JailSandbox
from hatchway.sandboxes.packages import Packages
from hatchway.sandboxes.process import ProcessSandbox
from hatchway.sandboxes.registry import make_sandbox
from hatchway.sandboxes.wall import landlock

pytestmark = pytest.mark.anyio
Wanted = Callable[..., Packages]
Make = Callable[..., CodeSandbox]


@pytest.fixture(params=["process", "namespaces", "landlock"])
def make(request: pytest.FixtureRequest) -> Make:
    """A sandbox of each kind that can hold packages."""
    match request.param:
        case "process":
            return ProcessSandbox
        case "namespaces":
            seen = JailSandbox.probe()
            if seen.tier != "namespaces":
                pytest.skip(f"{seen.reason} {seen.hint}")
            return lambda **settings: JailSandbox(tier="namespaces", **settings)
        case _:
            if landlock.abi() < 6:
                pytest.skip(f"needs Landlock version 6, this kernel has {landlock.abi()}")
            python = request.getfixturevalue("reachable_python")
            return lambda **settings: JailSandbox(tier="landlock", **{"python": python, **settings})


async def run(where: Any, code: str, **settings: Any) -> ExecutionResult:
    result = await (await where.execute(code, **settings)).next()
    assert isinstance(result, ExecutionResult)
    return result


async def test_granted_packages_can_be_imported_and_not_changed(make: Make, packages: Wanted) -> None:
    async with make(packages=packages("numbers_of")) as sandbox:
        assert sandbox.constraints.packages == ("numbers_of",)
        assert (await run(sandbox, "import numbers_of\nnumbers_of.one()")).output == 1
        async with sandbox.session() as session:
            await run(session, "import numbers_of")
            assert (await run(session, "numbers_of.one()")).output == 1
        if sandbox.name == "jail":
            for change in ("open(small.__file__, 'w')", "import os\nos.remove(small.__file__)"):
                with pytest.raises(CodeRuntimeError, match=r"Read-only file system|Permission denied"):
                    await run(sandbox, f"import small\n{change}")


async def test_without_a_grant_there_is_nothing_but_the_standard_library(make: Make) -> None:
    async with make() as sandbox:
        assert sandbox.constraints.packages == ()
        for name in ("numbers_of", "pytest", "pip"):
            with pytest.raises(CodeRuntimeError, match=f"ModuleNotFoundError: No module named '{name}'"):
                await run(sandbox, f"import {name}")


async def test_packages_of_the_host_cannot_be_reached_by_their_paths(make: Make) -> None:
    async with make() as sandbox:
        code = """
import importlib, os, sys
sys.path += [
    os.path.join(folder, name)
    for path in [*sys.path, "/usr/lib/python3", "/usr/local/lib/python3"] for folder in (path, os.path.dirname(path))
    for name in ("site-packages", "dist-packages")
]
found = []
for path in sys.path[2:]:
    try:
        names = os.listdir(path)
    except OSError:
        continue
    for name in names:
        if name.isidentifier():
            try:
                module = importlib.import_module(name)
                found += [name] if module.__file__ else []  # a mere folder of that name has none
            except BaseException:
                pass
found
"""
        found = (await run(sandbox, code)).output
        assert found == [] or sandbox.name == "process"  # which has no wall


async def test_a_package_cannot_take_the_place_of_the_standard_library(
    make: Make, packages: Wanted, write_wheel: Callable[..., None]
) -> None:
    write_wheel("json", "9.0", "raise SystemExit('shadowed')\n")
    write_wheel("resource_less", "1.0", "")
    async with make(packages=packages("json", "resource_less")) as sandbox:
        assert (await run(sandbox, "import json, resource_less\njson.dumps([1])")).output == "[1]"


async def test_what_cannot_be_installed_is_the_error_of_the_first_action(make: Make, packages: Wanted) -> None:
    async with make(packages=packages("nowhere_to_be_found")) as sandbox:
        for _ in range(2):
            with pytest.raises(SandboxUnavailable, match="Because nowhere-to-be-found was not found"):
                await run(sandbox, "1")
        with pytest.raises(SandboxUnavailable, match="the packages cannot be installed: nowhere_to_be_found"):
            async with sandbox.session():
                pass


async def test_the_prompt_names_what_is_granted(make: Make, packages: Wanted) -> None:
    sandbox = make(packages=packages("numbers_of", "small<2"))
    async with sandbox, CodeMode(sandbox) as mode:
        assert "- Installed packages: numbers_of, small<2." in mode.prompt()


def _environment(folder: Path, python: str) -> str:
    """A virtual environment without pip, with one package in it; its interpreter."""
    subprocess.run([python, "-m", "venv", "--without-pip", str(folder)], check=True, capture_output=True, timeout=60)
    (site,) = folder.glob("lib/python3*/site-packages")
    (site / "here.py").write_text("WHERE = 'in the environment'\n")
    (site / "here-3.1.dist-info").mkdir()
    (site / "editable.pth").write_text("import sys; sys.editable = True\n")
    return str(folder / "bin" / "python")


async def test_an_existing_environment_shows_its_packages(
    make: Make, packages: Wanted, open_path: Path, reachable_python: str | None
) -> None:
    python = _environment(open_path / "environment", reachable_python or sys._base_executable)  # type: ignore[attr-defined]
    async with make(python=python, packages=packages("numbers_of")) as sandbox:
        assert sandbox.constraints.packages == ("numbers_of", "here==3.1")
        code = "import here, numbers_of, sys\n[here.WHERE, numbers_of.one(), hasattr(sys, 'editable')]"
        result = await run(sandbox, code)
        assert result.output == ["in the environment", 1, sandbox.name == "process"]
        if sandbox.name == "jail":
            with pytest.raises(CodeRuntimeError, match=r"Read-only file system|Permission denied"):
                await run(sandbox, "import here\nopen(here.__file__, 'a')")


async def test_a_granted_package_is_not_imported_before_the_walls_stand(
    make: Make, packages: Wanted, write_wheel: Callable[..., None]
) -> None:
    """Not even one by a name the zygote preloads: a Python built without it must not find it there."""
    told = "open('/proc/self/status').read()" if make is not ProcessSandbox else "''"
    write_wheel("witness", "1.0", f"import os\ntry:\n    SEEN = {told}\nexcept OSError:\n    SEEN = ''\n")
    async with make(packages=packages("witness")) as sandbox:
        code = "import sys\nbefore = 'witness' in sys.modules\nimport witness\n[before, witness.SEEN]"
        before, seen = (await run(sandbox, code)).output
        assert before is False
        if seen:
            assert "CapEff:\t0000000000000000" in seen
            assert "NoNewPrivs:\t1" in seen


def test_monty_says_that_it_has_none() -> None:
    with pytest.raises(InvalidSetting) as refused:
        make_sandbox("monty", packages=["pandas"])
    assert refused.value.message == "the sandbox 'monty' does not take packages"
    assert refused.value.hint.startswith("sandboxes that do: jail, process")
