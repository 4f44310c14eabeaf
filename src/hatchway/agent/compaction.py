"""Compaction: before the history is too long for the model, what lies behind is summed up."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from hatchway.agent.history import History
from hatchway.agent.models import (
    ModelAPIError,
    ModelContextWindowExceededError,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolReturnPart,
    UserPromptPart,
)
from hatchway.agent.replies import Replies, passing_failure
from hatchway.agent.usage import Usage
from hatchway.core.errors import InvalidSetting
from hatchway.core.events import Compacted, Emit
from hatchway.mode.replies import reply_text

CONTEXT_TOKENS = 128_000
"""Taken for a model of which nothing is known."""
FULL = 0.8
"""Of the context, from where on it is summed up."""
KEPT = 0.2
"""Of the context, for the newest messages, which stay as they are."""
CHARACTERS_PER_TOKEN = 4
LONGEST_QUOTE = 2_000
"""Characters of one tool result that the model sees when it sums up."""
_log = logging.getLogger("hatchway")
PROMPT = Path(__file__).parent / "prompts" / "compaction.md"


class Compaction:
    """Keeps a history within a model's context.

    Args:
        context_tokens: What the model takes at most.
        emit: Takes the event.
        agent_id: Whose history it is.

    Raises:
        InvalidSetting: There is no room for a word.
    """

    def __init__(self, context_tokens: int | None, emit: Emit, agent_id: str) -> None:
        if context_tokens is not None and context_tokens < 1:
            raise InvalidSetting(f"context_tokens must be 1 or more, not {context_tokens}")
        self._most = context_tokens or CONTEXT_TOKENS
        self._emit, self._agent_id = emit, agent_id
        self._counted = (0, 0)  # messages, and their tokens: a history only grows, until it is summed up

    async def reply(self, history: History, replies: Replies, usage: Usage) -> ModelResponse:
        """The model's next reply, the history summed up before where that is due, or where the vendor says so."""
        if self._length(history, usage) > FULL * self._most:
            await self._compact(history, replies, usage, must=False)
        try:
            return await replies.next(history.messages)
        except ModelContextWindowExceededError:
            if not await self._compact(history, replies, usage, must=True):
                raise
            return await replies.next(history.messages)

    async def _compact(self, history: History, replies: Replies, usage: Usage, *, must: bool) -> bool:
        """Whether it was summed up; where it `must` and the model will not, both ends of it are kept."""
        before = self._length(history, usage)
        told = tokens_of(history.messages)
        behind, kept = _split(history.messages, min(int(KEPT * self._most), told // 2))
        if not behind:
            return False
        quoted = "\n\n".join(_quoted(message) for message in behind)
        summary = await self._summary(quoted, replies, usage)
        if summary is None and not must:
            return False  # it is not full yet: the person can go on
        text = summary or _cut(quoted, LONGEST_QUOTE)
        said = ModelRequest([UserPromptPart(f"What happened so far, summed up:\n\n{text}")])
        await history.replace([said, *kept])
        self._counted = (0, 0)
        usage.context_tokens = after = tokens_of(history.messages)
        self._emit(Compacted(before, after, agent_id=self._agent_id))
        return True

    def _length(self, history: History, usage: Usage) -> int:
        """About how many tokens the history has; the vendor's count, where it tells one, is the better one."""
        known, tokens = self._counted
        tokens += tokens_of(history.messages[known:])
        self._counted = (len(history.messages), tokens)
        return max(usage.context_tokens, tokens)

    async def _summary(self, quoted: str, replies: Replies, usage: Usage) -> str | None:
        """What the model says it was about; None where it refuses, or has no room for it.

        Raises:
            ModelAPIError: The vendor is not there just now.
        """
        room = min(int(self._most * FULL) * CHARACTERS_PER_TOKEN, len(quoted))
        while True:
            asked = f"{PROMPT.read_text(encoding='utf-8').strip()}\n\n{_cut(quoted, room)}"
            try:
                reply = await replies.aside([ModelRequest([UserPromptPart(asked)])])
            except ModelContextWindowExceededError:
                room //= 2  # the model takes less than was thought
                if room < LONGEST_QUOTE:
                    return None
            except ModelAPIError as e:
                if passing_failure(e) is not None:
                    raise
                _log.warning("the conversation could not be summed up: %s", e)
                return None
            else:
                usage.count(reply)
                return reply_text(reply)


def tokens_of(messages: Sequence[ModelMessage]) -> int:
    """About how many tokens messages have."""
    return sum(len(_quoted(message, longest=None)) for message in messages) // CHARACTERS_PER_TOKEN


def _split(messages: Sequence[ModelMessage], kept_tokens: int) -> tuple[Sequence[ModelMessage], Sequence[ModelMessage]]:
    """What is summed up, and the newest messages; the cut never parts a reply from the answers to its calls."""
    tokens, start = 0, len(messages)
    for place in range(len(messages) - 1, -1, -1):
        tokens += tokens_of([messages[place]])
        if tokens > kept_tokens and start < len(messages):
            break
        if isinstance(messages[place], ModelResponse) or _is_prompt(messages[place]):
            start = place
    last_prompt = max((i for i, message in enumerate(messages) if _is_prompt(message)), default=0)
    if start == len(messages):  # nothing fits: all but the last prompt goes
        start = last_prompt
    return messages[:start], messages[start:]


def _is_prompt(message: ModelMessage) -> bool:
    return isinstance(message, ModelRequest) and any(isinstance(part, UserPromptPart) for part in message.parts)


def _quoted(message: ModelMessage, longest: int | None = LONGEST_QUOTE) -> str:
    lines: list[str] = []
    for part in message.parts:
        match part:
            case UserPromptPart(content=content):
                text = content if isinstance(content, str) else " ".join(c for c in content if isinstance(c, str))
                lines.append(f"User: {text}")
            case TextPart(content=text):
                lines.append(f"Assistant: {text}")
            case ToolReturnPart():
                lines.append(f"Result of {part.tool_name}: {_cut(part.model_response_str(), longest)}")
            case _:
                args = getattr(part, "args", None)
                if args:
                    lines.append(f"Call of {getattr(part, 'tool_name', '')}: {_cut(str(args), longest)}")
    return "\n".join(lines)


def _cut(text: str, longest: int | None) -> str:
    if longest is None or len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"
