"""The arguments of one call: bound to names, checked without coercion, converted to what the function takes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from itertools import islice
from typing import Any, Self, cast

from hatchway.core.errors import InvalidTool, ToolError
from hatchway.tools.parameters import Kind, Parameter, parameters_of, takes_more
from hatchway.tools.problems import MAX_PROBLEMS, Problem, refusal, unknown
from hatchway.tools.schema import compile_schema
from hatchway.tools.stubs import parameter_list


class Arguments(ABC):
    """How one tool takes its arguments."""

    parameters: dict[str, Any]
    """The JSON schema of the arguments."""
    by_key: tuple[Parameter, ...] = ()
    """Parameters whose names are no identifiers; they are given by `**`."""

    def __init__(self, tool: str, takes: tuple[Parameter, ...]) -> None:
        self.tool = tool
        self.takes = takes
        by_position = (Kind.POSITIONAL_ONLY, Kind.POSITIONAL_OR_KEYWORD)
        self._positional = tuple(each.name for each in takes if each.kind in by_position)
        self._rest = next((each.name for each in takes if each.kind is Kind.VAR_POSITIONAL), None)

    def named(self, tool: str) -> Self:
        """The same for a tool of another name."""
        other = copy(self)
        other.tool = tool
        return other

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by name, as they came. Defaults are not filled in.

        Raises:
            ToolError: They do not fit; one message tells all problems, up to five.
        """
        return self.admit(args, kwargs)[0]

    def admit(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """As `bind`, and beside it what `prepare` would give, where checking found it out on the way.

        Raises:
            ToolError: As `bind`.
        """
        arguments = self._named(args, kwargs) if args else dict(kwargs)
        try:
            return arguments, self.check(arguments)
        except ToolError:
            raise
        except Exception as e:
            raise self._broken(e) from e

    def prepare(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """What `bind` accepted, converted to what the function takes.

        Raises:
            ToolError: A validator of the function's own types refuses a value, or fails.
        """
        try:
            return self.convert(arguments)
        except ToolError:
            raise
        except Exception as e:
            raise self._broken(e) from e

    @abstractmethod
    def check(self, arguments: dict[str, Any]) -> dict[str, Any] | None:
        """Raise ToolError unless the arguments fit; what `convert` would give, if that is known by now."""

    @abstractmethod
    def convert(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """What the function takes, from arguments that were checked."""

    def refuse(self, problems: Sequence[Problem]) -> ToolError:
        """The error that tells these problems."""
        return refusal(self.tool, problems, parameter_list(self.tool, self.takes))

    def _named(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        arguments = dict(zip(self._positional, args, strict=False))
        if len(args) > len(self._positional):
            if self._rest is None:
                raise self._surplus(len(args))
            arguments[self._rest] = list(args[len(self._positional) :])
        if kwargs:
            if twice := [name for name in arguments if name in kwargs]:
                raise self._misnamed(f"parameter {twice[0]!r} given twice, by position and by name")
            arguments.update(kwargs)
        return arguments

    def _broken(self, error: Exception) -> ToolError:
        """A type of the tool's own failed where it should have said yes or no."""
        if isinstance(error, RecursionError):
            return ToolError(f"{self.tool}(): the arguments are nested too deeply")
        return ToolError(f"{self.tool}(): the arguments could not be checked: {type(error).__name__}: {error}")

    def _surplus(self, given: int) -> ToolError:
        return self._misnamed(f"{given} positional argument(s) given, at most {len(self._positional)} can be")

    def _misnamed(self, says: str) -> ToolError:
        return self.refuse([Problem(kind="unknown", says=says)])


class SchemaArguments(Arguments):
    """Arguments a JSON schema describes; the function gets them as JSON types."""

    def __init__(self, tool: str, schema: dict[str, Any]) -> None:
        self.parameters = _object_schema(schema)
        self._check = compile_schema(self.parameters)
        takes, self.by_key = parameters_of(self.parameters)
        super().__init__(tool, takes)
        known = frozenset(each.name for each in (*takes, *self.by_key) if each.kind is not Kind.VAR_KEYWORD)
        self._known = None if takes_more(self.parameters) else known

    def check(self, arguments: dict[str, Any]) -> dict[str, Any] | None:
        """Raise ToolError unless the schema fits and every name is one of its own."""
        problems = self._check(arguments)
        if self._known is not None and not arguments.keys() <= self._known:
            told = {problem.path for problem in problems if problem.kind == "unknown"}
            surplus = (name for name in arguments if name not in self._known and (name,) not in told)
            problems = [unknown(name, self._known, arguments) for name in islice(surplus, MAX_PROBLEMS)] + problems
        if problems:
            raise self.refuse(problems)
        return None

    def refuse(self, problems: Sequence[Problem]) -> ToolError:
        """The error that tells these problems, and how a name that is meant can be given where Python has none such."""
        error = super().refuse(problems)
        by_name = [each for each in problems if each.kind != "value" and len(each.path) == 1]
        for each in self.by_key:
            if any(problem.path == (each.name,) or problem.meant == each.name for problem in by_name):
                error.hint = f"{each.name!r} is given by ** only: {self.tool}(**{{{each.name!r}: ...}})"
                break
        return error

    def convert(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments with every tuple and set as a list."""
        return {name: _plain(value) for name, value in arguments.items()}


def _object_schema(schema: Any) -> dict[str, Any]:
    if not isinstance(schema, dict):
        raise InvalidTool(f"parameters must be a JSON schema (a dict), it is {type(schema).__name__}")
    kind = cast(dict[str, Any], schema).get("type", "object")
    if kind != "object":
        raise InvalidTool(f"parameters must be a JSON schema of type 'object', its type is {kind!r}")
    return {"type": "object", **cast(dict[str, Any], schema)}


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in cast(list[Any], value)]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in cast(dict[Any, Any], value).items()}
    return value
