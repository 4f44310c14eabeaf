"""Making tools: from functions, methods, partials, callable objects and JSON schemas."""

import asyncio
import dataclasses
import functools
from typing import Annotated, Any

import pytest
from pydantic import Field

from hatchway.core.calls import CallContext
from hatchway.core.errors import InvalidTool, ToolError
from hatchway.tools.functions import Tool, as_tools, tool


def add(a: int, b: int = 2) -> int:
    """Add two numbers.

    Args:
        a: The first one,
            which comes first.
        b (int): The second.
    """
    return a + b


def schema_tool(**options: Any) -> Tool:
    schema = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
    return Tool(**{"name": "search", "description": "Search.", "parameters": schema, "func": lambda q: q} | options)


def test_a_function_becomes_a_tool():
    made = Tool.from_function(add)
    assert (made.name, made.approval, made.idempotent, made.sequential, made.timeout, made.is_async) == (
        "add", "allow", False, False, None, False,
    )  # fmt: skip
    assert made.description.startswith("Add two numbers.\n\nArgs:")
    assert made.parameters == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "The first one, which comes first."},
            "b": {"type": "integer", "description": "The second.", "default": 2},
        },
        "required": ["a"],
        "additionalProperties": False,
    }
    assert made.returns == {"type": "integer"}
    assert made.func is add


def test_the_decorator_in_its_three_forms():
    @tool
    def plain(a: int) -> int:
        return a

    @tool(approval="ask", idempotent=True, sequential=True, timeout=5, name="renamed", description="Other words.")
    def configured(a: int) -> int:
        return a

    called = tool(add, approval="deny")
    assert (plain.name, plain.approval) == ("plain", "allow")
    assert (configured.name, configured.description) == ("renamed", "Other words.")
    assert (configured.approval, configured.idempotent, configured.sequential, configured.timeout) == (
        "ask", True, True, 5,
    )  # fmt: skip
    assert called.approval == "deny"


def test_a_decorated_function_stays_usable():
    @tool
    def star(a: int, /, *rest: int, **more: int) -> tuple[int, tuple[int, ...], dict[str, int]]:
        return a, rest, more

    assert star(1, 2, 3, x=4) == (1, (2, 3), {"x": 4})
    assert star("unchecked") == ("unchecked", (), {})


def test_a_tool_made_from_a_tool_differs_in_the_options_given():
    first = tool(add, approval="ask", timeout=3)
    second = tool(first, name="server.add", idempotent=True)
    assert (second.name, second.approval, second.timeout, second.idempotent) == ("server.add", "ask", 3, True)
    assert (first.name, first.idempotent) == ("add", False)
    with pytest.raises(ToolError, match=r"^server\.add\(\): missing required parameter 'a'"):
        second.bind((), {})


def test_replacing_the_parameters_reads_the_new_schema():
    changed = dataclasses.replace(tool(add), parameters={"type": "object", "properties": {"z": {"type": "string"}}})
    assert changed.bind((), {"z": "x"}) == {"z": "x"}
    with pytest.raises(ToolError, match="unknown parameter 'a'"):
        changed.bind((), {"a": 1})


def test_async_is_seen_through_partials_methods_and_callable_objects():
    async def fetch(url: str) -> str:
        return url

    class Client:
        async def get(self, url: str) -> str:
            return url

        async def __call__(self, url: str) -> str:
            return url

    assert tool(fetch).is_async
    assert tool(functools.partial(fetch, url="x")).is_async
    assert tool(Client().get).is_async
    assert tool(Client(), name="client").is_async
    assert tool(functools.partial(Client(), "x"), name="client").is_async
    assert not tool(add).is_async


def test_async_survives_the_adapter_for_positional_parameters():
    async def fetch(url: str, /, *more: str) -> list[str]:
        return [url, *more]

    made = tool(fetch)
    assert made.is_async
    prepared = made.prepare(made.bind(("a", "b", "c"), {}))
    assert asyncio.run(made.func(**prepared)) == ["a", "b", "c"]


