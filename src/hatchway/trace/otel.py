"""Spans, when the program that embeds Hatchway uses OpenTelemetry; nothing otherwise.

Names and attributes follow the GenAI semantic conventions: an action and each of its calls are `execute_tool` spans,
the action's span being the parent of its calls' spans. A span says that something failed and as what, never with which
words: messages quote arguments and code.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from hatchway.core.decisions import AskFirst
from hatchway.core.errors import ToolError

if TYPE_CHECKING:
    from opentelemetry.trace import Span

_NOTHING: AbstractContextManager[None] = nullcontext()


def action_span(*, run_id: str, sandbox: str, tier: str) -> AbstractContextManager[None]:
    """The span of one action."""
    attributes = {"hatchway.run.id": run_id, "hatchway.sandbox": sandbox, "hatchway.tier": tier}
    return _recorded("execute_code", attributes) if is_traced() else _NOTHING


def call_span(name: str, *, call_id: str, run_id: str) -> AbstractContextManager[None]:
    """The span of one call, from its tool's start to its end; only where `is_traced`."""
    return _recorded(name, {"gen_ai.tool.call.id": call_id, "hatchway.run.id": run_id})


def refused_span(name: str, error: ToolError, *, call_id: str, run_id: str) -> None:
    """The span of a call that never reached its tool; only where `is_traced`."""
    with _span(name, {"gen_ai.tool.call.id": call_id, "hatchway.run.id": run_id}) as span:
        _mark(span, error)


def annotate(attributes: Mapping[str, Any]) -> None:
    """Note facts in the span that is under way; what is None is left out."""
    if is_traced():
        from opentelemetry import trace

        trace.get_current_span().set_attributes({name: each for name, each in attributes.items() if each is not None})


def is_traced() -> bool:
    """Whether the program has set up tracing. One that has not pays nothing for spans, not even the import."""
    api = sys.modules.get("opentelemetry.trace")
    return api is not None and not isinstance(api.get_tracer_provider(), api.ProxyTracerProvider)


@contextmanager
def _recorded(tool: str, attributes: Mapping[str, str]) -> Generator[None]:
    with _span(tool, attributes) as span:
        try:
            yield
        except (AskFirst, GeneratorExit):  # nothing failed: somebody is asked, or whoever listened has gone
            raise
        except BaseException as e:
            _mark(span, e)
            raise


def _span(tool: str, attributes: Mapping[str, str]) -> AbstractContextManager[Span]:
    from opentelemetry import trace

    named: dict[str, Any] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool,
        "gen_ai.tool.type": "function",
        **attributes,
    }
    return trace.get_tracer("hatchway").start_as_current_span(
        f"execute_tool {tool}", attributes=named, record_exception=False, set_status_on_exception=False
    )


def _mark(span: Span, error: BaseException) -> None:
    from opentelemetry import trace

    raised = error.__cause__ if isinstance(error, ToolError) else None  # what the tool itself raised
    span.set_attribute("error.type", type(raised or error).__name__)
    span.set_status(trace.StatusCode.ERROR)
