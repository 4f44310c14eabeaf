"""Fenced blocks: which of them are code to run."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchway.executors.code_blocks import code_blocks, fenced
from hatchway.executors.parts import ExecutableCodePart

LANGUAGES = ("python", "shell", "node")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("no code", []),
        ("```python\n1\n```", [("1\n", "python")]),
        ("say\n```py\n1\n```\nthen\n```sh\nls\n```\nend", [("1\n", "python"), ("ls\n", "shell")]),
        ("~~~JavaScript\n1\n~~~", [("1\n", "node")]),
        ("```tool_code\n1\n```", [("1\n", "python")]),
        ("````python\nx = '''\n```\n'''\n````", [("x = '''\n```\n'''\n", "python")]),
        ("```python title=x.py\n1\n```", [("1\n", "python")]),
        ("  ```python\n  1\n  ```", [("  1\n", "python")]),
        ("```\n1\n```", []),
        ("```json\n{}\n```", []),
        ("```text\n```python\n1\n```", []),
        ("```python\nnever ends", []),
        ("```python\n\n```", []),
        ("inline ```python 1``` is prose", []),
        ("```python\n1\n```trailing", []),
        ("```python\r\n1\r\n```\r\n", [("1\n", "python")]),
    ],
)
def test_blocks_with_a_known_language_are_code(text: str, found: list[tuple[str, str]]) -> None:
    assert list(code_blocks(text, LANGUAGES)) == [ExecutableCodePart(code, language) for code, language in found]


@given(st.text(st.sampled_from("`~ \npyn1#"), max_size=200))
def test_any_text_is_parsed_and_any_output_survives_its_fence(text: str) -> None:
    list(code_blocks(text, LANGUAGES))
    block = fenced(text).replace("`\n", "`python\n", 1)
    blocks = list(code_blocks(block, LANGUAGES))
    if text.strip():
        assert [each.code.rstrip("\n") for each in blocks] == [text.rstrip("\n")]


def test_five_megabytes_of_fences_take_no_time() -> None:
    assert list(code_blocks("```python\n" * 500_000, LANGUAGES)) == []