def test_methods_lose_their_object():
    class Box:
        def put(self, item: str) -> str:
            """Put it in."""
            return item

    made = tool(Box().put)
    assert (made.name, made.description, list(made.parameters["properties"])) == ("put", "Put it in.", ["item"])
    with pytest.raises(InvalidTool) as refused:
        tool(Box.put)
    assert str(refused.value) == "put() is a method without its object\nmake the tool from a bound one: tool(thing.put)"


def test_what_a_partial_binds_is_out_of_reach():
    def send(to: str, body: str, cc: str = "", **headers: str) -> str:
        return f"{to} {body} {headers}"

    by_keyword = tool(functools.partial(send, to="boss"))
    by_position = tool(functools.partial(send, "boss"))
    for made in (by_keyword, by_position):
        assert list(made.parameters["properties"]) == ["body", "cc"]
        assert made.func(**made.prepare(made.bind((), {"body": "hi", "x": "y"}))) == "boss hi {'x': 'y'}"
        with pytest.raises(ToolError, match=r"^send\(\): unknown parameter 'to'; it takes"):
            made.bind((), {"body": "hi", "to": "me"})


def test_callable_objects_need_a_name():
    class Lookup:
        def __call__(self, key: str) -> str:
            """Look it up."""
            return key

    with pytest.raises(InvalidTool) as refused:
        tool(Lookup())
    assert str(refused.value) == 'a lambda or another callable without a name needs one\ntool(fn, name="lookup")'
    made = tool(Lookup(), name="lookup")
    assert (made.description, made("x")) == ("Look it up.", "x")


def test_a_class_is_a_tool_that_makes_one():
    @dataclasses.dataclass
    class Order:
        """One order."""

        item: str
        count: int = 1

    made = tool(Order)
    assert made.signature().stub == 'def Order(item: str, count: int = 1) -> Order2:\n    """One order."""\n    ...'
    assert made.func(**made.prepare(made.bind(("x",), {}))) == Order("x")


def test_a_lambda_needs_a_name():
    with pytest.raises(InvalidTool) as refused:
        as_tools([lambda x: x])
    assert str(refused.value) == 'a lambda or another callable without a name needs one\ntool(fn, name="lookup")'
    assert as_tools([tool(lambda x: x, name="echo")])["echo"].bind((1,), {}) == {"x": 1}


def test_the_context_is_no_parameter_of_the_code():
    @tool
    def charge(amount: int, ctx: CallContext, note: str = "") -> str:
        return f"{amount} {ctx.call_id}"

    def optional(amount: int, ctx: CallContext | None = None, **more: int) -> int:
        return amount

    assert charge.takes_context == "ctx"
    assert list(charge.parameters["properties"]) == ["amount", "note"]
    assert charge.bind((1, "n"), {}) == {"amount": 1, "note": "n"}
    assert "ctx" not in charge.signature().stub
    with pytest.raises(ToolError, match=r"^charge\(\): unknown parameter 'ctx'"):
        charge.bind((1,), {"ctx": 2})

    def annotated(ctx: Annotated[CallContext, "the call"]) -> str:
        return ctx.call_id

    assert tool(annotated).takes_context == "ctx"
    made = tool(optional)
    assert made.takes_context == "ctx"
    with pytest.raises(ToolError, match=r"^optional\(\): unknown parameter 'ctx'"):
        made.bind((1,), {"ctx": 2})


def test_generators_and_unreadable_callables_are_refused():
    def numbers(n: int):
        yield n

    with pytest.raises(InvalidTool, match=r"^numbers\(\) is a generator; a tool returns its value\nreturn a list$"):
        tool(numbers)
    with pytest.raises(InvalidTool, match=r"^the signature of max cannot be read: "):
        tool(max, name="largest")
    with pytest.raises(InvalidTool, match=r"^3 is neither a tool nor a function$"):
        as_tools([3])  # pyright: ignore[reportArgumentType]


