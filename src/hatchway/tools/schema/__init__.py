"""A JSON schema compiled into one function that tells what is wrong with a value, without coercing anything.

Understood: drafts 4 to 2020-12, with references inside the schema. Not enforced: `format`, `content*`,
`unevaluated*`, `$dynamicRef`, and patterns only a backtracking engine can match. Nothing is ever fetched.
"""

from __future__ import annotations

from typing import Any

from hatchway.core.errors import InvalidTool
from hatchway.tools.schema.compiler import Check, Compiler
from hatchway.tools.schema.keywords import KEYWORDS

__all__ = ["Check", "compile_schema"]


def compile_schema(schema: Any, *, python: bool = False) -> Check:
    """The check for a schema.

    Args:
        schema: The JSON schema: an object, or a boolean.
        python: Values are Python's: an integral float is no integer, keys of any type are left to whoever
            converts, and the formats pydantic writes (`date`, `binary`, `decimal` …) stand for Python types.

    Raises:
        InvalidTool: It is not a valid schema; the message says where.
    """
    try:
        return Compiler(root=schema, python=python, keywords=KEYWORDS).whole()
    except RecursionError:
        raise InvalidTool("the schema is nested too deeply") from None
