"""The prompt: each flag says its line, each tool stands once, the same input gives the same bytes."""

from dataclasses import fields, replace

import pytest

from hatchway import CodeConstraints
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


def test_the_same_bytes_each_time() -> None:
    def build() -> str:
        return build_code_mode_prompt(signatures=["def f(): ...", "def g(): ..."], constraints=CodeConstraints())

    assert build() == build()


def test_braces_in_a_stub_are_kept() -> None:
    stub = 'def f(x: dict = {}) -> str:\n    """Gives {x}."""\n    ...'
    assert stub in build_code_mode_prompt(signatures=[stub], constraints=CodeConstraints())
