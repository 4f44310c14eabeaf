"""The stubs as Monty's own type checker reads them: right calls pass, wrong ones are refused before anything runs."""

import dataclasses
import datetime as dt
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Literal

import pydantic_monty
import pytest

from hatchway.tools.functions import Tool, tool
from hatchway.tools.stubs import render_stubs


@dataclasses.dataclass
class Node:
    name: str
    children: "list[Node]" = dataclasses.field(default_factory=list["Node"])


@tool
def add(a: int, b: int = 2, *, unit: Literal["c", "f"] = "c") -> Node:
    """Add."""
    raise NotImplementedError


@tool(description='Plan. """\nimport os\n"""')
async def plan(root: Node, day: dt.date, price: Decimal, key: uuid.UUID, /, *rest: float, **more: str) -> list[Node]:
    raise NotImplementedError


SEARCH = Tool(
    name="server.list",
    parameters={
        "properties": {
            "q": {"type": "string"},
            "where": {"properties": {"from": {"type": "integer"}}, "required": ["from"]},
        },
        "required": ["q"],
    },
    func=print,
    returns={"type": "array", "items": {"properties": {"id": {"type": "integer"}}, "required": ["id"]}},
)
PLANNED = 'plan({"name": "a"}, date(2024, 1, 2), Decimal("1"), "a uuid"'
IMPORTS = "from datetime import date\nfrom decimal import Decimal\n"
RIGHT = [
    "add(1)",
    'add(1, 3, unit="f")["name"].upper()',
    'add(1)["children"][0]["children"]',
    f"{IMPORTS}(await {PLANNED}, 1, 2.5, x='y'))[0]['name']",
    'server.list("x")[0]["id"] + 1',
    'server.list("x", {"from": 3})',
    'server.list("x", where={"from": 3})',
]
WRONG = [
    ('add("x")', "invalid-argument-type"),
    ("add()", "missing-argument"),
    ("add(1, c=2)", "unknown-argument"),
    ('add(1, unit="k")', "invalid-argument-type"),
    ('add(1)["nope"]', "invalid-key"),
    ('add(1)["name"] + 1', "unsupported-operator"),
    ('await plan({"name": 1}, 1, 2, 3)', "invalid-argument-type"),
    (f"{IMPORTS}({PLANNED}))[0]", "not-subscriptable"),
    (f"{IMPORTS}await {PLANNED}, x=1)", "invalid-argument-type"),
    (f"{IMPORTS}await {PLANNED}, 'x')", "invalid-argument-type"),
    ("server.list(1)", "invalid-argument-type"),
    ("server.find(1)", "unresolved-attribute"),
    ('server.list("x")[0]["nope"]', "invalid-key"),
    ('server.list("x", {"from": "y"})', "invalid-argument-type"),
    ("os.getcwd()", "unresolved-reference"),
]


@pytest.fixture(scope="module")
def pool() -> Iterator[pydantic_monty.Monty]:
    with pydantic_monty.Monty() as made:
        yield made


def checked(pool: pydantic_monty.Monty, code: str) -> None:
    stubs = render_stubs([add, plan, SEARCH])
    with pool.checkout(type_check=True, type_check_stubs=stubs) as session:
        session.feed_start(code)


@pytest.mark.parametrize("code", RIGHT)
def test_right_calls_pass(pool: pydantic_monty.Monty, code: str):
    checked(pool, code)


@pytest.mark.parametrize(("code", "rule"), WRONG)
def test_wrong_calls_are_refused(pool: pydantic_monty.Monty, code: str, rule: str):
    with pytest.raises(pydantic_monty.MontyTypingError) as refused:
        checked(pool, code)
    assert refused.value.display().startswith(f"error[{rule}]")


def test_the_style_decides_what_is_awaited(pool: pydantic_monty.Monty):
    with pool.checkout(type_check=True, type_check_stubs=render_stubs([add], "async")) as session:
        session.feed_start("(await add(1))['name']")
    with pool.checkout(type_check=True, type_check_stubs=render_stubs([add], "async")) as session:
        with pytest.raises(pydantic_monty.MontyTypingError):
            session.feed_start("add(1)['name']")
