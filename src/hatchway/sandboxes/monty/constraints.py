"""Which Python Monty runs. Every flag and every module is tried by a test: Monty moves fast."""

from __future__ import annotations

from hatchway.core.constraints import CodeConstraints

MONTY = CodeConstraints(
    supports_class_inheritance=False,
    supports_properties=False,
    supports_generators=False,
    supports_del=False,
    supports_async_with_for=False,
    supports_tasks=False,
    supports_gather_exceptions=False,
    supports_except_star=False,
    supports_star_import=False,
    supports_threads=False,
    supports_introspection=False,
    modules=(
        "asyncio", "base64", "binascii", "bisect", "collections", "copy", "csv", "dataclasses", "datetime", "decimal",
        "functools", "hashlib", "itertools", "json", "math", "os", "pathlib", "posixpath", "random", "re", "sys",
        "time", "tomllib", "typing", "unicodedata",
    ),
    filesystem=False,
    additional_instructions=(
        "Wrap views, ranges and iterators in list() before you end with them. "
        "Tools cannot be passed to map(), filter() or sorted(key=...): call them in a loop or a comprehension."
    ),
)  # fmt: skip
