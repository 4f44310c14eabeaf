"""The wording of refused arguments: what is wrong, where, what was given, what is valid."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from hatchway.core.errors import ToolError

MAX_PROBLEMS = 5
"""How many problems of one call are told; the rest would only push the useful ones out of sight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One way in which a value does not fit."""

    says: str
    """The end of the sentence that begins with the value's path."""
    wants: str = ""
    """What would fit, as a noun phrase; empty when no phrase says it."""
    kind: Literal["value", "missing", "unknown"] = "value"
    """Whether something wrong is there, something needed is not, or something is there that nobody asked for."""
    path: tuple[Any, ...] = ()
    """Keys and indices that lead to the value."""
    meant: str = ""
    """The name that an unknown one probably stands for."""


def mismatch(wants: str, value: Any) -> Problem:
    """The value is not what `wants` says."""
    return Problem(says=f"must be {wants}, got {shown(value)}", wants=wants)


def violation(rule: str, value: Any) -> Problem:
    """The value has the right type but breaks a rule such as "have at least 2 items"."""
    return Problem(says=f"must {rule}, got {shown(value)}")


def unknown(name: Any, known: Iterable[str], given: Container[Any] = ()) -> Problem:
    """A name nobody asked for, with the one that was probably meant: close in spelling, or the only one not given."""
    absent = [each for each in known if each not in given]
    meant = difflib.get_close_matches(str(name)[:200], absent, n=1) or (absent if len(absent) == 1 else [])
    says = f"is not known{f', did you mean {meant[0]!r}?' if meant else ''}"
    return Problem(kind="unknown", says=says, path=(name,), meant=meant[0] if meant else "")


def below(key: Any, problems: Iterable[Problem]) -> list[Problem]:
    """The problems of a part, as problems of the whole."""
    return [replace(problem, path=(key, *problem.path)) for problem in problems]


def refusal(tool: str, problems: Sequence[Problem], takes: str) -> ToolError:
    """One error for one call. `takes` is the parameter list, shown when a name was wrong."""
    told = [_sentence(problem) for problem in problems[:MAX_PROBLEMS]]
    by_name = any(len(problem.path) <= 1 and problem.kind != "value" for problem in problems)
    if len(told) > 1:
        lines = [f"{tool}(): {len(problems)} problems", *(f"- {line}" for line in told)]
        return ToolError("\n".join([*lines, f"It takes {takes}"] if by_name else lines))
    if not by_name:
        return ToolError(f"{tool}(): {told[0]}")
    return ToolError(f"{tool}(): {told[0]}{' It' if told[0].endswith('?') else '; it'} takes {takes}")


def told(problems: Sequence[Problem], what: str) -> str:
    """The problems of any value in one line; `what` names the values inside it."""
    return "; ".join(
        f"{what} {_path(each.path)!r} {each.says}" if each.path else each.says for each in problems[:MAX_PROBLEMS]
    )


def _sentence(problem: Problem) -> str:
    if not problem.path:
        return problem.says
    if len(problem.path) == 1 and problem.kind == "missing":
        return f"missing required parameter {_path(problem.path)!r}"
    if len(problem.path) == 1 and problem.kind == "unknown":
        return f"unknown parameter {_path(problem.path)!r}{problem.says.removeprefix('is not known')}"
    return f"parameter {_path(problem.path)!r} {problem.says}"


def _path(path: tuple[Any, ...]) -> str:
    """`stops[2].city`, cut where hostile keys make it long."""
    text = str(path[0])[:80]
    for key in path[1:]:
        text += f".{key[:80]}" if isinstance(key, str) and key.isidentifier() else f"[{_REPR.repr(key)}]"
    return text if len(text) <= 300 else text[:300] + "…"


def shown(value: Any) -> str:
    """The value and its type, short whatever its size."""
    return "None" if value is None else f"{_REPR.repr(value)} ({type(value).__name__})"


class _Short(reprlib.Repr):
    def repr_int(self, x: int, level: int) -> str:
        # str() of an int past 4300 digits is an error in CPython.
        return repr(x) if x.bit_length() <= 128 else f"an int of {x.bit_length()} bits"

    def repr_bytes(self, x: bytes, level: int) -> str:
        return repr(x) if len(x) <= self.maxstring else f"{x[: self.maxstring]!r}…"


_REPR = _Short()
_REPR.maxstring = _REPR.maxother = 80
_REPR.maxlist = _REPR.maxtuple = _REPR.maxset = _REPR.maxdict = 4
_REPR.maxlevel = 3
