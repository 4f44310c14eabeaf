"""`hatchway exec`: run one file of Python as an action."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import IO, TYPE_CHECKING, Any

import click

from hatchway.cli.exits import MEANING
from hatchway.cli.options import sandbox_option, yes_option

if TYPE_CHECKING:
    from hatchway.cli.report import Report
    from hatchway.core.sandbox import CodeSandbox
    from hatchway.mode.mode import CodeMode

HELP = """Run FILE in a sandbox, its tool calls through the gate; '-' reads the code from stdin.

What the code prints goes to stdout, the value of its last expression follows; calls and questions go to stderr.

\b
Exit codes:
"""
CODES = "\n".join(f"  {code.value:>3}  {meaning}" for code, meaning in MEANING.items())


@click.command("exec", help=HELP + CODES)
@click.argument("file", type=click.File("rb"))
@click.option("--tools", multiple=True, metavar="MODULE|FILE.py", help="Offer the functions in it to the code.")
@sandbox_option
@click.option("--image", metavar="NAME", help="The image of --sandbox container; it must be there.")
@click.option("--engine", metavar="NAME", help="The engine of --sandbox container: docker, podman or nerdctl.")
@click.option("--packages", multiple=True, metavar="NAME", help="Let the code import it, such as 'pandas==2.*'.")
@click.option("--images", metavar="DIR", help="Write pictures and tables the code shows into this folder.")
@yes_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=30.0,
    metavar="SECONDS",
    show_default=True,
    help="Time the code itself may take.",
)
@click.pass_context
def exec_(
    ctx: click.Context,
    file: IO[bytes],
    tools: tuple[str, ...],
    sandbox: str,
    image: str | None,
    engine: str | None,
    packages: tuple[str, ...],
    images: str | None,
    yes: bool,
    as_json: bool,
    timeout: float,
) -> None:
    """Run one file of Python as an action."""
    # imported here: completion and --help read this file too, and stay quick
    from hatchway.cli.pictures import Pictures
    from hatchway.cli.report import JsonReport, TextReport
    from hatchway.cli.tool_modules import import_from_here, load_tools
    from hatchway.core.limits import Limits
    from hatchway.mode.mode import CodeMode

    if ":" in sandbox:
        import_from_here()
    pictures = Pictures(images)
    report = JsonReport(pictures) if as_json else TextReport(pictures)
    with report:
        code = _source(file)
        offered = [tool for source in tools for tool in load_tools(source)]
        where = _granted(sandbox, packages, image=image, engine=engine)
        mode = CodeMode(where, tools=offered, limits=Limits(wall_seconds=timeout))
        asyncio.run(_run(where, mode, code, report, yes=yes, stdin_is_code=file.name == "<stdin>"))
    ctx.exit(report.exit)


def _source(file: IO[bytes]) -> str:
    try:
        return file.read().decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise click.UsageError(f"{file.name} is not UTF-8: byte 0x{e.object[e.start]:02x} at {e.start}") from None


def _granted(sandbox: str, packages: tuple[str, ...], **settings: str | None) -> CodeSandbox | str:
    """The sandbox with what it is given, or its name when it is given nothing."""
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


async def _run(
    where: CodeSandbox | str, mode: CodeMode, code: str, report: Report, *, yes: bool, stdin_is_code: bool
) -> None:
    from hatchway.cli.prompt import asking, drive, nobody

    async with nullcontext() if isinstance(where, str) else where, mode:
        with asking(yes=yes, otherwise=nobody, stdin_is_code=stdin_is_code) as ask:
            await drive(mode, code, report.take, ask)
