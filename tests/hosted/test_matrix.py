"""Every kind of thing a vendor sends, through its real SDK, whole and streamed: nothing is dropped. Prints a table."""

import base64
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hatchway import tool
from hatchway.core.errors import AnswerWithheld
from hatchway.core.events import AgentEvent, CodeExecutionOutput, RunFailed, Thoughts
from hatchway.hosted import (
    AnthropicAdapter,
    GeminiAdapter,
    HostedCallMade,
    HostedReply,
    OpenAIAdapter,
    UnknownItem,
    capability_table,
    code_tool,
)
from hatchway.testing import ScriptedVendor

pytestmark = pytest.mark.anyio
PAGE = Path(__file__).parents[2] / "docs" / "hosted.md"
VENDORS: dict[str, Any] = {"openai": OpenAIAdapter, "anthropic": AnthropicAdapter, "gemini": GeminiAdapter}
PNG = base64.b64encode(b"png").decode()
Parts = list[dict[str, Any]]


@tool
def price(item: str) -> int:
    """What an item costs."""
    return 3


@dataclass
class Came:
    """What a request gave."""

    reply: HostedReply | None
    error: BaseException | None
    events: list[AgentEvent]


Check = Callable[[Came], Any]


def openai(*items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": "r", "model": "m", "status": "completed", "output": list(items), **more}


def anthropic(*blocks: dict[str, Any], stop: str = "end_turn") -> dict[str, Any]:
    base = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
    container = {"id": "c", "expires_at": "2030-01-01T00:00:00Z"}
    return {**base, "content": list(blocks), "stop_reason": stop, "container": container, "usage": {}}


def gemini(*parts: dict[str, Any], finish: str = "STOP") -> dict[str, Any]:
    return {
        "candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": finish}],
        "responseId": "r",
    }


def interpreted(**more: Any) -> dict[str, Any]:
    outputs = [{"type": "logs", "logs": "out"}]
    told = {"type": "code_interpreter_call", "id": "ci", "code": "c", "container_id": "k", "status": "completed"}
    return {**told, "outputs": outputs, **more}


