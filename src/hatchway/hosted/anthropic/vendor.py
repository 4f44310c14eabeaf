"""Anthropic as a vendor: the one file that speaks with its SDK."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, cast

from hatchway.core.errors import InvalidSetting, MissingExtra, TransportError
from hatchway.hosted.anthropic.reading import read_message
from hatchway.hosted.anthropic.stream import AnthropicFold
from hatchway.hosted.anthropic.tool import MAX_FILE_BYTES, AnthropicCodeExecutionTool, executed
from hatchway.hosted.anthropic.writing import (
    said_files,
    without_container,
    without_files,
    write_answers,
    write_request,
)
from hatchway.hosted.code import Answer, ContainerRef, FileRef, HostedCodeResult, Item
from hatchway.hosted.context import ToolResult
from hatchway.hosted.failures import MOST_READ, Failure, seconds, transport_failure, unreachable
from hatchway.hosted.mounts import FileRules, HostMount, LocalFile
from hatchway.hosted.provider_tool import ProviderTool
from hatchway.hosted.settings import arguments, checked
from hatchway.hosted.vendor import Answered, Ask, Fold, Offer, Received, Vendor
from hatchway.hosted.wire import as_item, item_of, text_of

try:
    import anthropic
except ImportError as e:
    raise MissingExtra("the Anthropic SDK", "anthropic") from e

_GONE = re.compile(
    r"container.*(?:expired|not found|not exist|no such|deleted|invalid)|(?:expired|unknown) container", re.I
)

_SAMPLING = ("temperature", "top_p", "top_k")
"""No arguments of the SDK's call since anthropic 1."""
_OURS = {
    "model": 'AnthropicAdapter("its-name")',
    "messages": "run(prompt)",
    "stream": "adapter.stream(prompt)",
    "system": "AnthropicAdapter(…, instructions=…)",
    "max_tokens": "AnthropicAdapter(…, max_output_tokens=…)",
    "tool_choice": "run(prompt, tool_choice=…)",
    "container": "code_tool('anthropic', container=…, skills=…)",
}


