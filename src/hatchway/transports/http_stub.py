"""The source a guest needs to call tools over HTTP: our guest files as text, and a table of the tools."""

from __future__ import annotations

from hatchway.core.sandbox import Functions


def stub_code(functions: Functions) -> str:
    return ""
