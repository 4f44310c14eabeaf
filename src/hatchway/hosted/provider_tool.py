"""ProviderTool: a tool that a vendor runs; and core tools made of handlers with dataclass parameters."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Generic, Literal, TypeVar, cast, get_origin, is_typeddict

from pydantic import TypeAdapter, ValidationError

from hatchway.core.calls import CallContext
from hatchway.core.decisions import Approval, ApproveCallback
from hatchway.core.errors import InvalidTool, ToolError
from hatchway.core.limits import Limits
from hatchway.gate.rules import Rule
from hatchway.hosted.code import Provider
from hatchway.hosted.context import ToolContext, ToolResult, tool_context
from hatchway.mode.vendor_code import VendorCode, VendorModel, VendorTurns
from hatchway.tools.functions import Tool

ParamsT = TypeVar("ParamsT")
ResultT = TypeVar("ResultT")
ConfigT = TypeVar("ConfigT")
Handler = Callable[..., "ToolResult[Any] | Awaitable[ToolResult[Any]]"]
"""`(params, *, context)` to a `ToolResult`, sync or async."""
OutputHandler = Callable[[Any, ToolContext], "ToolResult[Any] | Awaitable[ToolResult[Any]]"]
"""`(result, context)` to a `ToolResult`, sync or async."""


@dataclass(frozen=True, slots=True)
class NoParams:
    """A vendor's code tool takes no arguments: the model writes the code itself."""


def no_parameters() -> dict[str, Any]:
    """The schema of a tool whose code the model writes at the vendor."""
    return {"type": "object", "properties": {}, "additionalProperties": False}


def to_payload(value: Any) -> Any:
    """A params or result dataclass as JSON."""
    return TypeAdapter(cast(Any, type(value))).dump_python(value, mode="json")


def from_payload(kind: type[ParamsT], payload: Mapping[str, Any]) -> ParamsT:
    """JSON as a params or result dataclass.

    Raises:
        ToolError: It does not fit; each field is named.
    """
    try:
        return TypeAdapter(kind).validate_python(dict(payload), strict=False)
    except ValidationError as e:
        wrong = "; ".join(f"{'.'.join(map(str, error['loc']))}: {error['msg']}" for error in e.errors())
        raise ToolError(f"{kind.__name__} does not fit: {wrong}") from None


def typed_tool(
    handler: Handler,
    *,
    name: str | None = None,
    description: str | None = None,
    approval: Approval = "allow",
    idempotent: bool = False,
    sequential: bool = False,
    timeout: float | None = None,
) -> Tool:
    """A core tool of a handler `(params: ParamsT, *, context: ToolContext) -> ToolResult[ResultT]`.

    The fields of the dataclass are its parameters. A result that is no success is raised at the call.

    Raises:
        InvalidTool: The first parameter is not annotated with a dataclass.
    """
    chosen = name or getattr(handler, "__name__", "")
    kind = params_type(handler)
    if kind is None:
        raise InvalidTool(
            f"tool {chosen!r}: its first parameter takes a dataclass", hint="def handler(params: MyParams, *, context)"
        )

    async def func(context: CallContext, **given: Any) -> Any:
        return returned(await called(handler, from_payload(kind, given), context=tool_context(context)))

    return Tool(
        name=chosen,
        description=(inspect.getdoc(handler) or "") if description is None else description,
        parameters=TypeAdapter(kind).json_schema(),
        func=func,
        approval=approval,
        idempotent=idempotent,
        sequential=sequential,
        timeout=timeout,
        takes_context="context",
    )


def returned(result: ToolResult[Any]) -> Any:
    """What a call gives for a result.

    Raises:
        ToolError: It is no success.
    """
    if result.success is False:
        raise ToolError(result.message)
    return result.message if result.value is None else result.value


async def called(handler: Callable[..., Any], *args: Any, **named: Any) -> ToolResult[Any]:
    """What a handler gives, awaited where it must be.

    Raises:
        ToolError: It gave something else than a `ToolResult`.
    """
    given = handler(*args, **named)
    result = await given if inspect.isawaitable(given) else given
    if not isinstance(result, ToolResult):
        raise ToolError(
            f"a handler gives a ToolResult, not {type(result).__name__}", hint='return ToolResult("words", value)'
        )
    return cast("ToolResult[Any]", result)


