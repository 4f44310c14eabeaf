"""Spans, when the program that embeds Hatchway uses OpenTelemetry; nothing otherwise.

Names and attributes follow the GenAI semantic conventions: an action and each of its calls are `execute_tool` spans,
the action's span being the parent of its calls' spans.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

_NOTHING: AbstractContextManager[None] = nullcontext()


def action_span(*, run_id: str, sandbox: str, tier: str) -> AbstractContextManager[None]:
    """The span of one action."""
    attributes = {"hatchway.run.id": run_id, "hatchway.sandbox": sandbox, "hatchway.tier": tier}
    return _recorded("execute_code", attributes) if is_traced() else _NOTHING


def call_span(name: str, *, call_id: str, run_id: str) -> AbstractContextManager[None]:
    """The span of one call, from its tool's start to its end; only where `is_traced`."""
    return _recorded(name, {"gen_ai.tool.call.id": call_id, "hatchway.run.id": run_id})


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
    from opentelemetry import trace

    named: dict[str, Any] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool, **attributes}
    tracer = trace.get_tracer("hatchway")
    with tracer.start_as_current_span(f"execute_tool {tool}", attributes=named, record_exception=False) as span:
        try:
            yield
        except Exception as e:
            span.set_attribute("error.type", type(e).__name__)
            raise
