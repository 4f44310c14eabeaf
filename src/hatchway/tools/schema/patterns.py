"""Regular expressions of a schema, on an engine that cannot be made to hang."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pydantic_core import SchemaError, SchemaValidator, core_schema

from hatchway.tools.schema.compiler import Node


def matcher(node: Node, keyword: str, pattern: str) -> Callable[[Any], bool] | None:
    """Whether a value is a text that contains the pattern; None when only a backtracking engine could tell.

    The guest chooses the text, and would choose one that blocks the host: patterns run in linear time or not at all.

    Raises:
        InvalidTool: It is no regular expression.
    """
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, strict=True)).isinstance_python
    except SchemaError:
        pass
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        raise node.invalid(keyword, f"is no regular expression: {pattern!r:.80}") from None
    return None
