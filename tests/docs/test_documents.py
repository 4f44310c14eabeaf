"""The documents tell the truth: their code runs, their output is what they show, their links and commands exist."""

import asyncio
import re
import runpy
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from hatchway.cli.main import COMMANDS

REPO = Path(__file__).parents[2]
PAGES = sorted([*REPO.glob("*.md"), *REPO.glob("docs/*.md"), *REPO.glob("src/hatchway/**/README.md")])
FENCE = re.compile(r"(?P<skip><!-- no-run -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """One fenced block of a page."""

    page: str
    line: int
    language: str
    text: str
    skip: bool
    output: str | None
    """The text block right after it: what it must print."""


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, each with the output shown after it."""
    text = page.read_text(encoding="utf-8")
    found = list(FENCE.finditer(text))
    for here, after in pairwise([*found, None]):
        assert here is not None
        follows = after and after["language"] == "text" and not text[here.end() : after.start()].strip()
        line = text.count("\n", 0, here.start()) + 1
        shown = after["text"] if after and follows else None
        yield Block(str(page.relative_to(REPO)), line, here["language"], here["text"], bool(here["skip"]), shown)


NEEDS = {"docs/containers.md": "docker_engine", "docs/agent-sdk.md": "agent_jail"}
"""Fixtures that bring what a page's code needs; they skip where there is none."""
ALL = [block for page in PAGES for block in blocks(page)]
PYTHON = [block for block in ALL if block.language == "python"]
SHELL = [block for block in ALL if block.language in ("sh", "bash", "console")]


@pytest.mark.parametrize("block", PYTHON, ids=lambda b: f"{b.page}:{b.line}")
def test_a_python_block_runs_and_prints_what_the_page_shows(
    request: pytest.FixtureRequest,
    block: Block,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert not block.skip, "only shell blocks may be left out"
    if block.page in NEEDS:
        request.getfixturevalue(NEEDS[block.page])
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "block.py"
    script.write_text(block.text, encoding="utf-8")
    runpy.run_path(str(script), run_name="__main__")
    if block.output is not None:
        assert capfd.readouterr().out == block.output


@pytest.mark.parametrize("block", SHELL, ids=lambda b: f"{b.page}:{b.line}")
def test_a_shell_block_uses_words_that_exist(block: Block) -> None:
    words = re.search(r"words = \{(.*)\}", (REPO / "dev").read_text(encoding="utf-8"))
    assert words is not None
    known = {"./dev": re.findall(r'"(\w+)":', words[1]), "hatchway": [*COMMANDS, "--version", "--help"]}
    for command in re.findall(r"(?:^|\| |-m )((?:\./dev|hatchway)\b[^|#\n]*)", block.text, re.MULTILINE):
        program, *rest = shlex.split(command)
        if program == "hatchway" and (not rest or rest[0].startswith("-")):
            rest = [rest[0] if rest and rest[0] in known[program] else "run"]  # without a command it is the agent
        assert rest, command
        assert rest[0] in known[program], command


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(REPO)))
def test_links_lead_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    targets = [t.partition("#")[0] for t in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in t]
    assert [t for t in targets if t and not (page.parent / t).exists()] == []


def test_the_help_on_the_page_is_what_the_commands_print() -> None:
    page = (REPO / "docs" / "cli.md").read_text(encoding="utf-8")
    help_page = runpy.run_path(str(REPO / "docs" / "cli_help.py"))
    assert page == help_page["rendered"](page), "run ./dev docs"
    assert re.findall(r"<!-- help: hatchway (\w+) -->", page) == list(COMMANDS)


@pytest.mark.usefixtures("agent_jail")
def test_the_picture_is_what_the_agent_shows() -> None:
    rendered = runpy.run_path(str(REPO / "docs" / "agent_picture.py"))["rendered"]
    assert (REPO / "docs" / "agent.svg").read_text(encoding="utf-8") == asyncio.run(rendered()), "run ./dev docs"


def test_there_is_code_to_run() -> None:
    pages = {block.page for block in PYTHON}
    assert {
        "README.md",
        "docs/quickstart.md",
        "docs/tools.md",
        "docs/approval.md",
        "docs/executors.md",
        "docs/packages.md",
        "docs/sandboxes.md",
        "docs/transports.md",
    } <= pages