def message(text: str = "t", **part: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": [], **part}]
    return {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content}


def server(kind: str, given: dict[str, Any], content: dict[str, Any]) -> Parts:
    return [
        {"type": "server_tool_use", "id": "s", "name": kind, "input": given},
        {"type": f"{kind}_tool_result", "tool_use_id": "s", "content": {"type": f"{kind}_result", **content}},
    ]


def error(code: str) -> Parts:
    kind = "code_execution"
    return server(kind, {"code": "c"}, {"type": f"{kind}_tool_result_error", "error_code": code})


def ended(**more: Any) -> dict[str, Any]:
    return {"stdout": "out", "stderr": "", "return_code": 0, "content": [], **more}


def ran(outcome: str = "OUTCOME_OK") -> Parts:
    code = {"executableCode": {"code": "c", "language": "PYTHON"}}
    return [code, {"codeExecutionResult": {"outcome": outcome, "output": "out"}}]


def status(wanted: str, language: str = "python") -> Check:
    return lambda came: came.reply and [(c.status, c.call.language) for c in came.reply.codes] == [(wanted, language)]


def withheld(came: Came) -> bool:
    return isinstance(came.error, AnswerWithheld)


def pictured(came: Came) -> bool:
    return came.reply is not None and [image.content for image in came.reply.images] == [b"png"]


def paused(came: Came) -> bool:
    return came.reply is not None and came.reply.text == "tt"


def filed(came: Came) -> bool:
    return came.reply is not None and [file.file_id for file in came.reply.files_made] == ["f"]


def called(is_from_code: bool) -> Check:
    return lambda came: (
        [event.call.is_from_code for event in came.events if isinstance(event, HostedCallMade)] == [is_from_code]
        and came.reply is not None
        and came.reply.usage.calls == 1
    )


def heard(kind: type[AgentEvent]) -> Check:
    return lambda came: came.reply is not None and any(isinstance(event, kind) for event in came.events)


def kept(came: Came) -> bool:
    return heard(UnknownItem)(came) and came.reply is not None and "hologram" in str(came.reply.items)


def opaque(name: str) -> Check:
    return lambda came: came.reply is not None and name in str([dict(code.opaque) for code in came.reply.codes])


GAPS = ["a kind of tomorrow of gemini, streamed"]
"""Google's SDK empties the part before anybody sees it; that it was there is told."""
FUNCTION = {"type": "function_call", "call_id": "x", "name": "price", "arguments": '{"item": "a"}'}
PROGRAM = {"type": "program", "call_id": "p", "code": "js", "fingerprint": "opaque"}
PROGRAM_OUTPUT = {"type": "program_output", "call_id": "p", "result": "3", "status": "completed"}
REASONING = {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "h"}]}
MADE = {"type": "code_execution_output", "file_id": "f"}
CALLER = {"type": "code_execution_20260120", "tool_id": "s"}
USE = {"type": "tool_use", "id": "x", "name": "price", "input": {"item": "a"}}
CITED = {"type": "container_file_citation", "container_id": "k", "file_id": "f", "filename": "n"}
IMAGE = [{"type": "image", "url": f"data:image/png;base64,{PNG}"}]
TEXT = {"type": "text", "text": "t"}
KINDS: dict[str, dict[str, tuple[list[dict[str, Any]], Check]]] = {
    "Python that ran": {
        "openai": ([openai(interpreted(), message())], status("unknown")),
        "anthropic": ([anthropic(*server("code_execution", {"code": "c"}, ended()), TEXT)], status("ok")),
        "gemini": ([gemini(*ran(), {"text": "t"})], status("ok")),
    },
    "Python that failed": {
        "openai": ([openai(interpreted(status="failed"), message())], status("failed")),
        "anthropic": ([anthropic(*server("code_execution", {"code": "c"}, ended(return_code=1)))], status("failed")),
        "gemini": ([gemini(*ran("OUTCOME_FAILED"), {"text": "t"})], status("failed")),
    },
    "code out of time": {
        "anthropic": ([anthropic(*error("execution_time_exceeded"))], status("timeout")),
        "gemini": ([gemini(*ran("OUTCOME_DEADLINE_EXCEEDED"), {"text": "t"})], status("timeout")),
    },
    "code that did not end": {
        "openai": ([openai(interpreted(status="incomplete"), message())], status("interrupted")),
        "gemini": ([gemini(ran()[0], {"text": "t"})], status("interrupted")),
    },
    "the machinery unavailable": {"anthropic": ([anthropic(*error("unavailable"))], status("unavailable"))},
    "bash": {
        "anthropic": (
            [anthropic(*server("bash_code_execution", {"command": "c"}, ended()))],
            status("ok", "bash"),
        )
    },
    "changes of files": {
        "anthropic": (
            [anthropic(*server("text_editor_code_execution", {}, {"type": "text_editor_code_execution_view_result"}))],
            status("ok", "file_edit"),
        )
    },
    "JavaScript programs": {
        "openai": ([openai(PROGRAM, PROGRAM_OUTPUT, message())], status("unknown", "javascript")),
    },
    "pictures": {
        "openai": ([openai(interpreted(outputs=IMAGE), message())], pictured),
        "gemini": ([gemini(*ran(), {"inlineData": {"mimeType": "image/png", "data": PNG}}, {"text": "t"})], pictured),
    },
    "files to download": {
        "openai": ([openai(interpreted(), message(annotations=[CITED]))], filed),
        "anthropic": (
            [anthropic(*server("code_execution", {}, ended(content=[MADE])))],
            filed,
        ),
    },
    "opaque fields": {
        "openai": ([openai(PROGRAM, PROGRAM_OUTPUT, message())], opaque("fingerprint")),
        "anthropic": (
            [anthropic(*server("code_execution", {}, {**ended(), "type": "encrypted_code_execution_result",
                                                      "encrypted_stdout": "z"}))],
            opaque("encrypted_stdout"),
        ),
        "gemini": ([gemini({**ran()[0], "thoughtSignature": "AAEC"}, ran()[1], {"text": "t"})], opaque("AAEC")),
    },
    "thoughts": {
        "openai": ([openai(REASONING, message())], heard(Thoughts)),
        "anthropic": ([anthropic({"type": "thinking", "thinking": "h", "signature": "s"}, TEXT)], heard(Thoughts)),
        "gemini": ([gemini({"text": "h", "thought": True}, {"text": "t"})], heard(Thoughts)),
    },
    "calls of our tools by its code": {
        "openai": ([openai(PROGRAM, {**FUNCTION, "caller": {"type": "program", "caller_id": "p"}}),
                    openai(PROGRAM_OUTPUT, message())], called(True)),
        "anthropic": ([anthropic({**USE, "caller": CALLER}, stop="tool_use"),
                       anthropic(TEXT)], called(True)),
    },
    "calls of our tools by its model": {
        "openai": ([openai(FUNCTION), openai(message())], called(False)),
        "anthropic": ([anthropic(USE, stop="tool_use"), anthropic(TEXT)], called(False)),
        "gemini": ([gemini({"functionCall": {"name": "price", "args": {"item": "a"}}}), gemini({"text": "t"})],
                   called(False)),
    },
    "a turn that pauses": {
        "anthropic": ([anthropic(TEXT, stop="pause_turn"), anthropic(TEXT)], paused)
    },
    "an answer that is filtered": {
        "openai": ([openai(status="incomplete", incomplete_details={"reason": "content_filter"})], withheld),
        "anthropic": ([anthropic(TEXT, stop="refusal")], withheld),
        "gemini": ([gemini({"text": "t"}, finish="SAFETY")], withheld),
    },
    "an answer that is cut short": {
        "openai": ([openai(status="incomplete", incomplete_details={"reason": "max_output_tokens"})], withheld),
        "anthropic": ([anthropic(TEXT, stop="max_tokens")], withheld),
        "gemini": ([gemini({"text": "t"}, finish="MAX_TOKENS")], withheld),
    },
    "a kind of tomorrow": {
        "openai": ([openai({"type": "hologram"}, message())], kept),
        "anthropic": ([anthropic({"type": "hologram"}, TEXT)], kept),
        "gemini": ([gemini({"hologram": {}}, {"text": "t"})], kept),
    },
}  # fmt: skip


