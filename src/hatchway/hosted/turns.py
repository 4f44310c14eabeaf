"""HostedTurns: a vendor's model and its code tool, for an agent that gives a prompt and wants the answer."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from importlib import import_module
from typing import Any

from hatchway.core.calls import FunctionCall
from hatchway.core.decisions import ApproveCallback, Decision, Deny
from hatchway.core.errors import CodeExecutionError, HatchwayError, SandboxCrashed
from hatchway.core.events import (
    AgentEvent,
    CodeExecutionDisplay,
    CodeExecutionOutput,
    CodeExecutionOutputChunk,
    Emit,
    RunFailed,
    RunStarted,
)
from hatchway.core.results import ExecFile, ExecutionResult, guessed_type
from hatchway.hosted.adapter import HostedAdapter
from hatchway.hosted.code import HostedCodeResult
from hatchway.hosted.downloads import safe_name
from hatchway.hosted.events import HostedCodeEnded, HostedCodeStarted
from hatchway.hosted.provider_tool import ProviderTool
from hatchway.hosted.reply import HostedReply
from hatchway.hosted.session import HostedSession
from hatchway.mode.vendor_code import VendorAction, VendorModel, VendorTurn, VendorTurns
from hatchway.tools.functions import Tool

ADAPTERS = {
    "openai": "hatchway.hosted.openai.adapter:OpenAIAdapter",
    "anthropic": "hatchway.hosted.anthropic.adapter:AnthropicAdapter",
    "gemini": "hatchway.hosted.gemini.adapter:GeminiAdapter",
}


class HostedTurns(VendorTurns):
    """Turns at the vendor of a code tool. Calls that must be asked for are denied where the tool has no `approve`.

    Args:
        tool: The vendor's code tool.
        model: Who writes the code.
    """

    def __init__(self, tool: ProviderTool[Any, Any, Any], model: VendorModel) -> None:
        module, _, name = ADAPTERS[tool.provider].partition(":")
        made: Callable[..., HostedAdapter] = getattr(import_module(module), name)
        self._adapter = made(
            model.name,
            client=model.client,
            tools=[tool],
            instructions=model.instructions,
            approve=None if tool.approve else _deciding(tool.tools),
            max_rounds=model.max_rounds,
            max_output_tokens=model.max_output_tokens,
            settings=model.settings,
        )

    def session(self) -> HostedSession:
        """A conversation with its container."""
        return self._adapter.session()

    async def turn(
        self, prompt: str, *, session: object, files: Sequence[ExecFile] = (), emit: Emit, streams: bool
    ) -> VendorTurn:
        """As the contract says."""
        assert isinstance(session, HostedSession), "given by `session`"
        turn = self._adapter.desk.turn(prompt, session, files=files)
        turn.streams = streams
        retelling = _Retelling(emit)
        async with aclosing(self._adapter.events(turn)) as events:
            async for event in events:
                match event:
                    case CodeExecutionOutput(result=HostedReply() as reply):
                        return await self._turned(reply)
                    case RunFailed(error=error):
                        raise error
                    case _:
                        retelling.tell(event)
        raise SandboxCrashed(f"{self._adapter.provider} gave no reply", hint="ask again")

    async def aclose(self) -> None:
        """Give up what is under way."""
        await self._adapter.aclose()

    async def _turned(self, reply: HostedReply) -> VendorTurn:
        return VendorTurn(
            text=reply.text,
            actions=tuple([await self._action(code) for code in reply.codes]),
            requests=len(reply.telemetry),
            input_tokens=sum(each.input_tokens or 0 for each in reply.telemetry),
            output_tokens=sum(each.output_tokens or 0 for each in reply.telemetry),
        )

    async def _action(self, code: HostedCodeResult) -> VendorAction:
        call, end = code.call, _end(code)
        files, notes = await self._files(code)
        if isinstance(end, ExecutionResult):
            end = replace(end, files=files, stderr="\n".join(part for part in (end.stderr, *notes) if part))
        else:
            end.files = files
        return VendorAction(
            code=call.code,
            language=call.language,
            call_id=call.call_id,
            end=end,
            success=code.success,
            exit_code=code.exit_code,
        )

    async def _files(self, code: HostedCodeResult) -> tuple[tuple[ExecFile, ...], list[str]]:
        """The files it made, under names that are safe; and a word about each that could not be had."""
        found: list[ExecFile] = []
        notes: list[str] = []
        for file in code.files:
            try:
                named = await self._adapter.named(file)
                name = safe_name(named.filename, file.file_id)
                content = await self._adapter.download(file)
                found.append(ExecFile(name=name, content=content, mime_type=guessed_type(name)))
            except HatchwayError as e:
                notes.append(f"the file {file.filename or file.file_id} could not be downloaded: {e.message}")
        return tuple(found), notes


class _Retelling:
    """Events of a vendor as an agent tells its own: each piece of code is a run."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._run_id = ""
        self._runs: dict[str, str] = {}
        """The run of each piece of code, by the vendor's id of it."""

    def tell(self, event: AgentEvent) -> None:
        match event:
            case HostedCodeStarted(call=call):
                self._run_id = self._runs[call.call_id] = uuid.uuid4().hex
                self._emit(RunStarted(call.code, call.provider, "vendor", run_id=self._run_id))
            case HostedCodeEnded(result=code):
                self._emit(_ended(code, self._runs.get(code.call.call_id, self._run_id)))
            case CodeExecutionOutputChunk() | CodeExecutionDisplay():
                self._emit(replace(event, run_id=self._run_id))
            case RunStarted():
                pass  # that the vendor is asked
            case _:
                self._emit(event)


def _deciding(tools: Sequence[Tool]) -> ApproveCallback:
    """As where no person is: what must be asked for is denied."""
    asked = {each.name for each in tools if each.approval == "ask"}
    nobody = Deny("nobody is here to approve it")

    def approve(call: FunctionCall) -> bool | Decision:
        return nobody if call.function_name in asked else True

    return approve


def _end(code: HostedCodeResult) -> ExecutionResult | CodeExecutionError:
    try:
        return code.as_execution()
    except CodeExecutionError as e:
        return e


def _ended(code: HostedCodeResult, run_id: str) -> AgentEvent:
    end = _end(code)
    if isinstance(end, CodeExecutionError):
        return RunFailed(end, run_id=run_id)
    return CodeExecutionOutput(code.text or None, end.images, result=end, run_id=run_id)
