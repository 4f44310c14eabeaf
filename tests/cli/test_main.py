"""The command itself: its table, its help, its completion."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.shell_completion import ShellComplete

from hatchway import __version__
from hatchway.cli.main import COMMANDS, cli
from hatchway.sandboxes.registry import ROWS


def test_help_names_every_command(hatchway: Any) -> None:
    ran = hatchway("--help")
    assert ran.returncode == 0
    rows = re.findall(r"^  (\w+)", ran.stdout.partition("Commands:\n")[2], re.MULTILINE)
    assert rows == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_row_leads_to_the_command_it_describes(name: str) -> None:
    command = cli.get_command(click.Context(cli, **cli.context_settings), name)
    assert command is not None
    assert command.name == name
    assert (command.help or "").startswith(COMMANDS[name].help.rstrip("."))


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom hatchway.cli.main import main\nsys.argv = ['hatchway', '--help']\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print(sorted({'rich', 'pydantic', 'pydantic_core', 'asyncio', 'anyio', 'ssl'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=30)
    assert ran.stdout.splitlines()[-1] == "[]"


def test_version(hatchway: Any) -> None:
    assert hatchway("--version").stdout == f"hatchway {__version__}\n"


def test_a_wrong_command_is_a_usage_error(hatchway: Any) -> None:
    ran = hatchway("exce")
    assert ran.returncode == 2
    assert "No such command 'exce'. Did you mean exec?" in ran.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_the_script_and_its_place(hatchway: Any, shell: str) -> None:
    ran = hatchway("completion", shell)
    assert ran.returncode == 0
    assert "_HATCHWAY_COMPLETE" in ran.stdout
    assert ran.stdout.splitlines()[-1].startswith("# Save this as ")


def test_an_unknown_shell_is_a_usage_error(hatchway: Any) -> None:
    assert hatchway("completion", "tcl").returncode == 2


@pytest.mark.parametrize(
    ("args", "incomplete", "expected"),
    [
        ([], "", list(COMMANDS)),
        ([], "co", ["conversations", "conformance", "completion"]),
        (["exec"], "--sa", ["--sandbox"]),
        (["exec", "--sandbox"], "", ["auto", *ROWS]),
        (["conformance"], "mo", ["monty"]),
    ],
)
def test_tab_completes(args: list[str], incomplete: str, expected: list[str]) -> None:
    complete = ShellComplete(cli, {}, "hatchway", "_HATCHWAY_COMPLETE")
    assert [item.value for item in complete.get_completions(args, incomplete)] == expected


def test_bash_itself_accepts_the_script(hatchway: Any) -> None:
    script = hatchway("completion", "bash").stdout
    ran = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, timeout=30)
    assert (ran.stderr, ran.returncode) == ("", 0)


def test_a_terminal_without_unicode_does_not_end_a_run(hatchway: Any) -> None:
    ran = hatchway("doctor", PYTHONIOENCODING="ascii")
    assert "\\u2713 usable" in ran.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_output_that_cannot_be_written_is_told_in_one_line(hatchway: Any) -> None:
    command = [sys.executable, "-m", "hatchway", "exec", "-", "--no-journal", "--sandbox", "process"]
    with open("/dev/full", "w") as full:
        ran = subprocess.run(command, input=b"print(1)", stdout=full, stderr=subprocess.PIPE, cwd=hatchway.cwd)
    told = b"Error: the output cannot be written: No space left on device\n"
    assert (ran.returncode, ran.stderr) == (1, told)
