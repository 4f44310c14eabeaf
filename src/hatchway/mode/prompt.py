"""The prompt: what a model must know to write code for a sandbox, built from flags and stubs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Literal

from hatchway.core.constraints import CodeConstraints

MOST_PACKAGES = 60
"""Packages named in a prompt."""
MOST_CATEGORIES = 40
"""Categories of tools named in a prompt."""
_SHAPE = "(TypedDict"
"""How a class in a stub begins that says what a dict is like."""


def build_code_mode_prompt(
    *, signatures: Sequence[str], constraints: CodeConstraints, state: Literal["fresh", "kept"] | None = None
) -> str:
    """Instructions for writing code actions.

    Args:
        signatures: The tools' stubs; each text is listed once, in this order.
        constraints: What Python the sandbox runs.
        state: Whether names last from action to action; None says nothing of it.

    Returns:
        The same bytes for the same arguments, so that prompt caches hold.
    """
    tools = "\n\n".join(dict.fromkeys(text.strip() for text in signatures if text.strip()))
    parts = [
        _text("intro") + (f"\n{_text(state)}" if state else ""),
        _python(constraints),
        constraints.additional_instructions.strip(),
        _text("tools").format(stubs=tools) if tools else _text("no_tools"),
        _text("shapes") if _SHAPE in tools else "",
    ]
    return "\n\n".join(part for part in parts if part)


def discovery_note(categories: Mapping[str, int]) -> str:
    """What a model must know where most tools are found and not listed; the same bytes for the same categories."""
    shown = [f"{name} ({number})" for name, number in sorted(categories.items())]
    more = len(shown) - MOST_CATEGORIES
    named = ", ".join(shown[:MOST_CATEGORIES]) + (f" and {more} more" if more > 0 else "")
    return _text("discovery").format(categories=named or "none yet")


def _python(constraints: CodeConstraints) -> str:
    lacking = [rule for flag, rule in _restrictions().items() if not getattr(constraints, flag)]
    lines = [_text("restricted"), *lacking, "\nAbout the rest:"] if lacking else [_text("full")]
    if constraints.modules is not None:
        lines.append(f"- Import only: {', '.join(constraints.modules)}.")
    if constraints.packages:
        lines.append(f"- Installed packages: {_named(constraints.packages)}.")
    if not constraints.network:
        lines.append(_text("no_network"))
    if constraints.displays:
        lines.append(_text("displays"))
    return "\n".join(lines)


def _named(packages: Sequence[str]) -> str:
    """The packages in one line; of a large environment only the first."""
    more = len(packages) - MOST_PACKAGES
    return ", ".join(packages[:MOST_PACKAGES]) + (f" and {more} more" if more > 0 else "")


@cache
def _restrictions() -> dict[str, str]:
    """Flag → what to tell a model when the flag is off, one per line of `restrictions.md`."""
    pairs = (line.split(": ", 1) for line in _text("restrictions").splitlines() if line.startswith("supports_"))
    return {flag: f"- {rule}" for flag, rule in pairs}


@cache
def _text(name: str) -> str:
    return files("hatchway.mode").joinpath("prompts", f"{name}.md").read_text(encoding="utf-8").strip()
