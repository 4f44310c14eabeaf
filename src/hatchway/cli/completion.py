"""`hatchway completion`: the shell's completion script, and where to put it."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

PLACES = {
    "bash": "~/.local/share/bash-completion/completions/hatchway",
    "zsh": "a directory of your $fpath, as _hatchway (for example ~/.zfunc/_hatchway)",
    "fish": "~/.config/fish/completions/hatchway.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(list(PLACES)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of your shell; its last line says where to put it."""
    kind = get_completion_class(shell)
    assert kind is not None, shell
    script = kind(ctx.find_root().command, {}, "hatchway", "_HATCHWAY_COMPLETE")
    # not script.source(): it starts bash to look at its version
    click.echo((script.source_template % script.source_vars()).strip())
    click.echo(f"\n# Save this as {PLACES[shell]}")