class AnthropicVendor(Vendor):
    """Speaks with Anthropic.

    Args:
        client: An `AsyncAnthropic`; without one, one is made from the environment.

    Raises:
        InvalidSetting: A client that blocks, or no key.
    """

    provider = "anthropic"
    takes = FileRules(max_file_bytes=MAX_FILE_BYTES)
    runs = AnthropicCodeExecutionTool

    def __init__(self, client: Any = None) -> None:
        if isinstance(client, anthropic.Anthropic):
            raise InvalidSetting("the client would block the event loop", hint="give an anthropic.AsyncAnthropic")
        self._is_own = client is None
        given = anthropic.AsyncAnthropic() if client is None else client
        if not isinstance(given, anthropic.AsyncAnthropic):
            raise InvalidSetting(
                f"the client is an anthropic.AsyncAnthropic, not {type(given).__name__}",
                hint="client=anthropic.AsyncAnthropic()",
            )
        if self._is_own and not (given.api_key or given.auth_token or getattr(given, "credentials", None)):
            raise InvalidSetting("anthropic: there is no API key", hint="export ANTHROPIC_API_KEY=…, or give a client")
        self._client: Any = given.with_options(max_retries=0)  # we retry: told, bounded, within the deadline
        self._names: dict[str, str] = {}

    def settings(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Of `messages.create`; what its SDK names no more and the API still takes goes beside them."""
        known = arguments(self._client.messages.create)
        settings = checked(given, {*known, *_SAMPLING}, _OURS)
        beside = {name: settings.pop(name) for name in _SAMPLING if name in settings and name not in known}
        return {**settings, "extra_body": {**beside, **settings.get("extra_body", {})}} if beside else settings

    def spoken(self, prompt: str, files: Sequence[Item]) -> list[Item]:
        """A user's message."""
        once = {text_of(item, "file_id"): item for item in files}.values()
        return [{"role": "user", "content": [*once, {"type": "text", "text": prompt}]}]

    def request(self, ask: Ask) -> dict[str, Any]:
        """For `messages.create`."""
        return write_request(ask)

    def read(self, response: Item, before: Sequence[Item]) -> Answer:
        """Every block."""
        return read_message(response, before)

    def answered(self, answers: Sequence[Answered], offer: Offer) -> list[Item]:
        """All results in one message."""
        return write_answers(answers)

    def cleaned(self, history: Sequence[Item]) -> list[Item]:
        """Without a container."""
        return without_container(history)

    def files_said(self, history: Sequence[Item]) -> set[str]:
        """Those its messages upload into a container: each is looked for with every request."""
        return said_files(history)

    def without_files(self, history: Sequence[Item], file_ids: Set[str]) -> list[Item]:
        """Without the blocks that upload them."""
        return without_files(history, file_ids)

    def fold(self) -> Fold:
        """For one stream."""
        return AnthropicFold()

    async def send(self, request: Mapping[str, Any]) -> Received:
        """The message as JSON, exactly as it came."""
        # named, or the SDK refuses an answer that may be long; the adapter's limits end one that is too long
        timed = {"timeout": self._client.timeout, **request}
        raw = await self._client.messages.with_raw_response.create(**timed)
        try:
            message: Any = json.loads(raw.http_response.text)
        except ValueError:
            raise TransportError("anthropic sent something that is no JSON", hint="check base_url") from None
        if not isinstance(message, dict) or "content" not in message:
            raise TransportError("anthropic sent something that is no message", hint="check base_url")
        return Received(response=cast(Item, message), request_id=raw.headers.get("request-id"))

    async def stream(self, request: Mapping[str, Any]) -> AsyncGenerator[Item, None]:
        """The events as JSON, those the SDK does not know too."""
        async with await self._client.messages.create(**request, stream=True) as events:
            request_id = events.response.headers.get("request-id")
            async for event in events:
                yield {**event.to_dict(mode="json", warnings=False), "_request_id": request_id}

    def failure(self, error: Exception, request: Mapping[str, Any]) -> Failure | None:
        """By status and words; a container that is gone may come as a plain 500."""
        if isinstance(error, anthropic.APIStatusError):
            return _status_failure(error, request)
        if isinstance(error, anthropic.APIConnectionError):
            return unreachable(error)
        if isinstance(error, anthropic.APIError):
            return Failure(kind="busy", message=error.message)
        if isinstance(error, TypeError) and "authentication" in str(error):
            return Failure(kind="refused", message="there is no API key: set ANTHROPIC_API_KEY, or give a client")
        return transport_failure(error)

    async def upload(self, file: LocalFile) -> str:
        """Through the Files API."""
        made = await self._client.files.upload(file=(file.upload_name, file.content))
        self._names[made.id] = file.upload_name  # the same bytes under another name are not uploaded again
        return made.id

    async def discard(self, file_id: str) -> None:
        """Through the Files API."""
        await self._client.files.delete(file_id)

    async def download(self, file: FileRef) -> bytes:
        """From the Files API."""
        return await (await self._client.files.download(file.file_id)).read()

    async def named(self, file: FileRef) -> FileRef:
        """Its name is with the file, not with the output that tells of it."""
        if file.filename:
            return file
        known = await self._client.files.retrieve_metadata(file.file_id)
        return replace(file, filename=known.filename or "")

    async def place(
        self, tool: ProviderTool[Any, Any, Any], uploaded: Mapping[str, str], container: ContainerRef | None
    ) -> tuple[dict[str, str], list[Item]]:
        """By a block of the message for each file; it will lie under the name it was uploaded with."""
        places = {name: f"under the name {self._names.get(file_id, name)}" for name, file_id in uploaded.items()}
        ids = uploaded.values()
        if not uploaded:
            ids = self.attached(tool)
            places = dict.fromkeys(ids, "uploaded before")
        return places, [{"type": "container_upload", "file_id": file_id} for file_id in ids]

    def mounts(self, tool: ProviderTool[Any, Any, Any]) -> Sequence[HostMount]:
        """Those of the tool."""
        return cast(AnthropicCodeExecutionTool, tool).host_mounts

    def attached(self, tool: ProviderTool[Any, Any, Any]) -> Sequence[str]:
        """Files uploaded before."""
        return cast(AnthropicCodeExecutionTool, tool).file_ids

    def result(self, tool: ProviderTool[Any, Any, Any], code: HostedCodeResult) -> tuple[Any, ToolResult[Any]]:
        """A `CodeExecutionToolResult`."""
        return executed(code)

    def memory_limit(self, tool: ProviderTool[Any, Any, Any] | None) -> str | None:
        """Anthropic has no tiers."""
        return None

    def fixed_container(self, tool: ProviderTool[Any, Any, Any] | None) -> str | None:
        """The id that was given."""
        return None if tool is None else cast(AnthropicCodeExecutionTool, tool).container

    async def aclose(self) -> None:
        """A client that was given stays open."""
        if self._is_own:
            await self._client.close()


def _status_failure(error: anthropic.APIStatusError, request: Mapping[str, Any]) -> Failure:
    status, told = error.status_code, item_of(as_item(error.body), "error")
    message = text_of(told, "message") or error.message
    common: dict[str, Any] = {"message": message, "status": status, "request_id": error.request_id}
    if status in (400, 404, 410) and _GONE.search(message[:MOST_READ]):
        return Failure(kind="gone", **common)
    if status == 500 and request.get("container") and "container_upload" in json.dumps(request.get("messages", [])):
        return Failure(
            kind="gone", is_sure=False, retry_after=seconds(error.response.headers.get("retry-after")), **common
        )
    if status in (401, 403):
        return Failure(kind="refused", **common)
    if status in (408, 409, 429) or status >= 500 or status < 400:  # an error within a stream has the status 200
        return Failure(kind="busy", retry_after=seconds(error.response.headers.get("retry-after")), **common)
    return Failure(kind="setting", **common)
