"""Values: every kind crosses the wall in both directions: as input, result, argument and output."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from hatchway.core.errors import CodeExecutionError, ValueNotPortable
from hatchway.core.sandbox import CodeSandbox
from hatchway.testing.conformance.checks import CheckFunction, check
from hatchway.testing.conformance.drive import run
from hatchway.testing.conformance.expect import equal, fail, same, shown

TEXT = "a\0\t\r\n\x1b[31m é e\u0301 漢字 🚀 \u2028 \\ ' \" {} %s $"
ID = "12345678-1234-5678-1234-567812345678"
LATE = dt.timezone(dt.timedelta(hours=-3, minutes=-30))


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of value: as the host makes it and as the code writes it."""

    name: str
    value: Any
    source: str
    """An expression that makes the same value inside."""
    module: str = ""
    """The module `source` needs."""


KINDS: Sequence[Kind] = (
    Kind("none", None, "None"),
    Kind("bool", [True, False], "[True, False]"),
    Kind("int", [0, -1, 2**31, 2**53 + 1, -(2**63), 2**64], "[0, -1, 2**31, 2**53 + 1, -(2**63), 2**64]"),
    Kind("int_big", -(10**50), "-(10**50)"),
    Kind("int_huge", 10**5000 + 7, "10**5000 + 7"),
    Kind("float", [0.1, -0.0, 1e308, 5e-324, 3.0], "[0.1, -0.0, 1e308, 5e-324, 3.0]"),
    Kind("float_nan", float("nan"), "float('nan')"),
    Kind("float_infinite", [float("inf"), float("-inf")], "[float('inf'), float('-inf')]"),
    Kind("str", TEXT, ascii(TEXT)),
    Kind("str_long", "é" * 1_000_000, "'é' * 1_000_000"),
    Kind("bytes", b"\x00\xff\x80 bytes \n", r"b'\x00\xff\x80 bytes \n'"),
    Kind("bytes_long", b"\x00\xff" * 500_000, r"b'\x00\xff' * 500_000"),
    Kind("list", [1, "a", None, [2, [3]]], "[1, 'a', None, [2, [3]]]"),
    Kind("list_long", list(range(20_000)), "list(range(20_000))"),
    Kind("tuple", (1, ("a", [2])), "(1, ('a', [2]))"),
    Kind("set", {1, "a", (2, 3)}, "{1, 'a', (2, 3)}"),
    Kind("frozenset", frozenset({1, "a"}), "frozenset({1, 'a'})"),
    Kind("dict", {"b": 1, "a": {"c": [2]}, "": None}, "{'b': 1, 'a': {'c': [2]}, '': None}"),
    Kind("dict_any_key", {1: "i", "1": "s", 2.5: "f", None: "n", (1, 2): "t", b"b": "b"},
         "{1: 'i', '1': 's', 2.5: 'f', None: 'n', (1, 2): 't', b'b': 'b'}"),
    Kind("dict_like_a_tag", {"$": "int", "v": "0x7", "$$": {"$": [1]}}, "{'$': 'int', 'v': '0x7', '$$': {'$': [1]}}"),
    Kind("empty", [[], (), {}, set(), "", b""], "[[], (), {}, set(), '', b'']"),
    Kind("datetime", dt.datetime(2024, 2, 29, 23, 59, 58, 123456),
         "datetime.datetime(2024, 2, 29, 23, 59, 58, 123456)", "datetime"),
    Kind("datetime_utc", dt.datetime(1, 1, 1, tzinfo=dt.UTC),
         "datetime.datetime(1, 1, 1, tzinfo=datetime.timezone.utc)", "datetime"),
    Kind("datetime_offset", dt.datetime(2024, 1, 2, 3, tzinfo=LATE),
         "datetime.datetime(2024, 1, 2, 3, tzinfo=datetime.timezone(datetime.timedelta(hours=-3, minutes=-30)))",
         "datetime"),
    Kind("date", dt.date(9999, 12, 31), "datetime.date(9999, 12, 31)", "datetime"),
    Kind("time", dt.time(23, 59, 58, 7), "datetime.time(23, 59, 58, 7)", "datetime"),
    Kind("timedelta", dt.timedelta(days=-3, seconds=5, microseconds=7),
         "datetime.timedelta(days=-3, seconds=5, microseconds=7)", "datetime"),
    Kind("decimal", [Decimal("1.50"), Decimal("-123456789.123456789123456789"), Decimal("1E+400")],
         "[decimal.Decimal(t) for t in ('1.50', '-123456789.123456789123456789', '1E+400')]", "decimal"),
    Kind("uuid", UUID(ID), f"uuid.UUID('{ID}')", "uuid"),
    Kind("nested", {"rows": [({"id": 1, "tags": {"x"}, "at": (dt.date(2024, 1, 2), b"\0")}, None)]},
         "{'rows': [({'id': 1, 'tags': {'x'}, 'at': (datetime.date(2024, 1, 2), b'\\0')}, None)]}", "datetime"),
)  # fmt: skip


