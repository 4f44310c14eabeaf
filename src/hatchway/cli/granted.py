"""Granted: the options that say where code runs and what it may use, the same for `exec` and `resume`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hatchway.cli.options import packages_option, tools_option

if TYPE_CHECKING:
    from hatchway.core.sandbox import CodeSandbox
    from hatchway.tools.functions import Tool

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    tools_option,
    click.option("--image", metavar="NAME", help="The image of --sandbox container; it must be there."),
    click.option("--engine", metavar="NAME", help="The engine of --sandbox container: docker, podman or nerdctl."),
    packages_option,
    click.option("--images", metavar="DIR", help="Write pictures and tables the code shows into this folder."),
)


def granted_options(command: F) -> F:
    """The options themselves, in the order in which help shows them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def offered_tools(sources: Sequence[str]) -> list[Tool | Callable[..., Any]]:
    """The tools of all modules that were named."""
    from hatchway.cli.tool_modules import load_tools

    return [tool for source in sources for tool in load_tools(source)]


def granted_sandbox(sandbox: str, packages: tuple[str, ...], **settings: str | None) -> CodeSandbox | str:
    """The sandbox with what it is given, or its name when it is given nothing."""
    if ":" in sandbox:
        from hatchway.cli.tool_modules import import_from_here

        import_from_here()
    given: dict[str, Any] = {name: value for name, value in settings.items() if value is not None}
    if packages:
        from hatchway.sandboxes.packages import Packages

        given["packages"] = Packages(packages, on_progress=lambda line: click.echo(f"packages: {line}", err=True))
    if not given and sandbox != "container":
        return sandbox
    from hatchway.sandboxes.registry import make_sandbox

    if sandbox == "container":
        given["spares"] = 0  # one action needs no container beside its own
    return make_sandbox(sandbox, **given)
