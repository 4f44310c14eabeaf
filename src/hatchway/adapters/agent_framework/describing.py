"""Describing: what a model must know about `execute_code`, said once, in the tool's own description."""

from __future__ import annotations

from collections.abc import Sequence

from hatchway.adapters.agent_framework.registry import Snapshot
from hatchway.core.constraints import CodeConstraints
from hatchway.mode.prompt import build_code_mode_prompt
from hatchway.tools.functions import Tool
from hatchway.tools.stubs import render_stubs


def description(snapshot: Snapshot, tools: Sequence[Tool], constraints: CodeConstraints) -> str:
    """The Python there is, the functions, and what the code can reach."""
    stubs = render_stubs(tools, "async") if tools else ""
    return build_code_mode_prompt(signatures=[stubs], constraints=constraints, state="fresh") + _reach(snapshot)


def _reach(snapshot: Snapshot) -> str:
    lines = [f"- Read-only: {mount.mount_path}" for mount in snapshot.mounts]
    if lines:
        lines.append("- Files you write to /output are handed back, where the sandbox has one.")
    lines += [
        f"- Network: {domain.target} ({', '.join(domain.methods) if domain.methods else 'all methods'})"
        for domain in snapshot.domains
    ]
    return "\n\nWhat the code can reach:\n" + "\n".join(lines) if lines else ""
