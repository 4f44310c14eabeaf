"""Offering: which tools go to a vendor, checked before any of them does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

from hatchway.core.errors import InvalidTool
from hatchway.hosted.capabilities import CAPABILITIES
from hatchway.hosted.code import Provider
from hatchway.hosted.given import several
from hatchway.hosted.provider_tool import ProviderTool
from hatchway.hosted.vendor import Offer
from hatchway.tools.functions import Tool, as_tools

AnyProviderTool = ProviderTool[Any, Any, Any]


def offered(
    provider: Provider, given: Iterable[Tool | Callable[..., Any]], own: type[AnyProviderTool] = ProviderTool
) -> Offer:
    """The tools of an adapter, sorted by who runs and who calls them.

    Args:
        provider: The vendor.
        given: The tools.
        own: The vendor's own kind of code tool.

    Raises:
        InvalidTool: A tool of another vendor, two code tools, two tools of one name, or code that cannot call tools.
    """
    every = several("tools", given)
    for kind in (each for each in every if isinstance(each, type) and issubclass(each, Tool)):
        raise InvalidTool(f"{kind.__name__} is a kind of tool, not a tool", hint=f"tools=[{kind.__name__}(…)]")
    code = [cast("AnyProviderTool", each) for each in every if isinstance(each, ProviderTool)]
    for tool in code:
        if tool.provider != provider:
            raise InvalidTool(
                f"the tool {tool.name!r} runs at {tool.provider}, this adapter speaks with {provider}",
                hint=f"give it to the adapter of {tool.provider}, or take code_tool({provider!r})",
            )
    if len(code) > 1:
        raise InvalidTool(
            f"{provider} takes one code tool, here are {len(code)}: {', '.join(t.name for t in code)}",
            hint="leave all but one out",
        )
    code = [own.adopted(tool) for tool in code]
    from_code = code[0].tools if code else ()
    if from_code and not CAPABILITIES[provider].calls_client_tools:
        raise InvalidTool(
            f"code at {provider} cannot call your tools", hint="code_tool('jail', tools=…) can, with any model"
        )
    direct = as_tools(each for each in every if not isinstance(each, ProviderTool))
    called = as_tools(from_code)
    _check_wire([*direct.values(), *called.values()])
    return Offer(
        code=code[0] if code else None,
        direct={_on_wire(tool.name): tool for tool in direct.values()},
        from_code={_on_wire(tool.name): tool for tool in called.values()},
    )


def _check_wire(tools: Iterable[Tool]) -> None:
    """One name on the wire is one function with one approval, whoever calls it."""
    known: dict[str, Tool] = {}
    for tool in tools:
        other = known.setdefault(_on_wire(tool.name), tool)
        if (other.func, other.approval) != (tool.func, tool.approval):
            raise InvalidTool(
                f"two tools are named {_on_wire(tool.name)!r} at the vendor: {other.name!r} and {tool.name!r}",
                hint="give each its own name, tool(fn, name=…), or the very same tool to both",
            )


def _on_wire(name: str) -> str:
    return name.replace(".", "__")
