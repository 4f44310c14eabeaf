"""What an agent has used so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from hatchway.agent.models import ModelResponse


@dataclass(slots=True, kw_only=True)
class Usage:
    """Tokens and money of all requests of an agent and its subagents."""

    input_tokens: int = 0
    """Tokens sent."""
    output_tokens: int = 0
    """Tokens that came back."""
    cost: float | None = None
    """US dollars; None while no price is known."""
    context_tokens: int = 0
    """Tokens of the last request and its reply: how full the model's context is."""

    _parent: Usage | None = field(default=None, repr=False)

    def count(self, reply: ModelResponse) -> None:
        """Add one reply."""
        usage = reply.usage
        self._add(usage.input_tokens, usage.output_tokens, _price(reply))
        self.context_tokens = usage.input_tokens + usage.output_tokens

    def for_child(self) -> Usage:
        """Of a subagent: what it counts is counted here too."""
        return Usage(_parent=self)

    def _add(self, sent: int, received: int, price: float | None) -> None:
        self.input_tokens += sent
        self.output_tokens += received
        if price is not None:
            self.cost = (self.cost or 0.0) + price
        if self._parent is not None:
            self._parent._add(sent, received, price)


def _price(reply: ModelResponse) -> float | None:
    if not reply.model_name or not reply.provider_name:  # a local or scripted model: nobody has a price for it
        return None
    try:
        return float(reply.cost().total_price)
    except Exception:  # the price list knows few models, and says so in many ways
        return None