def params_type(handler: Callable[..., Any]) -> type[Any] | None:
    """The dataclass a handler takes first; None where it takes something else."""
    kind = first_hint(handler)
    return kind if isinstance(kind, type) and is_dataclass(kind) else None


def first_hint(handler: Callable[..., Any]) -> Any:
    """The annotation of a handler's first parameter; None where it has none that can be read."""
    try:
        first = next(iter(inspect.signature(handler).parameters.values()))
        told, known = first.annotation, getattr(inspect.unwrap(handler), "__globals__", {})
        # alone: the others may name what only a type checker imports
        return eval(told, known) if isinstance(told, str) else None if told is first.empty else told
    except (NameError, AttributeError, SyntaxError, TypeError, ValueError, StopIteration):
        return None


def _is_plain(kind: Any) -> bool:
    """Whether a handler wants its result as a dict: annotated with dict, Mapping or a TypedDict."""
    kind = get_origin(kind) or kind
    return (isinstance(kind, type) and kind is not object and issubclass(dict, kind)) or is_typeddict(kind)


def _not_here(**arguments: Any) -> Any:
    raise ToolError("this tool runs at the vendor: its model writes the code", hint="give it to the vendor's adapter")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProviderTool(Tool, VendorCode, Generic[ParamsT, ResultT, ConfigT]):
    """A tool that runs at the vendor; the adapter of that vendor declares it and reads what it gives.

    Raises:
        InvalidTool: The name, the tools its code may call, or its configuration is not usable.
    """

    parameters: dict[str, Any] = field(default_factory=no_parameters)
    func: Callable[..., Any] = _not_here
    provider: Provider
    """The vendor it is valid for; another vendor's adapter refuses it."""
    kind: Literal["code"] = "code"
    config: ConfigT | None = None
    """How the vendor is to run it."""
    handle_provider_output: OutputHandler | None = None
    """Makes a `ToolResult` of what the vendor gave; asked first."""
    handler: Handler | None = None
    """The standard handler, `(params, *, context)`; asked when there is no other."""
    tools: tuple[Tool, ...] = ()
    """Our tools that the vendor's code may call; each call passes our gate."""
    approve: ApproveCallback | None = None
    """Decides about calls, where the adapter was given nobody who does."""
    rules: tuple[Rule, ...] = ()
    """Stored permissions, beside those of the adapter."""
    limits: Limits | None = None
    """Of each request, where the adapter was given none."""

    def turns(self, model: VendorModel) -> VendorTurns:
        """The vendor's model with this tool, for an agent that is not one of this layer."""
        from hatchway.hosted.turns import HostedTurns

        return HostedTurns(self, model)

    @classmethod
    def adopted(cls, tool: ProviderTool[Any, Any, Any]) -> ProviderTool[Any, Any, Any]:
        """A tool that was told plainly, as this vendor's own; its `config` is where the own has its settings.

        Raises:
            InvalidSetting, InvalidTool: It is not usable so.
        """
        if isinstance(tool, cls):
            return tool
        own = ("parameters", "func", "config")
        shared = [each.name for each in fields(ProviderTool) if each.init and each.name not in own]
        return cls(**{name: getattr(tool, name) for name in shared}, **cls.configured(tool.config))

    @classmethod
    def configured(cls, config: Any) -> dict[str, Any]:
        """The settings of this kind of tool that a plain `config` stands for.

        Raises:
            InvalidTool: There are none.
        """
        if config is not None:
            raise InvalidTool(f"{cls.__name__} takes no config", hint=f"give a {cls.__name__} with its settings")
        return {}

    async def handle(self, result: Any, default: ToolResult[Any], context: ToolContext) -> ToolResult[Any]:
        """What the vendor gave, through the handlers of this tool in their order.

        Raises:
            ToolError: A handler gave no `ToolResult`.
        """
        if self.handle_provider_output is not None:
            is_plain = _is_plain(first_hint(self.handle_provider_output))
            return await called(self.handle_provider_output, to_payload(result) if is_plain else result, context)
        if self.handler is not None:
            kind = params_type(self.handler) or NoParams
            known = {each.name for each in fields(kind)}
            payload = {name: value for name, value in to_payload(result).items() if name in known}
            return await called(self.handler, from_payload(kind, payload), context=context)
        return default
