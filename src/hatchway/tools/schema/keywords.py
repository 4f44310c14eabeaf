"""What the keywords for scalars and for combinations demand. `KEYWORDS` is the order the compiler takes them in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

from hatchway.tools.problems import Problem, mismatch, shown, violation
from hatchway.tools.schema.compiler import Check, Node, fits
from hatchway.tools.schema.containers import array, identity, object_
from hatchway.tools.schema.formats import PYTHON_FORMATS
from hatchway.tools.schema.patterns import matcher


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_TYPES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "string": (lambda value: isinstance(value, str), "a string"),
    "integer": (lambda value: _whole(value) or (isinstance(value, float) and value.is_integer()), "an integer"),
    "number": (_number, "a number"),
    "boolean": (lambda value: isinstance(value, bool), "a boolean"),
    "null": (lambda value: value is None, "None"),
    "array": (lambda value: isinstance(value, (list, tuple, set, frozenset)), "a list"),
    "object": (lambda value: isinstance(value, dict), "a dict"),
}
_PYTHON_TYPES = {**_TYPES, "integer": (_whole, "an integer")}


def _reference(node: Node) -> Check | None:
    reference = node.get("$ref", str, "a text")
    return None if reference is None else node.compiler.reference(reference, node.entered)


def _type(node: Node) -> Check | None:
    words = node.get("type", (str, list), "a type word or a list of them")
    tests = [_type_test(node, word) for word in ([words] if isinstance(words, str) else words or [])]
    if node.get("nullable", bool, "a boolean") and tests:
        tests.append(_TYPES["null"])
    if not tests:
        return None
    wants = _either(list(dict.fromkeys(phrase for _, phrase in tests)))
    accepts = [test for test, _ in tests]

    def run(value: Any) -> list[Problem]:
        for test in accepts:
            if test(value):
                return []
        return [mismatch(wants, value)]

    return run


def _type_test(node: Node, word: Any) -> tuple[Callable[[Any], bool], str]:
    types = _PYTHON_TYPES if node.compiler.python else _TYPES
    if not isinstance(word, str) or word not in types:
        raise node.invalid("type", f"must be one of {', '.join(types)}, it is {word!r}")
    written = node.schema.get("format")
    if node.compiler.python and word in ("string", "integer") and isinstance(written, str):
        return PYTHON_FORMATS.get(written, types[word])
    return types[word]


def _choice(node: Node) -> Check | None:
    if "const" in node.schema:
        return _one_of([node.schema["const"]], exact=node.compiler.python)
    options = node.get("enum", list, "a list")
    return None if options is None else _one_of(options, exact=node.compiler.python)


def _one_of(options: list[Any], *, exact: bool) -> Check:
    allowed = {identity(option, exact=exact) for option in options}
    listed = ", ".join(shown_plain(option) for option in options[:20])
    more = f" … ({len(options) - 20} more)" if len(options) > 20 else ""
    wants = f"{'one of ' if len(options) > 1 else ''}{listed}{more}"
    kinds: set[type] = {type(option) for option in options}

    def run(value: Any) -> list[Problem]:
        if identity(value, exact=exact) in allowed:
            return []
        got = shown_plain(value) if type(value) in kinds else shown(value)
        return [Problem(says=f"must be {wants}, got {got}", wants=wants)]

    return run


def shown_plain(value: Any) -> str:
    """A value without its type, where that says nothing."""
    return shown(value).rpartition(" (")[0] or "None"


def _bounds(node: Node) -> Check | None:
    limits: list[tuple[Callable[[Any], bool], str]] = []
    low, high = node.number("minimum"), node.number("maximum")
    below, above = node.schema.get("exclusiveMinimum"), node.schema.get("exclusiveMaximum")
    # Draft 4 says `exclusiveMinimum: true` beside `minimum`.
    below, low = (low, None) if below is True else (below if _number(below) else None, low)
    above, high = (high, None) if above is True else (above if _number(above) else None, high)
    # A bound must be seen to hold: NaN, which compares with nothing, breaks every one.
    if low is not None:
        limits.append((lambda value: value >= low, f"be ≥ {low}"))
    if high is not None:
        limits.append((lambda value: value <= high, f"be ≤ {high}"))
    if below is not None:
        limits.append((lambda value: value > below, f"be > {below}"))
    if above is not None:
        limits.append((lambda value: value < above, f"be < {above}"))
    return _numeric(limits) if limits else None


def _multiple(node: Node) -> Check | None:
    step = node.number("multipleOf")
    if step is None:
        return None
    if not step > 0:
        raise node.invalid("multipleOf", f"must be greater than 0, it is {step}")
    exact = _fraction(step)
    return _numeric([(lambda value: value - value == 0 and _fraction(value) % exact == 0, f"be a multiple of {step}")])


def _fraction(value: Any) -> Fraction:
    # 0.0075 is a multiple of 0.0001 in decimal, not in binary.
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


def _numeric(limits: Sequence[tuple[Callable[[Any], bool], str]]) -> Check:
    def run(value: Any) -> list[Problem]:
        if not isinstance(value, (int, float, Decimal)) or isinstance(value, bool):
            return []
        return [violation(rule, value) for test, rule in limits if not test(value)][:1]

    return run


def _text(node: Node) -> Check | None:
    least, most = node.count("minLength"), node.count("maxLength")
    pattern: str | None = node.get("pattern", str, "a regular expression")
    matches = matcher(node, "pattern", pattern) if pattern is not None else None
    if least is None and most is None and matches is None:
        return None

    def run(value: Any) -> list[Problem]:
        if not isinstance(value, (str, bytes)):
            return []
        if least is not None and len(value) < least:
            return [violation(f"have at least {least} character(s)", value)]
        if most is not None and len(value) > most:
            return [violation(f"have at most {most} character(s)", value)]
        if matches is not None and isinstance(value, str) and not matches(value):
            return [violation(f"match the pattern {pattern!r}", value)]
        return []

    return run


def _any_of(node: Node) -> Check | None:
    checks = node.alternatives("anyOf")
    if not checks:
        return None

    def run(value: Any) -> list[Problem]:
        found: list[list[Problem]] = []
        for check in checks:
            problems = check(value)
            if not problems:
                return []
            found.append(problems)
        return _nearest(found, value)

    return run


def _exactly_one(node: Node) -> Check | None:
    checks = node.alternatives("oneOf")
    if not checks:
        return None

    def run(value: Any) -> list[Problem]:
        found = [check(value) for check in checks]
        fitting = sum(not problems for problems in found)
        if fitting == 1:
            return []
        if fitting == 0:
            return _nearest(found, value)
        return [violation(f"fit exactly one of {len(checks)} forms, it fits {fitting}", value)]

    return run


def _nearest(found: list[list[Problem]], value: Any) -> list[Problem]:
    """What to say when no alternative fits: the one the value was meant as, else all that would do."""
    meant = [problems for problems in found if all(problem.path for problem in problems)]
    if not meant:
        wants = list(dict.fromkeys(problem.wants for problems in found for problem in problems if not problem.path))
        return [mismatch(_either(wants), value)] if all(wants) else found[0]
    for problem in meant[0]:
        rivals = [each for problems in meant for each in problems if each.path == problem.path and each.wants]
        if len(rivals) == len(meant) > 1:  # the same part is wrong for each: most often the tag that tells them apart
            wants = _either(list(dict.fromkeys(each.wants for each in rivals)))
            return [replace(problem, says=problem.says.replace(problem.wants, wants, 1), wants=wants)]
    return min(meant, key=lambda problems: (len(problems), -max(len(problem.path) for problem in problems)))


def _either(wants: list[str]) -> str:
    choices = [want.removeprefix("one of ") for want in wants if want != "None"]
    if "None" in wants:
        choices.append("None")
    return " or ".join(choices) if len(choices) > 1 else wants[0]


def _every(node: Node) -> Check | None:
    checks = node.alternatives("allOf")
    if not checks:
        return None
    return lambda value: [problem for check in checks for problem in check(value)]


def _not(node: Node) -> Check | None:
    check = node.same("not")
    if check is None:
        return None
    return lambda value: [] if check(value) else [violation(f"not fit {str(node.schema['not'])[:80]}", value)]


def _condition(node: Node) -> Check | None:
    condition = node.same("if")
    if condition is None:
        return None
    then, otherwise = node.same("then") or fits, node.same("else") or fits
    return lambda value: otherwise(value) if condition(value) else then(value)


def _definitions(node: Node) -> Check | None:
    """Definitions nobody refers to are still checked, so that a broken schema is found when it is given."""
    for keyword in ("$defs", "definitions"):
        for name in cast(dict[str, Any], node.get(keyword, dict, "an object of schemas") or {}):
            node.compiler.reference(f"{node.where}/{keyword}/{_escaped(name)}", frozenset())
    return None


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1").replace("%", "%25")


KEYWORDS: Sequence[Callable[[Node], Check | None]] = (
    _definitions, _reference, _type, _choice, _bounds, _multiple, _text, array, object_,
    _any_of, _exactly_one, _every, _not, _condition,
)  # fmt: skip
