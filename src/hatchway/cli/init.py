"""`hatchway init`: make the agent's folder in a workspace."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, exists=True, path_type=Path), default=Path())
def init(folder: Path) -> None:
    """Make .hatchway/ here: settings, permissions, skills.

    What is there already is left as it is. It needs no key and no network.
    """
    from hatchway.agent.config import init_config
    from hatchway.cli.display import neutral

    made = init_config(folder)
    home = folder.resolve()
    for path in made:
        click.echo(f"made {neutral(str(path.relative_to(home)))}")
    click.echo(
        "Settings are in .hatchway/config.json. Start with: hatchway" if made else "Everything was there already."
    )
