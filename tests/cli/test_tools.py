"""`hatchway tools`: what servers offer, on the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from hatchway.cli.main import cli

ODD = str(Path(__file__).parents[1] / "tools" / "mcp" / "odd_server.py")


def run(*args: str) -> str:
    done = CliRunner().invoke(cli, ["tools", *args])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_list_search_describe_and_generate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mcp.json").write_text(json.dumps({"mcpServers": {"odd": {"command": sys.executable, "args": [ODD]}}}))
    assert "odd.echo" in run("list")
    assert json.loads(run("search", "echo", "--limit", "1", "--json"))[0]["name"] == "odd.echo"
    assert "def echo(text: str) -> Any:" in run("describe", "odd.echo")
    assert run("generate") == "19 files written, 0 unchanged, 0 removed\n"
    assert run("generate") == "0 files written, 19 unchanged, 0 removed\n"
    assert (tmp_path / "mcptools" / "odd" / "echo.py").is_file()


def test_what_goes_wrong_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mcp.json").write_text(json.dumps({"mcpServers": {"gone": {"command": "no-such-program"}}}))
    done = CliRunner().invoke(cli, ["tools", "list"])
    assert done.exit_code != 0
    assert done.stderr.startswith("Error: MCP server 'gone': 'no-such-program' cannot be started")
