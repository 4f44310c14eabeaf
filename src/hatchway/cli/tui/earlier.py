"""Earlier: where a conversation stood when it was left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hatchway.trace.blocks import Block, Line, Part, Prose
from hatchway.trace.text import cut, neutral

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, UserPromptPart

SHOWN_CHARACTERS = 4_000


def last_exchange(messages: Sequence[ModelMessage]) -> list[Block]:
    """The last prompt, and what was said to it."""
    from pydantic_ai.messages import TextPart, UserPromptPart

    blocks: list[Block] = []
    turns = 0
    for message in messages:
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                turns += 1
                blocks = [Prose(text=cut(neutral(_typed(part)), SHOWN_CHARACTERS), who="you")]
            elif isinstance(part, TextPart) and part.content.strip():
                blocks.append(Prose(text=cut(neutral(part.content), SHOWN_CHARACTERS)))
    earlier = f"goes on after {turns} turns" if turns != 1 else "goes on after 1 turn"
    return [Line(mark="▶", tone="accent", parts=[Part(earlier, "dim")]), *blocks]


def prompts(messages: Sequence[ModelMessage]) -> list[str]:
    """What the person said, the oldest first: ↑ at the prompt brings it back."""
    from pydantic_ai.messages import UserPromptPart

    return [_typed(part) for message in messages for part in message.parts if isinstance(part, UserPromptPart)]


def _typed(prompt: UserPromptPart) -> str:
    """What the person typed: the first text; those behind it are files that it mentions."""
    content = [prompt.content] if isinstance(prompt.content, str) else prompt.content
    return next((part for part in content if isinstance(part, str)), "")
