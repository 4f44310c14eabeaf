"""What code at each vendor can do, read off today's SDKs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Literal

from hatchway.hosted.code import Provider


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """One vendor's code tool."""

    calls_client_tools: Literal["javascript", "python"] | None
    """The language in which its code may call our tools; None: it cannot."""
    container: bool
    """Whether a container can be named and used again."""
    memory_tiers: tuple[str, ...] = ()
    network_policy: bool = False
    files_in: Literal["container", "message", "inline"]
    """How files get there: into the container, by a word in the message, or as a part of it."""
    files_out: bool
    """Whether files the code made can be downloaded."""
    images: Literal["output", "file", "inline"]
    """How pictures come back."""
    separate_streams: bool
    """Whether stdout and stderr are told apart."""
    exit_code: bool
    says_success: bool
    """Whether it says that Python code went well; otherwise success is None."""
    streams_code: bool
    """Whether code comes as it is written."""
    round_trips: tuple[str, ...]
    """Opaque fields that must be sent back."""


CAPABILITIES: Mapping[Provider, Capabilities] = {
    "openai": Capabilities(
        calls_client_tools="javascript",
        container=True,
        memory_tiers=("1g", "4g", "16g", "64g"),
        network_policy=True,
        files_in="container",
        files_out=True,
        images="output",
        separate_streams=False,
        exit_code=False,
        says_success=False,
        streams_code=True,
        round_trips=("fingerprint", "encrypted_content"),
    ),
    "anthropic": Capabilities(
        calls_client_tools="python",
        container=True,
        files_in="message",
        files_out=True,
        images="file",
        separate_streams=True,
        exit_code=True,
        says_success=True,
        streams_code=True,
        round_trips=("encrypted_stdout", "signature"),
    ),
    "gemini": Capabilities(
        calls_client_tools=None,
        container=False,
        files_in="inline",
        files_out=False,
        images="inline",
        separate_streams=False,
        exit_code=False,
        says_success=True,
        streams_code=False,
        round_trips=("thoughtSignature",),
    ),
}


def capability_table() -> str:
    """The capabilities as a Markdown table, one row each."""
    lines = ["| | " + " | ".join(CAPABILITIES) + " |", "|---" * (len(CAPABILITIES) + 1) + "|"]
    for each in fields(Capabilities):
        cells = [_cell(getattr(known, each.name)) for known in CAPABILITIES.values()]
        lines.append(f"| {each.name.replace('_', ' ')} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(value: object) -> str:
    match value:
        case None | False | ():
            return "no"
        case True:
            return "yes"
        case tuple():
            return ", ".join(map(str, value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        case _:
            return str(value)