async def came(provider: Any, script: list[dict[str, Any]], streams: bool) -> Came:
    """What a script gives, asked for whole or streamed."""
    events: list[AgentEvent] = []
    client = ScriptedVendor(provider, script).client()
    code = code_tool(provider, tools=[] if provider == "gemini" else [price])
    direct = [price] if provider == "gemini" else []
    async with VENDORS[provider]("m", client=client, tools=[code, *direct], on_event=events.append) as adapter:
        try:
            if not streams:
                return Came(await adapter.run("go"), None, events)
            async for _ in adapter.stream("go"):
                pass
        except AnswerWithheld as e:
            return Came(None, e, events)
    last = events[-1]
    failure = last.error if isinstance(last, RunFailed) else None
    result: Any = last.result if isinstance(last, CodeExecutionOutput) else None
    return Came(result, failure, events)


async def test_nothing_is_dropped_and_the_page_shows_it() -> None:
    lines = ["| | " + " | ".join(VENDORS) + " |", "|---" * (len(VENDORS) + 1) + "|"]
    missing: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for kind, by_vendor in KINDS.items():
            cells: list[str] = []
            for provider in VENDORS:
                if provider not in by_vendor:
                    cells.append("—")
                    continue
                script, check = by_vendor[provider]
                ways = {way: check(await came(provider, script, way == "streamed")) for way in ("whole", "streamed")}
                missing += [f"{kind} of {provider}, {way}" for way, is_there in ways.items() if not is_there]
                cells.append(", ".join(way for way, is_there in ways.items() if is_there))
            lines.append(f"| {kind} | {' | '.join(cells)} |")
    table = "\n".join(lines) + "\n"
    print(table)  # noqa: T201
    assert missing == GAPS
    assert _between("matrix") == table
    assert _between("capabilities") == capability_table()


def _between(word: str) -> str:
    page = PAGE.read_text(encoding="utf-8")
    return page.partition(f"<!-- {word} -->\n")[2].partition(f"<!-- /{word} -->")[0].strip("\n") + "\n"
