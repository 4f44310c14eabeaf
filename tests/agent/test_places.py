"""Where the code of an agent works, what it may import there, and the servers it may call as the seed's programs do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hatchway.agent import Agent, CodeExecutionOutput, ToolOutput
from hatchway.agent.config import Config, init_config
from hatchway.core.errors import InvalidSetting
from hatchway.testing import Reply, ScriptedAgentModel
from hatchway.tools.apigen import generate_mcp_sources

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("agent_jail"),
]
SERVERS = (
    f'{{"ptc-servers": {{"clock": {{"command": "{sys.executable}", '
    '"args": ["-m", "mcp_server_time", "--local-timezone", "UTC"]}}}'
)
CONVERT = (
    "from mcptools.clock.convert_time import Params, run\n"
    "run(Params(source_timezone='UTC', time='12:00', target_timezone='Asia/Tokyo'))['target']['datetime'][11:16]"
)


@pytest.mark.parametrize("sandbox", ["jail", "process"])
async def test_a_program_like_the_seeds_calls_servers_of_the_settings_it_loaded(
    sandbox: str, tmp_path: Path, watch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    init_config()
    Path(".hatchway/config.json").write_text(SERVERS)
    config = Config(model=ScriptedAgentModel([Reply(code=CONVERT), "done"]))
    for name, params in config.ptc_servers.items():
        await generate_mcp_sources({name: params})
    async with Agent(
        model=config.model,  # type: ignore[arg-type]
        model_settings=config.model_settings,
        system_prompt=config.system_prompt,
        mcp_servers=config.mcp_servers,
        sandbox=sandbox,
    ) as agent:
        events = await watch(agent.stream("What time is it there?"))
    assert watch.only(CodeExecutionOutput, events)[0].text == "'21:00'"
    assert [event.tool_name for event in watch.only(ToolOutput, events)] == ["clock.convert_time"]


async def test_a_folder_starts_no_command_before_somebody_loads_its_settings(tmp_path: Path, watch: Any) -> None:
    (tmp_path / ".hatchway").mkdir()
    (tmp_path / ".hatchway" / "config.json").write_text(SERVERS.replace(sys.executable, str(tmp_path / "absent")))
    async with Agent(ScriptedAgentModel(["hello"]), working_dir=tmp_path) as agent:
        assert "clock.convert_time" not in agent.offered
    Config(tmp_path)
    async with Agent(ScriptedAgentModel(["hello"]), working_dir=tmp_path, ptc_servers={}) as agent:
        assert "clock.convert_time" not in agent.offered


@pytest.mark.parametrize("sandbox", ["jail", "process"])
async def test_code_works_in_the_workspace_and_imports_its_modules(sandbox: str, tmp_path: Path, watch: Any) -> None:
    (tmp_path / "own.py").write_text("X = 5")
    code = "import os, own\nopen('made.txt', 'w').write('x')\n[os.getcwd(), own.X]"
    async with Agent(ScriptedAgentModel([Reply(code=code), "done"]), working_dir=tmp_path, sandbox=sandbox) as agent:
        events = await watch(agent.stream("go"))
    assert watch.only(CodeExecutionOutput, events)[0].result.output == [str(tmp_path), 5]
    assert (tmp_path / "made.txt").read_text() == "x"


async def test_packages_of_an_environment_are_imported_and_never_written(tmp_path: Path, watch: Any) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / ".venv"], check=True)
    [site] = (tmp_path / ".venv").glob("lib/python3*/site-packages")
    (site / "greeting.py").write_text("HELLO = 'hello'")
    (tmp_path / ".hatchway").mkdir()
    (tmp_path / ".hatchway" / "config.json").write_text('{"python": ".venv/bin/python"}')
    config = Config(tmp_path)
    assert (config.python, config.packages) == (tmp_path / ".venv/bin/python", ())
    code = (
        "import greeting, os\nseen = [greeting.HELLO]\n"
        "for attempt in (lambda: open(greeting.__file__, 'a'), lambda: os.rename('.venv', 'v'),\n"
        "                lambda: os.unlink('.venv/bin/python')):\n"
        "    try:\n        attempt()\n    except OSError as e:\n        seen.append('no')\nseen"
    )
    model = ScriptedAgentModel([Reply(code=code), "done"])
    async with Agent(model, working_dir=tmp_path, python=config.python, packages=config.packages) as agent:
        events = await watch(agent.stream("go"))
    assert watch.only(CodeExecutionOutput, events)[0].result.output == ["hello", "no", "no", "no"]


async def test_restrictions_that_say_nothing_go_with_every_sandbox(tmp_path: Path) -> None:
    config = Config(tmp_path)
    async with Agent(
        ScriptedAgentModel(["hello"]), working_dir=tmp_path, sandbox="monty", sandbox_config=config.sandbox_config
    ):
        pass
    (tmp_path / "only.json").write_text('{"filesystem": {"denyWrite": ["x"]}}')
    with pytest.raises(InvalidSetting, match="sandbox_config is for the jail, not for 'monty'"):
        await Agent(
            ScriptedAgentModel(["hello"]),
            working_dir=tmp_path,
            sandbox="monty",
            sandbox_config=tmp_path / "only.json",
        ).start()
