"""Skills after agentskills.io: good ones are listed, bad ones are told and left out."""

import asyncio
import os
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from hatchway import CodeMode, Rule
from hatchway.agent.config import Config, init_config
from hatchway.agent.sandbox_config import SandboxConfig, sandbox_settings
from hatchway.agent.skills import find_skills, read_skill
from hatchway.core.errors import InvalidSetting
from hatchway.sandboxes.registry import make_sandbox
from hatchway.tools.apigen import generate_mcp_sources
from hatchway.tools.gentools import save_tool_tool


def skill(folder: Path, name: str, text: str) -> Path:
    path = folder / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


def test_the_head_is_read_at_start_and_the_body_when_it_is_used(tmp_path: Path) -> None:
    path = skill(
        tmp_path, "pdf-forms",
        "---\nname: pdf-forms\ndescription: >\n  Fills forms.\n  Use for PDFs.\nlicense: MIT\ncompatibility: needs uv\n"
        "metadata:\n  author: ann\n  version: 1.0\nallowed-tools: Bash(git:*) Read\nmodel: any\n"
        "---\n\n# Steps\n\n---\nOne.\n",
    )  # fmt: skip
    (path.parent / "scripts").mkdir()
    (path.parent / "scripts" / "fill.py").write_text("x")
    (path.parent / "escape").symlink_to("/etc/passwd")
    [found], warnings = find_skills([tmp_path])
    assert warnings == []
    assert (found.name, found.description, found.path) == ("pdf-forms", "Fills forms. Use for PDFs.", path)
    assert (found.license, found.compatibility, found.allowed_tools) == ("MIT", "needs uv", ("Bash(git:*)", "Read"))
    assert found.metadata == {"author": "ann", "version": "1.0"}
    assert found.body() == "# Steps\n\n---\nOne."
    assert found.resources() == [Path("scripts/fill.py")]
    path.write_text(path.read_text().replace("One.", "Two."))
    assert found.body().endswith("Two.")


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a", "# no head", ": it does not begin with a head between two lines of ---"),
        ("a", "---\nname: a\n", ": it does not begin with a head between two lines of ---"),
        ("a", "---\nname: [\n---\n", ":3:1: its head is no YAML: "),
        ("a", "---\njust text\n---\n", ": its head has no name and no description"),
        ("a", "---\nname: a\n---\n", ": it has no description"),
        ("a", "---\ndescription: x\n---\n", ": it has no name"),
        ("a", "---\nname: 3\ndescription: 4\n---\n", ": it has no name; it has no description"),
        ("a", "---\nname: b\ndescription: x\n---\n", ": its name is 'b', its folder's is 'a': they must be the same"),
        ("A", "---\nname: A\ndescription: x\n---\n", ": the name 'A' is not lowercase letters"),
        ("a--b", "---\nname: a--b\ndescription: x\n---\n", ": the name 'a--b' is not lowercase letters"),
        ("-a", "---\nname: -a\ndescription: x\n---\n", ": the name '-a' is not lowercase letters"),
        ("a_b", "---\nname: a_b\ndescription: x\n---\n", ": the name 'a_b' is not lowercase letters"),
        (
            "a" * 65,
            f"---\nname: {'a' * 65}\ndescription: x\n---\n",
            f": the name '{'a' * 65}' is not lowercase letters",
        ),
        ("a", f"---\nname: a\ndescription: {'x' * 1025}\n---\n", ": its description has 1025 characters"),
        ("a", f"---\nname: a\ndescription: x\ncompatibility: {'x' * 501}\n---\n", ": compatibility has more than 500"),
        ("a", "---\nname: a\ndescription: x\nmetadata: [1]\n---\n", ": metadata is not a mapping"),
        ("a", "---\nname: !!python/object/apply:os.system [x]\n---\n", ":2:7: its head is no YAML: "),
    ],
)
def test_a_bad_skill_is_told_and_left_out(tmp_path: Path, name: str, text: str, told: str) -> None:
    bad = skill(tmp_path, name, text)
    skill(tmp_path, "good", "---\nname: good\ndescription: x\n---\n")
    found, warnings = find_skills([tmp_path])
    assert [each.name for each in found] == ["good"]
    assert len(warnings) == 1
    assert warnings[0].startswith(f"skill left out: {bad}{told}")
    with pytest.raises(InvalidSetting):
        read_skill(bad)


