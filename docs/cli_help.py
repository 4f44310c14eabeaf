"""Writes the help of every command into docs/cli.md, between the markers; a test checks that it is up to date."""

import re
from pathlib import Path

import click

from hatchway.cli.main import cli

PAGE = Path(__file__).with_name("cli.md")
BLOCK = re.compile(r"(<!-- help: ([a-z ]*) -->\n).*?(<!-- end -->)", re.DOTALL)


def rendered(page: str) -> str:
    """The page with the help as the commands print it today."""
    return BLOCK.sub(lambda m: f"{m[1]}```text\n{help_of(m[2])}\n```\n{m[3]}", page)


def help_of(words: str) -> str:
    """What `hatchway WORDS --help` prints on a terminal of 80 columns."""
    context = click.Context(cli, info_name="hatchway", terminal_width=80, color=False, **cli.context_settings)
    command: click.Command = cli
    for word in words.split()[1:]:
        assert isinstance(command, click.Group), word
        found = command.get_command(context, word)
        assert found is not None, word
        command, context = found, click.Context(found, info_name=word, parent=context, terminal_width=80, color=False)
    return command.get_help(context)


if __name__ == "__main__":
    PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
