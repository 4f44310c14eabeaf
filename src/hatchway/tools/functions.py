"""Tools: host functions offered to the code, with what the gate must know about each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self, get_args, overload

from hatchway.core.calls import FunctionSignature
from hatchway.core.decisions import Approval
from hatchway.core.errors import InvalidTool
from hatchway.tools.arguments import Arguments, SchemaArguments
from hatchway.tools.function_arguments import FunctionArguments, result_schema
from hatchway.tools.naming import check_name, check_names
from hatchway.tools.parameters import Hint, Parameter, Shape
from hatchway.tools.schema import compile_schema
from hatchway.tools.signatures import is_async, read_callable
from hatchway.tools.stubs import Style, is_called_async, python_signature, render_stub

_AS_SEEN = "The type of the result is what was seen so far; the server does not say it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a tool's parameters and result are told, read once."""

    arguments: Arguments
    """How arguments are bound, checked and converted."""
    gives: Hint | Shape
    """The type of the result."""
    given: Callable[..., Any]
    """The function as it was given; the tool's `func` may be an adapter that takes every argument by name."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tool:
    """A host function the code may call.

    Made from a function by `tool` or `Tool.from_function`; from a JSON schema by giving `parameters` and `func`.
    Calling a tool calls its function, unchecked.

    Raises:
        InvalidTool: The name, a schema, the approval word or the timeout is not usable.
    """

    name: str
    """The name in the code: an identifier, or several with dots between (`server.search`)."""
    description: str = ""
    """What the model reads about it."""
    parameters: dict[str, Any]
    """The JSON schema of its arguments, of type object."""
    func: Callable[..., Any]
    """Called with the prepared arguments, all by name."""
    returns: dict[str, Any] | None = None
    """The JSON schema of its result; None when unknown. Results are not checked."""
    seen: Callable[[], dict[str, Any] | None] | None = None
    """Tells what it was seen to give where `returns` is None; for readers, code is not checked against it."""
    approval: Approval = "allow"
    """`ask` waits for a person, `deny` never runs it."""
    idempotent: bool = False
    """Whether running it twice for one call does no harm."""
    sequential: bool = False
    """Whether its calls must not overlap."""
    timeout: float | None = None
    """Seconds one call may take; None leaves it to the run's limits."""
    read_only: bool = False
    """Whether it says of itself that it changes nothing; rules may go by that."""
    calls: Style = "declared"
    """How the code calls it when nothing else is asked for: as `func` was defined, or in one way."""
    takes_context: str | None = None
    """The parameter of `func` that takes the `CallContext`; the code does not see it."""
    source: Source | None = field(default=None, repr=False)
    """What was read from a function; the schemas are read where there is none, or `parameters` are not its own."""
    is_async: bool = field(init=False)
    """Whether `func` is awaited."""
    _read: Source = field(init=False, repr=False)
    _signatures: dict[str, FunctionSignature] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_name(self.name)
        _check_options(self)
        read = self.source
        if read is None or read.arguments.parameters is not self.parameters:
            read = _read_schemas(self)
        if read.arguments.tool != self.name:
            read = replace(read, arguments=read.arguments.named(self.name))
        object.__setattr__(self, "_read", read)
        object.__setattr__(self, "_signatures", {})
        object.__setattr__(self, "is_async", is_async(self.func))

    @classmethod
    def from_function(
        cls,
        fn: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        approval: Approval = "allow",
        idempotent: bool = False,
        sequential: bool = False,
        timeout: float | None = None,
    ) -> Self:
        """A tool whose schema and stub come from the signature and docstring of a function.

        A parameter annotated `CallContext` gets the context of the call; what a `functools.partial` binds by keyword
        is hidden from the code; an annotation that cannot be resolved counts as Any.

        Raises:
            InvalidTool: The function cannot be offered as it is.
        """
        reading = read_callable(fn)
        chosen = reading.name if name is None else name
        check_name(chosen)
        arguments = FunctionArguments(chosen, reading.takes, hidden=reading.hidden)
        return cls(
            name=chosen,
            description=reading.description if description is None else description,
            parameters=arguments.parameters,
            func=reading.call,
            returns=result_schema(reading.gives),
            approval=approval,
            idempotent=idempotent,
            sequential=sequential,
            timeout=timeout,
            takes_context=reading.context,
            source=Source(arguments=arguments, gives=reading.gives, given=fn),
        )

    @property
    def takes(self) -> tuple[Parameter, ...]:
        """The parameters the code sees."""
        return self._read.arguments.takes

    @property
    def by_key(self) -> tuple[Parameter, ...]:
        """The parameters the code can only give by `**`: their names are no identifiers."""
        return self._read.arguments.by_key

    @property
    def gives(self) -> Hint | Shape:
        """The type of the result, as the stub shows it."""
        return self._read.gives

    def as_seen(self) -> Self:
        """The tool for somebody to read: with what it was seen to give, where nobody says what it gives."""
        found = self.seen() if self.seen is not None and self.returns is None else None
        if not found:
            return self
        said = f"{self.description.rstrip()}\n\n{_AS_SEEN}".strip()
        return replace(self, returns=found, description=said, source=None, seen=None)

    def signature(self, *, style: Style = "declared") -> FunctionSignature:
        """The tool as a sandbox takes it, called in the given style."""
        if style not in self._signatures:
            self._signatures[style] = FunctionSignature(
                name=self.name,
                parameters=python_signature(self),
                is_async=is_called_async(self, style),
                stub=render_stub(self, style),
            )
        return self._signatures[style]

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call by name, checked without coercion, as they came: defaults are not filled in.

        Raises:
            ToolError: They do not fit; the message names the tool, each parameter, what was given and what is valid.
        """
        return self._read.arguments.bind(args, kwargs)

    def admit(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """What `bind` gives, and beside it what `prepare` would make of that, where checking found it out on the way.

        Raises:
            ToolError: As `bind`.
        """
        return self._read.arguments.admit(args, kwargs)

    def prepare(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """What `bind` gave, converted to what `func` takes by name.

        Raises:
            ToolError: A validator of the function's own types refuses a value.
        """
        return self._read.arguments.prepare(arguments)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself: a decorated function stays usable."""
        return self._read.given(*args, **kwargs)