def test_a_type_no_value_can_become_is_refused_by_parameter():
    class Session:
        pass

    def query(sql: str, session: Session) -> str:
        return sql

    with pytest.raises(InvalidTool, match=r"^parameter 'session' of query\(\) cannot be given by code: ") as refused:
        tool(query)
    assert refused.value.hint == "use a type whose values cross the wall, or bind the parameter with functools.partial"
    bound = tool(functools.partial(query, session=Session()))
    assert bound.func(**bound.prepare(bound.bind(("select",), {}))) == "select"


NAMES = {
    "ToolError": "'ToolError' cannot be the name of a tool: the code would lose the builtin 'ToolError'\n"
    "give name=, such as 'ToolError_tool'",
    "ﬁnd it": "'ﬁnd it' cannot be the name of a tool: 'ﬁnd it' is not an identifier\ngive name=, such as 'find_it'",
    "print": "'print' cannot be the name of a tool: the code would lose the builtin 'print'\n"
    "give name=, such as 'print_tool'",
    "open.file": "'open.file' cannot be the name of a tool: the code would lose the builtin 'open'\n"
    "give name=, such as 'open_file'",
    "class": "'class' cannot be the name of a tool: 'class' is a keyword of Python\ngive name=, such as 'class_tool'",
    "server.from": "'server.from' cannot be the name of a tool: 'from' is a keyword of Python\n"
    "give name=, such as 'server_from'",
    "my-tool": "'my-tool' cannot be the name of a tool: 'my-tool' is not an identifier\ngive name=, such as 'my_tool'",
    "a..b": "'a..b' cannot be the name of a tool: '' is not an identifier\ngive name=, such as 'a__b'",
    "__x__": "'__x__' cannot be the name of a tool: names that begin with '__' are Python's own\n"
    "give name=, such as 'x'",
    "ﬁnd": "'ﬁnd' cannot be the name of a tool: 'ﬁnd' is not an identifier\ngive name=, such as 'find'",
    "": 'a lambda or another callable without a name needs one\ntool(fn, name="lookup")',
}


@pytest.mark.parametrize("name", NAMES)
def test_names_the_code_could_not_use(name: str):
    for make in (lambda: tool(add, name=name), lambda: schema_tool(name=name)):
        with pytest.raises(InvalidTool) as refused:
            make()
        assert str(refused.value) == NAMES[name]


def test_two_tools_of_one_name():
    with pytest.raises(InvalidTool, match=r"^two tools are named 'add'\ngive one of them another name=$"):
        as_tools([add, tool(add, approval="ask")])
    with pytest.raises(InvalidTool, match=r"^'search' is the name of a tool and the namespace of 'search.deep'$"):
        as_tools([schema_tool(name="search.deep"), schema_tool()])
    assert list(as_tools([add, schema_tool(name="s.a"), schema_tool(name="s.b")])) == ["add", "s.a", "s.b"]


def test_options_that_make_no_sense():
    with pytest.raises(InvalidTool, match=r"^tool 'add': approval must be one of 'allow', 'ask', 'deny', it is 'yes'$"):
        tool(add, approval="yes")  # pyright: ignore[reportArgumentType, reportCallIssue]
    for timeout in (0, -1, float("inf"), float("nan"), True, "5"):
        with pytest.raises(InvalidTool, match=r"^tool 'add': timeout must be a number of seconds above 0, it is "):
            tool(add, timeout=timeout)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidTool, match=r"^tool 'search': func must be callable, it is NoneType$"):
        schema_tool(func=None)


