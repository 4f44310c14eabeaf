"""Whatever the schema or the signature: the stub compiles, what fits is taken, what does not is refused."""

import ast
import contextlib
import dataclasses
import enum
import inspect
import keyword
import uuid
from decimal import Decimal
from typing import Any, Literal, NotRequired

import pytest
import typing_extensions
from hypothesis import given, settings
from hypothesis import strategies as st

from hatchway.core.errors import InvalidTool, ToolError
from hatchway.core.values import copied
from hatchway.tools.functions import Tool, tool
from hatchway.tools.stubs import render_stubs

Kind = inspect.Parameter
KINDS = [Kind.POSITIONAL_ONLY, Kind.POSITIONAL_OR_KEYWORD, Kind.KEYWORD_ONLY]
texts = st.text(max_size=20)
names = st.one_of(st.from_regex(r"[a-z_]{1,6}", fullmatch=True), st.sampled_from(["from", "class", "x-y", "ﬁ", "date"]))


@dataclasses.dataclass
class Sample:
    """A type: how it is told, values it takes, values it refuses."""

    told: Any
    good: st.SearchStrategy[Any]
    bad: st.SearchStrategy[Any]


def json_leaves() -> st.SearchStrategy[Sample]:
    return st.sampled_from(
        [
            Sample({"type": "string"}, texts, st.integers() | st.none()),
            Sample({"type": "integer"}, st.integers(), texts | st.booleans() | st.just(1.5)),
            Sample({"type": "number", "minimum": 0}, st.floats(0), st.floats(max_value=-0.1) | st.just(float("nan"))),
            Sample({"type": "boolean"}, st.booleans(), st.integers(0, 1)),
            Sample({"enum": ["a", 1, None]}, st.sampled_from(["a", 1, None]), st.sampled_from(["b", True, 2])),
            Sample({"type": ["string", "null"], "maxLength": 3}, st.none() | st.text(max_size=3), st.text(min_size=4)),
            Sample(
                {"$ref": "#/$defs/Even"}, st.integers().map(lambda n: 2 * n), st.integers().map(lambda n: 2 * n + 1)
            ),
        ]
    )


def json_containers(inner: st.SearchStrategy[Sample]) -> st.SearchStrategy[Sample]:
    return st.one_of(
        inner.map(json_array),
        inner.map(json_mapping),
        st.dictionaries(names, inner, min_size=1, max_size=3).map(json_record),
    )


def json_array(item: Sample) -> Sample:
    told = {"type": "array", "items": item.told}
    return Sample(told, st.lists(item.good, max_size=3), st.lists(item.bad, min_size=1, max_size=3) | texts)


def json_mapping(value: Sample) -> Sample:
    told = {"type": "object", "additionalProperties": value.told}
    bad = st.dictionaries(texts, value.bad, min_size=1, max_size=3) | st.lists(value.good, max_size=2)
    return Sample(told, st.dictionaries(texts, value.good, max_size=3), bad)


def json_record(members: dict[str, Sample]) -> Sample:
    told = {
        "type": "object",
        "properties": {name: each.told for name, each in members.items()},
        "required": list(members)[:1],
    }
    good = st.fixed_dictionaries({name: each.good for name, each in members.items()})
    bad = [each.bad.map(lambda value, name=name: {name: value}) for name, each in members.items()][:1]
    return Sample(told, good, st.one_of(*bad, texts))


json_samples = st.recursive(json_leaves(), json_containers, max_leaves=6)


@settings(deadline=None, max_examples=30)
@given(st.dictionaries(names, json_samples, max_size=4), json_samples, st.data())
def test_json_schemas(members: dict[str, Sample], result: Sample, data: st.DataObject):
    schema = json_record(members).told | {
        "additionalProperties": False,
        "$defs": {"Even": {"multipleOf": 2, "type": "integer"}},
    }
    returns = result.told | {"$defs": schema["$defs"]}
    made = Tool(name="f", parameters=schema, func=lambda **given: given, returns=returns)
    exec(compile(render_stubs([made]), "stubs", "exec", dont_inherit=True), {})
    arguments = {name: data.draw(sample.good) for name, sample in members.items()}
    bound = made.bind((), copied(arguments))
    assert repr(made.func(**made.prepare(bound))) == repr(arguments)
    by_position = [arguments[each.name] for each in made.takes if each.kind is not Kind.VAR_KEYWORD]
    by_name = {name: value for name, value in arguments.items() if name not in {each.name for each in made.takes}}
    assert repr(dict(sorted(made.bind(by_position, by_name).items()))) == repr(dict(sorted(arguments.items())))
    if members:
        wrong = data.draw(st.sampled_from(sorted(members)))
        with pytest.raises(ToolError) as refused:
            made.bind((), arguments | {wrong: data.draw(members[wrong].bad)})
        assert f"'{wrong}" in str(refused.value) or f'"{wrong}' in str(refused.value)


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Leaf:
    n: int
    tags: list[str] = dataclasses.field(default_factory=list[str])


class Extra(typing_extensions.TypedDict):
    a: int
    b: NotRequired["list[Extra]"]


