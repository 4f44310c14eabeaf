"""The validator against the official JSON Schema suite, where that is at hand, and what the suite leaves out."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from hatchway.core.errors import InvalidTool
from hatchway.tools.functions import Tool
from hatchway.tools.problems import Problem
from hatchway.tools.schema import compile_schema
from hatchway.tools.stubs import render_stubs

SUITE = Path(__file__).parents[2].parent / "shared" / "data" / "json-schema-test-suite"
needs_suite = pytest.mark.skipif(not SUITE.is_dir(), reason="../shared/data/json-schema-test-suite is not here")
UNSUPPORTED = {"$dynamicRef", "$dynamicAnchor", "$anchor", "$id", "unevaluatedItems", "unevaluatedProperties"}
OTHERWISE = {
    ("draft7", "ref overrides any sibling keywords"): "siblings of $ref count, as they do since 2019-09",
    ("draft2020-12", "schema that uses custom metaschema with with no validation vocabulary"): "nothing is fetched",
}
NOT_COVERED = {
    "draft2020-12": {"anchor", "dynamicRef", "refRemote", "unevaluatedItems", "unevaluatedProperties", "defs"},
    "draft7": {"refRemote", "definitions"},
}
"""Files of the suite of which no case is supported; every other keyword is."""


def groups(draft: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted((SUITE / draft).glob("*.json")):
        for group in json.loads(path.read_text()):
            yield path.stem, group


def words(schema: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(schema, list):
        for item in cast(list[Any], schema):
            yield from words(item)
    elif isinstance(schema, dict):
        for word, value in cast(dict[str, Any], schema).items():
            yield word, value
            yield from words(value)


def is_supported(draft: str, group: dict[str, Any]) -> bool:
    found = list(words(group["schema"]))
    outside = any(word == "$ref" and isinstance(value, str) and not value.startswith("#") for word, value in found)
    return (
        not outside and not {word for word, _ in found} & UNSUPPORTED and (draft, group["description"]) not in OTHERWISE
    )


@needs_suite
@pytest.mark.parametrize("draft", NOT_COVERED)
def test_the_official_suite(draft: str):
    wrong: list[str] = []
    files: set[str] = set()
    for file, group in groups(draft):
        if not is_supported(draft, group):
            continue
        check = compile_schema(group["schema"])
        files.add(file)
        for case in group["tests"]:
            if (not check(case["data"])) is not case["valid"]:
                wrong.append(f"{file}: {group['description']}: {case['description']}")
    assert wrong == []
    assert {path.stem for path in (SUITE / draft).glob("*.json")} - files == NOT_COVERED[draft]


@needs_suite
@pytest.mark.parametrize("draft", NOT_COVERED)
def test_every_schema_of_the_suite_makes_a_stub_that_compiles_or_is_refused(draft: str):
    made: list[Tool] = []
    refused: set[str] = set()
    for number, (_, group) in enumerate(groups(draft)):
        parameters = {"type": "object", "properties": {"x": group["schema"]}, **_definitions(group["schema"])}
        try:
            made.append(Tool(name=f"t{number}", parameters=parameters, func=print, returns=_as_object(group["schema"])))
        except InvalidTool as e:
            refused.add(str(e).partition("' leads ")[2])
    assert refused == {"nowhere inside the schema"}
    text = render_stubs(made)
    compile(text, "stubs", "exec")
    assert len(made) > 200


def _definitions(schema: Any) -> dict[str, Any]:
    return {word: schema[word] for word in ("$defs", "definitions") if isinstance(schema, dict) and word in schema}


def _as_object(schema: Any) -> dict[str, Any] | None:
    return cast(dict[str, Any], schema) if isinstance(schema, dict) else None


def problems(schema: Any, value: Any, *, python: bool = False) -> list[str]:
    return [told(problem) for problem in compile_schema(schema, python=python)(value)]


def told(problem: Problem) -> str:
    return ".".join(map(str, (*problem.path, problem.says)))


WORDS: list[tuple[Any, Any, list[str]]] = [
    ({"type": "integer"}, True, ["must be an integer, got True (bool)"]),
    ({"type": ["integer", "null"]}, "x", ["must be an integer or None, got 'x' (str)"]),
    ({"type": "string", "nullable": True}, 1, ["must be a string or None, got 1 (int)"]),
    ({"enum": [1, None]}, True, ["must be one of 1, None, got True (bool)"]),
    ({"const": {"a": 1}}, {"a": 2}, ["must be {'a': 1}, got {'a': 2}"]),
    ({"enum": list(range(30))}, 99, [f"must be one of {', '.join(map(str, range(20)))} … (10 more), got 99"]),
    ({"maximum": 3}, 4, ["must be ≤ 3, got 4 (int)"]),
    ({"exclusiveMinimum": 3}, 3, ["must be > 3, got 3 (int)"]),
    ({"minimum": 3, "exclusiveMinimum": True}, 3, ["must be > 3, got 3 (int)"]),
    ({"multipleOf": 0.01}, 0.015, ["must be a multiple of 0.01, got 0.015 (float)"]),
    ({"multipleOf": 2}, float("inf"), ["must be a multiple of 2, got inf (float)"]),
    ({"minLength": 2}, "a", ["must have at least 2 character(s), got 'a' (str)"]),
    ({"maxItems": 1}, [1, 2], ["must have at most 1 item(s), got [1, 2] (list)"]),
    ({"uniqueItems": True}, [1, 1.0], ["must have no item twice, got [1, 1.0] (list)"]),
    (
        {"contains": {"type": "string"}},
        [1],
        ["must contain at least 1 item(s) of a form that 0 of its items have, got [1] (list)"],
    ),
    ({"minProperties": 1}, {}, ["must have at least 1 key(s), got {} (dict)"]),
    (
        {"propertyNames": {"maxLength": 1}},
        {"ab": 1},
        ["has a key that must have at most 1 character(s), got 'ab' (str)"],
    ),
    ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, ["b.is missing: 'a' is given"]),
    ({"not": {"type": "string"}}, "x", ["must not fit {'type': 'string'}, got 'x' (str)"]),
    ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, 3, ["must fit exactly one of 2 forms, it fits 2, got 3 (int)"]),
    ({"anyOf": [{"const": "a"}, {"const": "b"}]}, "c", ["must be 'a' or 'b', got 'c' (str)"]),
    ({"properties": {"a": False}}, {"a": 1}, ["a.must be left out"]),
    (
        {"items": {"type": "integer"}},
        ["x", 1, "y"],
        ["0.must be an integer, got 'x' (str)", "2.must be an integer, got 'y' (str)"],
    ),
    ({"if": {"type": "string"}, "then": {"minLength": 2}}, "a", ["must have at least 2 character(s), got 'a' (str)"]),
]


@pytest.mark.parametrize(("schema", "value", "expected"), WORDS, ids=range(len(WORDS)))
def test_what_is_said(schema: Any, value: Any, expected: list[str]):
    assert problems(schema, value) == expected


def test_an_integral_float_is_an_integer_of_json_but_not_of_python():
    assert problems({"type": "integer"}, 1.0) == []
    assert problems({"type": "integer"}, 1.0, python=True) == ["must be an integer, got 1.0 (float)"]
    assert problems({"const": 1}, 1.0) == []
    assert problems({"const": 1}, 1.0, python=True) == ["must be 1, got 1.0 (float)"]
    assert problems({"enum": [1]}, 1.0) == []
    assert problems({"enum": [1]}, 1.0, python=True) == ["must be 1, got 1.0 (float)"]


def test_sequences_of_every_kind_are_arrays():
    for value in ([1], (1,), {1}, frozenset({1})):
        assert problems({"type": "array", "items": {"type": "integer"}}, value) == []


def test_a_pattern_cannot_hang_the_host():
    assert len(problems({"pattern": r"^(a+)+$"}, "a" * 50_000 + "!")) == 1


def test_a_pattern_only_a_backtracking_engine_can_match_is_not_enforced():
    assert problems({"pattern": r"^(?=.*\d)(a+)+$"}, "aaa") == []


def test_a_million_wrong_items_are_not_all_told():
    assert len(problems({"items": {"type": "integer"}}, ["x"] * 1_000_000)) == 5


def test_references_that_multiply_cannot_hang_the_host():
    definitions: dict[str, Any] = {"d60": {"type": "integer"}}
    for n in range(60):
        twice = {"$ref": f"#/$defs/d{n + 1}"}
        definitions[f"d{n}"] = {"anyOf": [twice, {"type": "array", "items": twice}, twice]}
    schema = {"properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": definitions}
    made = Tool(name="f", parameters=schema, func=print)
    compile(render_stubs([made]), "stubs", "exec")
    assert made.bind((1,), {}) == {"x": 1}
    assert len(compile_schema(schema)({"x": "wrong"})) == 1


def test_references_are_decoded():
    schema = {"$ref": "#/$defs/a~1b%25~0c", "$defs": {"a/b%~c": {"type": "string"}}}
    assert problems(schema, 1) == ["must be a string, got 1 (int)"]