async def _crosses_from_host(sandbox: CodeSandbox, kind: Kind) -> None:
    sent: list[Any] = []
    tools = {"fetch": lambda: kind.value, "send": sent.append}
    code = "send(value)\nsend(type(value).__name__)\nsend(fetch())\nfetch()"
    result = await run(sandbox, code, tools, inputs={"value": kind.value})
    as_input, type_inside, as_result = sent
    equal("an input, handed back as an argument", as_input, kind.value)
    equal("a result, handed back as an argument", as_result, kind.value)
    equal("a result, handed back as the output", result.output, kind.value)
    if kind.name not in ("uuid", "frozenset"):
        equal("the class inside", type_inside, type(kind.value).__name__)


async def _crosses_from_code(sandbox: CodeSandbox, kind: Kind) -> None:
    sent: list[Any] = []
    prefix = f"import {kind.module}\n" if kind.module else ""
    code = f"{prefix}value = {kind.source}\nsend(value)\nsend(one=value)\nvalue"

    def send(*args: Any, **kwargs: Any) -> None:
        sent.extend([*args, *kwargs.values()])

    result = await run(sandbox, code, {"send": send})
    equal("made inside, as a positional argument", sent[0], kind.value)
    equal("made inside, as a keyword argument", sent[1], kind.value)
    equal("made inside, as the output", result.output, kind.value)


def _check_of(kind: Kind) -> CheckFunction:
    async def crosses(sandbox: CodeSandbox) -> None:
        await _crosses_from_host(sandbox, kind)
        modules = sandbox.constraints.modules
        if not kind.module or modules is None or kind.module in modules:
            await _crosses_from_code(sandbox, kind)

    return crosses


for _kind in KINDS:
    _sentence = f"{_kind.name.replace('_', ' ')} crosses equal as input, result, argument and output"
    check(_sentence, name=_kind.name)(_check_of(_kind))


@dataclass(frozen=True)
class Point:
    """A dataclass a tool might return."""

    x: int
    label: str


class Row(BaseModel):
    """A pydantic model a tool might return."""

    id: int
    at: Point


@check("dataclass and pydantic values arrive as dicts, also inside other values")
async def check_dataclass_and_model(sandbox: CodeSandbox) -> None:
    point = Point(1, "a")
    values = [point, Row(id=7, at=point), {"points": (point,)}]
    result = await run(sandbox, "got = [fetch(), value]\ngot", {"fetch": lambda: values}, inputs={"value": point})
    as_dict = {"x": 1, "label": "a"}
    equal("the output", result.output, [[as_dict, {"id": 7, "at": as_dict}, {"points": (as_dict,)}], as_dict])


@check("a value that holds one part twice crosses as two equal parts")
async def check_shared_parts(sandbox: CodeSandbox) -> None:
    part: list[Any] = [1, {"a": 2}]
    sent: list[Any] = []
    code = "part = [1, {'a': 2}]\nsend([part, (part, part)])\nfetch()"
    result = await run(sandbox, code, {"send": sent.append, "fetch": lambda: {"x": part, "y": [part]}})
    equal("the argument", sent, [[part, (part, part)]])
    equal("the output", result.output, {"x": part, "y": [part]})


@check("a hundred levels of nesting cross")
async def check_nesting(sandbox: CodeSandbox) -> None:
    value: Any = "core"
    for level in range(100):
        value = [value] if level % 2 else {"k": value}
    result = await run(sandbox, "send(value)\nfetch()", {"fetch": lambda: value, "send": len}, inputs={"value": value})
    equal("the output", result.output, value)


@check("a lone surrogate crosses unchanged or is refused, never replaced in silence")
async def check_lone_surrogate(sandbox: CodeSandbox) -> None:
    text = "a\ud800b"
    try:
        result = await run(sandbox, "value", inputs={"value": text})
    except (CodeExecutionError, ValueNotPortable):
        return
    if not same(result.output, text):
        fail(f"{text!r} became {shown(result.output)}")