def test_rubbish_is_left_out(tmp_path: Path) -> None:
    for n, content in enumerate(
        (b"", b"---\n" + b"\xff" * 5_000_000, b"---\n" + b"- " * 30_000 + b"\n---\n", b"\0" * 99)
    ):
        skill(tmp_path, f"s{n}", "").write_bytes(content)
    skill(tmp_path, "is-folder", "").unlink()
    (tmp_path / "is-folder" / "SKILL.md").mkdir()
    found, warnings = find_skills([tmp_path, tmp_path / "none"])
    assert (found, len(warnings)) == ([], 5)


def test_of_two_skills_of_a_name_the_agents_own_counts(tmp_path: Path) -> None:
    init_config(tmp_path)
    skill(tmp_path / ".agents" / "skills", "task-planning", "---\nname: task-planning\ndescription: other\n---\n")
    skill(tmp_path / ".agents" / "skills", "more", "---\nname: more\ndescription: for all agents\n---\n")
    config = Config(tmp_path)
    assert [each.name for each in config.skills_metadata] == [
        "more",
        "output-parsers",
        "saving-codeacts",
        "task-planning",
    ]
    assert config.skills_metadata[3].path.is_relative_to(tmp_path / ".hatchway")
    assert len(config.warnings) == 1
    assert "there is one of this name in" in config.warnings[0]


def test_the_bundled_skills_are_good_and_name_what_is_there(tmp_path: Path) -> None:
    init_config(tmp_path)
    config = Config(tmp_path)
    assert config.warnings == []
    planning = config.skills_metadata[2]
    assert planning.resources() == [Path("assets/plan.md")]
    assert "assets/plan.md" in planning.body()


@pytest.mark.usefixtures("agent_jail")
def test_code_is_saved_as_the_bundled_skills_say(tmp_path: Path) -> None:
    """In the real sandbox, with a real server: a tool that imports from mcptools, saved and used in the next action."""
    servers = {"time": {"command": sys.executable, "args": ["-m", "mcp_server_time", "--local-timezone", "UTC"]}}
    saving = '''
code = """
from typing import TypedDict

from mcptools.time.get_current_time import Params, run as now


class Now(TypedDict):
    zone: str


def parse(told: dict) -> Now:
    return {"zone": told["timezone"]}


def run(zone: str = "UTC") -> Now:
    \\"\\"\\"The name of a zone, as the server spells it.\\"\\"\\"
    return parse(now(Params(timezone=zone)))
"""
save_tool(name="zone_parsed", code=code, category="time")
'''

    async def main() -> tuple[object, object]:
        await generate_mcp_sources(servers, tmp_path)
        sandbox = make_sandbox("jail", **sandbox_settings(SandboxConfig(), tmp_path))
        rules = [Rule("allow", "time.*"), Rule("allow", "save_tool")]
        async with (
            sandbox,
            CodeMode(sandbox, tools=[save_tool_tool(tmp_path)], mcp_servers=servers, rules=rules) as mode,
            mode.session() as session,
        ):
            said = (await session.run(saving)).output
            return said, (await session.run(f"{said}\nrun('Europe/Vienna')")).output

    said, got = asyncio.run(main())
    assert said == "from gentools.time.zone_parsed import run"
    assert got == {"zone": "Europe/Vienna"}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("license: *i", "license is no text"),
        ("compatibility: *i", "compatibility is no text"),
        ("allowed-tools: *i", "allowed-tools is neither a text nor a list of texts"),
        ("metadata: {k: *i}", "metadata is not a mapping to texts"),
    ],
)
def test_a_head_that_stands_for_billions_of_words_is_not_written_out(tmp_path: Path, line: str, told: str) -> None:
    lists = ["a: &a [x,x,x,x,x,x,x,x,x]"]
    lists += [f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]" for a, b in pairwise("abcdefghi")]
    path = skill(tmp_path, "x", "---\nname: x\ndescription: d\n" + "\n".join([*lists, line]) + "\n---\nbody")
    assert find_skills([tmp_path]) == ([], [f"skill left out: {path}: {told}"])


def test_a_pipe_is_no_skill_and_control_characters_are_no_description(tmp_path: Path) -> None:
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "SKILL.md")
    skill(tmp_path, "x", '---\nname: x\ndescription: "Red \\e[31m and \\u202e back"\n---\n')
    [found], [warning] = find_skills([tmp_path])
    assert found.description == "Red [31m and back"
    assert warning == f"skill left out: {tmp_path}/pipe/SKILL.md cannot be read: it is no regular file"
