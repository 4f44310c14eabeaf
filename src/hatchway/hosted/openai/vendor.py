"""OpenAI as a vendor: the one file that speaks with its SDK."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, cast

from hatchway.core.errors import InvalidSetting, MissingExtra, TransportError
from hatchway.hosted.code import Answer, ContainerRef, FileRef, HostedCodeResult, Item
from hatchway.hosted.containers import AutoContainerConfig, ExistingContainerRef
from hatchway.hosted.context import ToolResult
from hatchway.hosted.failures import MOST_READ, Failure, seconds, transport_failure, unreachable
from hatchway.hosted.mounts import FileRules, HostMount, LocalFile
from hatchway.hosted.openai.reading import read_response
from hatchway.hosted.openai.stream import OpenAIFold
from hatchway.hosted.openai.tool import MAX_FILE_BYTES, SUFFIXES, OpenAICodeInterpreterTool, interpreted
from hatchway.hosted.openai.writing import without_container, write_answers, write_request
from hatchway.hosted.provider_tool import ProviderTool
from hatchway.hosted.settings import CONVERSATION, arguments, checked
from hatchway.hosted.vendor import Answered, Ask, Fold, Offer, Received, Vendor
from hatchway.hosted.wire import as_item, item_of, text_of

try:
    import openai
except ImportError as e:
    raise MissingExtra("the OpenAI SDK", "openai") from e

_ABOUT_CONTAINER = re.compile(r"container|cntr_", re.I)
_ABOUT_SETTING = re.compile(r"container\.\w|container file|unknown parameter", re.I)
"""Something the container was asked with, or a file in it: another one would not help."""
_GONE = re.compile(
    r"expired|found|not exist|expected container_id|no such|no longer|deleted|unknown|invalid container|cntr_", re.I
)

_OURS = {
    "model": 'OpenAIAdapter("its-name")',
    "input": "run(prompt)",
    "stream": "adapter.stream(prompt)",
    "background": "leave it out: run() waits, stream() tells",
    "instructions": "OpenAIAdapter(…, instructions=…)",
    "max_output_tokens": "OpenAIAdapter(…, max_output_tokens=…)",
    "tool_choice": "run(prompt, tool_choice=…)",
    "previous_response_id": CONVERSATION,
    "conversation": CONVERSATION,
}


class OpenAIVendor(Vendor):
    """Speaks with OpenAI.

    Args:
        client: An `AsyncOpenAI`; without one, one is made from the environment.

    Raises:
        InvalidSetting: A client that blocks, or no key.
    """

    provider = "openai"
    takes = FileRules(max_file_bytes=MAX_FILE_BYTES, suffixes=SUFFIXES)
    runs = OpenAICodeInterpreterTool
    tells_returns = True

    def __init__(self, client: Any = None) -> None:
        if isinstance(client, openai.OpenAI):
            raise InvalidSetting("the client would block the event loop", hint="give an openai.AsyncOpenAI")
        self._is_own = client is None
        try:
            given = openai.AsyncOpenAI() if client is None else client
        except openai.OpenAIError as e:
            raise InvalidSetting(f"openai: {e}", hint="export OPENAI_API_KEY=…, or give a client") from None
        if not isinstance(given, openai.AsyncOpenAI):
            raise InvalidSetting(
                f"the client is an openai.AsyncOpenAI, not {type(given).__name__}", hint="client=openai.AsyncOpenAI()"
            )
        self._client: Any = given.with_options(max_retries=0)  # we retry: told, bounded, within the deadline

    def settings(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Of `responses.create`."""
        return checked(given, arguments(self._client.responses.create), _OURS)

    def spoken(self, prompt: str, files: Sequence[Item]) -> list[Item]:
        """A user's message."""
        return [{"role": "user", "content": [{"type": "input_text", "text": prompt}, *files]}]

    def request(self, ask: Ask) -> dict[str, Any]:
        """For `responses.create`."""
        return write_request(ask)

    def read(self, response: Item, before: Sequence[Item]) -> Answer:
        """Every output item."""
        return read_response(response, before)

    def answered(self, answers: Sequence[Answered], offer: Offer) -> list[Item]:
        """Outputs of our functions."""
        return write_answers(answers, offer)

    def cleaned(self, history: Sequence[Item]) -> list[Item]:
        """Without a container."""
        return without_container(history)

    def fold(self) -> Fold:
        """For one stream."""
        return OpenAIFold()

    async def send(self, request: Mapping[str, Any]) -> Received:
        """The response as JSON, exactly as it came."""
        raw = await self._client.responses.with_raw_response.create(**request)
        try:
            response: Any = raw.http_response.json()
        except ValueError:
            raise TransportError("openai sent something that is no JSON", hint="check base_url") from None
        if not isinstance(response, dict) or "output" not in response:
            raise TransportError("openai sent something that is no response", hint="check base_url")
        return Received(response=cast(Item, response), request_id=raw.request_id)

    async def stream(self, request: Mapping[str, Any]) -> AsyncGenerator[Item, None]:
        """The events as JSON, those the SDK does not know too."""
        async with await self._client.responses.create(**request, stream=True) as events:
            request_id = events.response.headers.get("x-request-id")
            async for event in events:
                if not hasattr(event, "to_dict"):  # the SDK lets through whatever JSON it is
                    raise TransportError("openai sent something that is no event", hint="check base_url")
                if event.type == "error":
                    raise openai.APIError(event.message, request=events.response.request, body=None)
                yield {**event.to_dict(mode="json", warnings=False), "_request_id": request_id}

    def failure(self, error: Exception, request: Mapping[str, Any]) -> Failure | None:
        """By status and words."""
        if isinstance(error, openai.APIStatusError):
            return _status_failure(error)
        if isinstance(error, openai.APIConnectionError):
            return unreachable(error)
        if isinstance(error, openai.APIError):  # an error in the midst of a stream
            return Failure(kind="gone" if _is_gone(None, error.message[:MOST_READ]) else "busy", message=error.message)
        return transport_failure(error)

    def lost(self, response: Item) -> Failure | None:
        """As a 404 would tell it: a response may find out once it runs code."""
        error = item_of(response, "error")
        if not _is_gone(None, f"{text_of(error, 'code')} {text_of(error, 'message')}"[:MOST_READ]):
            return None
        return Failure(kind="gone", message=text_of(error, "message"))

    async def upload(self, file: LocalFile) -> str:
        """Through the Files API: the same file can go into any container."""
        made = await self._client.files.create(file=(file.upload_name, file.content), purpose="user_data")
        return made.id

    async def discard(self, file_id: str) -> None:
        """Through the Files API."""
        await self._client.files.delete(file_id)

    async def download(self, file: FileRef) -> bytes:
        """From its container, or the Files API for one that has none."""
        if file.container_id is None:
            return (await self._client.files.content(file.file_id)).read()
        files = self._client.containers.files
        return (await files.content.retrieve(file.file_id, container_id=file.container_id)).read()

    async def place(
        self, tool: ProviderTool[Any, Any, Any], uploaded: Mapping[str, str], container: ContainerRef | None
    ) -> tuple[dict[str, str], list[Item]]:
        """Into their container; it tells where they lie."""
        assert container is not None, "`made` gives one"
        files = self._client.containers.files
        return {name: (await files.create(container.id, file_id=each)).path for name, each in uploaded.items()}, []

    async def made(self, tool: ProviderTool[Any, Any, Any]) -> ContainerRef:
        """Made before the request: only so is it known where its files lie."""
        given = cast(OpenAICodeInterpreterTool, tool).container
        tier = given.memory_limit or "1g"
        config = given if isinstance(given, AutoContainerConfig) else AutoContainerConfig(memory_limit=tier)
        settings = config.payload()
        del settings["type"]
        if config.expires_after_minutes is not None:
            settings["expires_after"] = {"anchor": "last_active_at", "minutes": config.expires_after_minutes}
        made = await self._client.containers.create(name="hatchway", **settings)
        return ContainerRef(id=made.id, memory_limit=settings["memory_limit"])

    async def unmade(self, container_id: str) -> None:
        """With its files."""
        await self._client.containers.delete(container_id)

    def mounts(self, tool: ProviderTool[Any, Any, Any]) -> Sequence[HostMount]:
        """Those of its container."""
        return cast(OpenAICodeInterpreterTool, tool).container.host_mounts

    def result(self, tool: ProviderTool[Any, Any, Any], code: HostedCodeResult) -> tuple[Any, ToolResult[Any]]:
        """A `CodeInterpreterResult`."""
        return interpreted(code)

    def memory_limit(self, tool: ProviderTool[Any, Any, Any] | None) -> str | None:
        """Of its container."""
        return None if tool is None else cast(OpenAICodeInterpreterTool, tool).container.memory_limit

    def fixed_container(self, tool: ProviderTool[Any, Any, Any] | None) -> str | None:
        """The id that was given."""
        config = None if tool is None else cast(OpenAICodeInterpreterTool, tool).container
        return config.id if isinstance(config, ExistingContainerRef) else None

    async def aclose(self) -> None:
        """A client that was given stays open."""
        if self._is_own:
            await self._client.close()


def _status_failure(error: openai.APIStatusError) -> Failure:
    status, body = error.status_code, as_item(error.body)
    message = text_of(body, "message") or error.message
    common: dict[str, Any] = {"message": message, "status": status, "request_id": error.request_id}
    words = f"{body.get('code')} {body.get('param')} {message}"[:MOST_READ]
    if status in (400, 404, 410) and _is_gone(status, words):
        return Failure(kind="gone", **common)
    if status in (401, 403):
        return Failure(kind="refused", **common)
    if status in (408, 409, 429) or status >= 500:
        return Failure(kind="busy", retry_after=seconds(error.response.headers.get("retry-after")), **common)
    return Failure(kind="setting", **common)


def _is_gone(status: int | None, words: str) -> bool:
    """There is no word of the vendor's for it: by what the error is about, and what it says of it."""
    if _ABOUT_SETTING.search(words):
        return False
    return bool(_ABOUT_CONTAINER.search(words) and (status in (404, 410) or _GONE.search(words)))