SCHEMAS: dict[str, tuple[Any, str]] = {
    "no dict": ([1], "parameters must be a JSON schema (a dict), it is list"),
    "no object": ({"type": "string"}, "parameters must be a JSON schema of type 'object', its type is 'string'"),
    "type word": (
        {"properties": {"a": {"type": "strng"}}},
        "the schema's 'type' at #/properties/a must be one of "
        "string, integer, number, boolean, null, array, object, it is 'strng'",
    ),
    "nowhere": (
        {"properties": {"a": {"$ref": "#/$defs/X"}}},
        "the schema's $ref '#/$defs/X' leads nowhere inside the schema",
    ),
    "remote": (
        {"properties": {"a": {"$ref": "http://x/y.json"}}},
        "the schema's $ref 'http://x/y.json' leads nowhere inside the schema",
    ),
    "itself": ({"$defs": {"a": {"$ref": "#/$defs/a"}}}, "the schema's $ref '#/$defs/a' leads back to itself"),
    "properties": ({"properties": [1]}, "the schema's 'properties' at # must be an object of schemas, it is list [1]"),
    "required": ({"required": "a"}, "the schema's 'required' at # must be a list of names, it is str 'a'"),
    "minimum": (
        {"properties": {"a": {"minimum": "1"}}},
        "the schema's 'minimum' at #/properties/a must be a number, it is str '1'",
    ),
    "pattern": (
        {"properties": {"a": {"pattern": "("}}},
        "the schema's 'pattern' at #/properties/a is no regular expression: '('",
    ),
    "subschema": ({"properties": {"a": 3}}, "the schema at #/properties/a must be an object or a boolean, it is int 3"),
    "anyOf": ({"anyOf": []}, "the schema's 'anyOf' at # must not be empty"),
}


@pytest.mark.parametrize("flaw", SCHEMAS)
def test_schemas_that_are_not_valid(flaw: str):
    schema, message = SCHEMAS[flaw]
    with pytest.raises(InvalidTool) as refused:
        schema_tool(parameters=schema)
    assert str(refused.value) == f"tool 'search': {message}"


def test_a_schema_nested_without_end_is_refused():
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(5000):
        schema = {"properties": {"a": schema}}
    with pytest.raises(InvalidTool, match=r"^tool 'search': the schema is nested too deeply$"):
        schema_tool(parameters=schema)


def test_the_schema_of_the_result_is_checked_too():
    with pytest.raises(InvalidTool, match=r"^tool 'search': the schema's \$ref '#/x' leads nowhere inside the schema$"):
        schema_tool(returns={"$ref": "#/x"})


def test_signatures_in_each_style():
    @tool
    async def find(
        q: str, /, n: int = 3, *rest: int, deep: bool = False, tags: tuple[str, ...] = ("a",), **more: Any
    ) -> str:
        return q

    declared, in_step = find.signature(), find.signature(style="sync")
    assert find.signature() is declared
    assert (declared.is_async, in_step.is_async, find.signature(style="async").is_async) == (True, False, True)
    assert declared.stub.startswith("async def find(")
    assert in_step.stub.startswith("def find(")
    assert str(declared.parameters) == (
        "(q: 'str', /, n: 'int' = 3, *rest: 'int', deep: 'bool' = False, "
        "tags: 'tuple[str, ...]' = Ellipsis, **more: 'Any') -> 'str'"
    )
    assert tool(add).signature(style="async").stub.startswith("async def add(")


def test_a_required_field_after_an_optional_parameter():
    def order(
        size: int = 1, item: str = Field(description="What."), /, extra: Annotated[int, Field(default=7)] = 7
    ) -> tuple[int, str, int]:
        return size, item, extra

    made = tool(order)
    assert (
        str(made.signature().parameters)
        == "(size: 'int' = 1, /, *, item: 'str', extra: 'int' = 7) -> 'tuple[int, str, int]'"
    )
    assert made.func(**made.prepare(made.bind((3,), {"item": "x"}))) == (3, "x", 7)


def test_the_default_of_a_field_is_filled_in():
    def limited(n: int = Field(5, ge=1, description="How many.")) -> int:
        return n

    made = tool(limited)
    assert made.parameters["properties"]["n"] == {
        "type": "integer", "default": 5, "minimum": 1, "description": "How many.",
    }  # fmt: skip
    assert made.bind((), {}) == {}
    assert made.func(**made.prepare({})) == 5


def test_tools_from_schemas_call_by_name():
    made = schema_tool(func=lambda **given: given)
    assert made.func(**made.prepare(made.bind(("x",), {}))) == {"q": "x"}
    assert made(z=1) == {"z": 1}
    assert (made.approval, made.is_async, made.takes_context) == ("allow", False, None)
