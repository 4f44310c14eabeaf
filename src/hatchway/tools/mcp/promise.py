"""What a tool's output schema promises, held against what the server gives."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from hatchway.core.errors import InvalidTool, ToolError
from hatchway.tools.problems import told
from hatchway.tools.schema import Check, compile_schema


class Promise:
    """The structured content of a tool's results; the code relies on its type.

    Args:
        tool: Its name in the code.
        schema: Its `outputSchema`; None, or one that is no valid schema, promises nothing.
    """

    def __init__(self, tool: str, schema: Any) -> None:
        self._tool, self._schema = tool, schema

    def check(self, result: Mapping[str, Any]) -> None:
        """Look at a result as it came over the wire.

        Raises:
            ToolError: It is not what was promised.
        """
        check = self._check
        if check is None or result.get("isError"):
            return
        if "structuredContent" not in result:
            raise ToolError(f"{self._tool} has an output schema, and the server gave no structured content")
        if problems := check(result["structuredContent"]):
            said = told(problems, "value")
            raise ToolError(f"{self._tool} gave what its own output schema forbids: {said}")

    @cached_property
    def _check(self) -> Check | None:
        try:
            return None if self._schema is None else compile_schema(self._schema)
        except InvalidTool:
            return None
