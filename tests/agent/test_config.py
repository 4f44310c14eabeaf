"""The settings of a workspace: made from templates, read with the line of each mistake, without any key."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hatchway.agent.config import Config, init_config
from hatchway.core.errors import InvalidSetting
from hatchway.tools.mcp.settings import server_settings


def written(folder: Path, text: str) -> Path:
    path = folder / ".hatchway" / "config.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_the_folder_is_made_whole_and_nothing_in_it_is_overwritten(tmp_path: Path) -> None:
    made = {str(path.relative_to(tmp_path)) for path in init_config(tmp_path)}
    skills = ("output-parsers", "saving-codeacts", "task-planning")
    assert {".hatchway/config.json", ".hatchway/permissions.json"} <= made
    assert {f".hatchway/skills/{name}/SKILL.md" for name in skills} <= made
    assert (tmp_path / ".hatchway" / "plans").is_dir()
    assert init_config(tmp_path) == []
    (tmp_path / ".hatchway" / "config.json").write_text('{"tool-search": "hybrid"}')
    (tmp_path / ".hatchway" / "permissions.json").unlink()
    (tmp_path / ".hatchway" / "skills" / "task-planning" / "SKILL.md").unlink()
    again = [str(path.relative_to(tmp_path)) for path in init_config(tmp_path)]
    assert again == [".hatchway/permissions.json", ".hatchway/skills/task-planning/SKILL.md"]
    assert Config(tmp_path).tool_search == "hybrid"


def test_a_file_behind_a_link_and_a_dangling_link_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.json").write_text('{"model": "test:x"}')
    (tmp_path / ".hatchway").mkdir()
    (tmp_path / ".hatchway" / "config.json").symlink_to("../elsewhere.json")
    (tmp_path / ".hatchway" / "permissions.json").symlink_to("../not-there.json")
    init_config(tmp_path)
    assert Config(tmp_path).model == "test:x"
    assert not (tmp_path / "not-there.json").exists()


def test_processes_that_start_at_once_make_one_folder(tmp_path: Path) -> None:
    code = "import sys; from hatchway.agent.config import Config, init_config; from pathlib import Path\n"
    code += "where = Path(sys.argv[1]); init_config(where); Config(where)"
    made = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path)]) for _ in range(4)]
    assert [each.wait(60) for each in made] == [0, 0, 0, 0]
    assert [path for path in (tmp_path / ".hatchway").rglob(".*.*") if path.name != ".gitignore"] == []


def test_what_is_no_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / ".hatchway").write_text("x")
    with pytest.raises(InvalidSetting, match=r"\.hatchway.* cannot be made: (File exists|Not a directory)"):
        init_config(tmp_path)


def test_loading_and_making_need_no_key_no_folder_and_no_model_library(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from hatchway.agent.config import Config, init_config\n"
        "where = Path(sys.argv[1]); before = Config(where); init_config(where); after = Config(where)\n"
        "assert before.model is after.model is None and not before.skills_metadata\n"
        "assert 'pydantic_ai' not in sys.modules and 'mcp' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], env={"PATH": os.environ["PATH"]}, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_settings_of_the_seed_and_ours(tmp_path: Path) -> None:
    told = {
        "tool-search": "hybrid",
        "mcp-servers": {"files": {"command": "npx", "args": ["x"], "excluded_tools": ["read_*"]}},
        "ptc-servers": {"web": {"url": "https://x.example/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}},
        "model": "anthropic:claude-sonnet-5",
        "model-settings": {"temperature": 0.1},
        "sandbox": "jail",
        "sandbox-config": {"network": {"allowedDomains": ["example.org"]}},
        "execution-timeout": None,
        "approval-timeout": 30,
    }
    written(tmp_path, json.dumps(told))
    config = Config(tmp_path)
    assert config.mcp_servers == told["mcp-servers"]
    assert config.ptc_servers == told["ptc-servers"]
    assert (config.model, config.model_settings) == ("anthropic:claude-sonnet-5", {"temperature": 0.1})
    assert (config.sandbox, config.execution_timeout, config.approval_timeout) == ("jail", None, 30)
    assert config.sandbox_config.network.allowed_domains == ("example.org",)
    assert config.sandbox_config.filesystem.deny_read == (".env",)
    assert (config.hatchway_dir, config.plans_dir) == (tmp_path / ".hatchway", tmp_path / ".hatchway" / "plans")
    assert Config(tmp_path, model="openai:gpt-5").model == "openai:gpt-5"
    assert "pytools_search_tools" in config.system_prompt


def test_a_file_can_say_the_restrictions(tmp_path: Path) -> None:
    written(tmp_path, '{"sandbox-config": "walls.json"}')
    (tmp_path / "walls.json").write_text('{"filesystem": {"denyRead": ["x"]}}')
    files = Config(tmp_path).sandbox_config.filesystem
    assert files.deny_read == ("x",)
    assert str(tmp_path / "walls.json") in files.deny_write
    (tmp_path / "walls.json").write_text('{"filesystem":\n {"denyReed": ["x"]}}')
    with pytest.raises(InvalidSetting) as caught:
        Config(tmp_path)
    assert caught.value.message == (
        f"{tmp_path}/walls.json:2:3: filesystem.denyReed: no such setting; did you mean 'denyRead'?"
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"tool-serach": "basic"}', ":1:2: tool-serach: no such setting; did you mean 'tool-search'?"),
        ('{\n  "tool-search": "fuzzy"\n}', ":2:3: tool-search: Input should be 'basic' or 'hybrid', not 'fuzzy'"),
        ('{"tool-search": "basic",}', ":1:25: Expecting property name enclosed in double quotes"),
        ('{"tool-search": "basic"', ":1:24: Expecting ',' delimiter"),
        ('{"mcp-servers": {"a": {}}}', ":1:18: mcp-servers.a: an entry has either a command or a url"),
        (
            '{"ptc-servers": {"a": {\n "command": "x",\n "arg": ["y"]}}}',
            ":3:2: ptc-servers.a.arg: no such setting; did you mean 'args'?",
        ),
        (
            '{"ptc-servers": {"a": {"command": "x", "sandbox": {"red": ["y"]}}}}',
            ":1:52: ptc-servers.a.sandbox.red: no such setting; did you mean 'read'?",
        ),
        (
            '{"ptc-servers": {"a": {"command": "x", "args": ["y", 3]}}}',
            ":1:54: ptc-servers.a.args.1: Input should be a valid string, not 3",
        ),
        ('{"ptc-servers": {"a": 3}}', ":1:18: ptc-servers.a: Input should be a valid dictionary, not 3"),
        ('{"execution-timeout": 0}', ":1:2: execution-timeout: Input should be greater than 0, not 0"),
        ('{"model": ""}', ":1:2: model: String should have at least 1 character, not ''"),
        ('{"sandbox": {"x": 1}}', ":1:2: sandbox: Input should be a valid boolean"),
    ],
)
def test_a_mistake_has_its_file_line_and_column(tmp_path: Path, text: str, told: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InvalidSetting) as caught:
        Config(tmp_path)
    assert caught.value.message.splitlines()[0] == f"{path}{told}"


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, '{"tool-search": 1,\n "sandbox-config": 3,\n "modell": "x"}')
    with pytest.raises(InvalidSetting) as caught:
        Config(tmp_path)
    assert [line.removeprefix(f"{path}:").split(":")[0] for line in caught.value.message.splitlines()] == [
        "1",
        "2",
        "2",
        "3",
    ]


@pytest.mark.parametrize(
    "content", [b"\xff\xfe{}", b"\0" * 100, b"[" * 3_000_000, b'{"a":' * 100_000, b"x" * 5_000_000]
)
def test_rubbish_is_one_clear_error(tmp_path: Path, content: bytes) -> None:
    path = written(tmp_path, "")
    path.write_bytes(content)
    with pytest.raises(InvalidSetting, match=str(path)):
        Config(tmp_path)


def test_variables_are_filled_in_at_the_first_connection_and_missing_ones_named_together(tmp_path: Path) -> None:
    written(
        tmp_path,
        '{"ptc-servers": {"a": {"command": "x", "env": {"K": "${AN_ABSENT_KEY}"}, "timeout": "${SECONDS_ABSENT}"},'
        ' "b": {"url": "https://${HOST_ABSENT}/", "headers": {"A": "${OTHER:-none}"}}}}',
    )
    config = Config(tmp_path)
    with pytest.raises(InvalidSetting, match="AN_ABSENT_KEY, HOST_ABSENT, SECONDS_ABSENT"):
        server_settings(config.ptc_servers, {})
    known = {"AN_ABSENT_KEY": "k", "HOST_ABSENT": "h", "SECONDS_ABSENT": "5"}
    assert server_settings(config.ptc_servers, known)["a"].timeout == 5


def test_what_the_workspace_says_is_read_into_the_prompt(tmp_path: Path) -> None:
    init_config(tmp_path)
    assert "AGENTS.md" not in Config(tmp_path).system_prompt
    (tmp_path / "AGENTS.md").write_text("Tests run with `make`.\nLeave {skills} and {working_dir} alone.")
    prompt = Config(tmp_path).system_prompt
    assert prompt.endswith(
        "# What this workspace says (AGENTS.md)\n\nTests run with `make`.\nLeave {skills} and {working_dir} alone.\n"
    )
    assert f"Workspace: `{tmp_path}`." in prompt
    assert "(`.hatchway/skills/task-planning/SKILL.md`)" in prompt
    assert prompt == Config(tmp_path).system_prompt
    (tmp_path / "AGENTS.md").write_bytes(b"\xff" * 5_000_000)
    assert len(Config(tmp_path).system_prompt) < 80_000


def test_what_leads_out_of_the_workspace_or_to_a_secret_is_not_what_it_says(tmp_path: Path) -> None:
    place, said = tmp_path / "work", tmp_path / "work" / "AGENTS.md"
    place.mkdir()
    (place / ".env").write_text("KEY=1")
    (place / "CLAUDE.md").write_text("Tests run with `make`.")
    said.symlink_to("CLAUDE.md")
    assert "`make`" in Config(place).system_prompt
    for target in (".env", "/etc/passwd", tmp_path / "other"):
        said.unlink()
        said.symlink_to(target)
        config = Config(place)
        assert "What this workspace says" not in config.system_prompt
        assert config.warnings == [f"AGENTS.md left out: it is a link to {said.resolve()}"]
    said.unlink()
    os.mkfifo(said)
    assert Config(place).warnings == ["AGENTS.md left out: it is no regular file"]
    (place / ".env").unlink()
    os.mkfifo(place / ".env")
    assert Config(place).take_env_file() == []


def test_a_workspace_whose_name_is_a_mark_changes_nothing(tmp_path: Path) -> None:
    odd = tmp_path / "{skills}"
    odd.mkdir()
    init_config(odd)
    assert Config(odd).system_prompt.count("`task-planning`") == 1


def test_of_the_env_file_only_what_servers_name_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, '{"ptc-servers": {"a": {"command": "x", "env": {"K": "${A_HATCHWAY_KEY}", "P": "${PATH}"}}}}')
    (tmp_path / ".env").write_text("A_HATCHWAY_KEY=k\nPATH=/evil\nLD_PRELOAD=/evil.so\n")
    monkeypatch.setenv("A_HATCHWAY_KEY", "")
    monkeypatch.delenv("A_HATCHWAY_KEY")
    path = os.environ["PATH"]
    assert Config(tmp_path).take_env_file() == ["A_HATCHWAY_KEY"]
    assert (os.environ["A_HATCHWAY_KEY"], os.environ["PATH"]) == ("k", path)
    assert "LD_PRELOAD" not in os.environ
    assert Config(tmp_path).take_env_file() == []