python_leaves = [
    Sample(int, st.integers(), texts | st.booleans() | st.floats()),
    Sample(float, st.floats() | st.integers(-1000, 1000), texts | st.none()),
    Sample(str, texts, st.integers() | st.binary()),
    Sample(bytes, st.binary(), texts),
    Sample(bool, st.booleans(), st.integers()),
    Sample(Literal["x", 1], st.sampled_from(["x", 1]), st.sampled_from(["y", True, 1.0])),
    Sample(Color, st.sampled_from(["red", "blue"]), st.sampled_from(["RED", 1])),
    Sample(Decimal, st.decimals(allow_nan=False, allow_infinity=False), st.floats()),
    Sample(uuid.UUID, st.uuids() | st.uuids().map(str), st.integers() | st.just("x")),
    Sample(Leaf, st.fixed_dictionaries({"n": st.integers()}, optional={"tags": st.lists(texts)}), st.just({"n": "1"})),
    Sample(Extra, st.fixed_dictionaries({"a": st.integers()}, optional={"b": st.just([{"a": 1}])}), st.just({"b": []})),
]  # fmt: skip


def python_containers(inner: st.SearchStrategy[Sample]) -> st.SearchStrategy[Sample]:
    return st.one_of(
        inner.map(
            lambda s: Sample(list[s.told], st.lists(s.good, max_size=3), st.lists(s.bad, min_size=1, max_size=2))
        ),
        inner.map(lambda s: Sample(tuple[s.told, ...], st.lists(s.good, max_size=3), texts)),
        inner.map(lambda s: Sample(dict[str, s.told], st.dictionaries(texts, s.good, max_size=3), st.lists(s.good))),
        inner.map(lambda s: Sample(s.told | None, st.none() | s.good, s.bad.filter(lambda bad: bad is not None))),
    )


python_samples = st.recursive(st.sampled_from(python_leaves), python_containers, max_leaves=3)
parameter_names = st.from_regex(r"[a-z_][a-z]{0,5}", fullmatch=True).filter(
    lambda name: not keyword.iskeyword(name) and name != "self"
)


@st.composite
def signatures(draw: st.DrawFn) -> dict[str, tuple[Any, Sample, bool]]:
    """Name → kind, type, whether it has a default; in an order Python allows."""
    chosen = draw(st.lists(parameter_names, max_size=5, unique=True))
    kinds = sorted(draw(st.lists(st.integers(0, 2), min_size=len(chosen), max_size=len(chosen))))
    first_default = draw(st.integers(0, 5))
    return {
        name: (kind, draw(python_samples), number >= first_default)
        for number, (name, kind) in enumerate(zip(chosen, kinds, strict=True))
    }


def function_of(shape: dict[str, tuple[Any, Sample, bool]]) -> Any:
    parameters = [
        Kind(name, KINDS[kind], default=None if optional else Kind.empty) for name, (kind, _, optional) in shape.items()
    ]
    source = f"def f{inspect.Signature(parameters)}:\n    return locals()"
    scope: dict[str, Any] = {}
    exec(compile(source, "function", "exec", dont_inherit=True), scope)
    scope["f"].__annotations__ = {name: sample.told for name, (_, sample, _) in shape.items()} | {"return": Leaf}
    return scope["f"]


@settings(deadline=None, max_examples=30)
@given(signatures(), st.data())
def test_python_signatures(shape: dict[str, tuple[Any, Sample, bool]], data: st.DataObject):
    made = tool(function_of(shape))
    stubs = render_stubs([made])
    exec(compile(stubs, "stubs", "exec", dont_inherit=True), {})
    given_names = [name for name, (_, _, optional) in shape.items() if not optional or data.draw(st.booleans())]
    arguments = {name: data.draw(shape[name][1].good) for name in given_names}
    bound = made.bind((), copied(arguments))
    assert set(bound) == set(arguments)
    received = made.func(**made.prepare(bound))
    assert set(received) == set(shape)
    assert {name for name, value in received.items() if value is None} >= set(shape) - set(arguments)
    assert repr(made.func(**made.prepare(made.bind((), bound)))) == repr(received)
    if given_names:
        wrong = data.draw(st.sampled_from(given_names))
        bad = data.draw(shape[wrong][1].bad.filter(lambda value: value is not None))
        with pytest.raises(ToolError) as refused:
            made.bind((), arguments | {wrong: bad})
        assert f"parameter '{wrong}" in str(refused.value)


any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
KEYWORDS = """
    type properties required items prefixItems enum const anyOf oneOf allOf not $ref $defs title description default
    additionalProperties patternProperties pattern nullable format minimum maxLength multipleOf if then else
"""
keywords = st.sampled_from(KEYWORDS.split())
wild_schemas = st.recursive(
    any_json | st.sampled_from([{"type": "string"}, {"$ref": "#"}, {"$ref": "#/properties/x"}, {"type": "object"}]),
    lambda inner: (
        st.dictionaries(keywords, inner, max_size=4)
        | st.builds(lambda members: {"properties": members}, st.dictionaries(texts, inner, max_size=3))
    ),
    max_leaves=8,
)


@settings(deadline=None, max_examples=100)
@given(wild_schemas, texts, any_json)
def test_wild_schemas_are_refused_or_rendered(schema: Any, description: str, value: Any):
    parameters = {"type": "object", "properties": {"x": schema}, "$defs": {"x": schema}}
    try:
        made = Tool(name="f", description=description, parameters=parameters, func=print, returns={"anyOf": [schema]})
    except InvalidTool:
        return
    compile(render_stubs([made]), "stubs", "exec")
    with contextlib.suppress(ToolError):
        made.prepare(made.bind((value,), {}))


@settings(deadline=None)
@given(st.text())
def test_any_text_as_a_description(text: str):
    made = Tool(name="f", description=text, parameters={"properties": {"x": {"description": text}}}, func=print)
    (function,) = ast.parse(made.signature().stub).body
    assert isinstance(function, ast.FunctionDef)
    assert ast.dump(function.body[-1]) == ast.dump(ast.parse("...").body[0])