def _check_options(tool: Tool) -> None:
    if not callable(tool.func):
        raise InvalidTool(f"tool {tool.name!r}: func must be callable, it is {type(tool.func).__name__}")
    if tool.approval not in get_args(Approval):
        words = ", ".join(map(repr, get_args(Approval)))
        raise InvalidTool(f"tool {tool.name!r}: approval must be one of {words}, it is {tool.approval!r}")
    if tool.calls not in get_args(Style):
        raise InvalidTool(f"tool {tool.name!r}: calls must be one of {', '.join(get_args(Style))}")
    limit = tool.timeout
    if limit is not None and not (type(limit) in (int, float) and limit > 0 and math.isfinite(limit)):
        raise InvalidTool(f"tool {tool.name!r}: timeout must be a number of seconds above 0, it is {limit!r}")


def _read_schemas(tool: Tool) -> Source:
    try:
        arguments = SchemaArguments(tool.name, tool.parameters)
        if tool.returns is not None:
            compile_schema(tool.returns)
    except InvalidTool as e:
        raise InvalidTool(f"tool {tool.name!r}: {e.message}") from None
    gives = Hint(Any) if tool.returns is None else Shape(tool.returns, tool.returns)
    return Source(arguments=arguments, gives=gives, given=tool.func)


@overload
def tool(
    fn: Callable[..., Any],
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    approval: Approval | None = None,
    idempotent: bool | None = None,
    sequential: bool | None = None,
    timeout: float | None = None,
) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    approval: Approval | None = None,
    idempotent: bool | None = None,
    sequential: bool | None = None,
    timeout: float | None = None,
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(fn: Callable[..., Any] | None = None, /, **options: Any) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Offer a function to the code: `@tool`, `@tool(approval="ask", timeout=5)` or `tool(fn, approval="ask")`.

    Given a tool, it makes another that differs in the options.

    Raises:
        InvalidTool: The function cannot be offered as it is.
    """
    chosen = {option: value for option, value in options.items() if value is not None}
    if fn is None:
        return partial(tool, **chosen)
    return replace(fn, **chosen) if isinstance(fn, Tool) else Tool.from_function(fn, **chosen)


def as_tools(tools: Iterable[Tool | Callable[..., Any]]) -> dict[str, Tool]:
    """Tools by name, made from functions where needed.

    Raises:
        InvalidTool: One of them is not usable, or two have one name.
    """
    made: dict[str, Tool] = {}
    spaces: set[str] = set()
    if callable(tools):
        raise InvalidTool("tools is a list of functions and tools, not a single one", hint="tools=[it]")
    for each in tools:
        if not callable(each):
            raise InvalidTool(f"{each!r:.80} is neither a tool nor a function")
        offered = each if isinstance(each, Tool) else Tool.from_function(each)
        check_names(offered.name, made, spaces)
        made[offered.name] = offered
    return made
