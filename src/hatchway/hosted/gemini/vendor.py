"""Gemini as a vendor: the one file that speaks with its SDK."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, cast

from pydantic import ValidationError

from hatchway.core.errors import InvalidSetting, MissingExtra, TransportError
from hatchway.core.results import guessed_type
from hatchway.hosted.code import Answer, ContainerRef, FileRef, HostedCodeResult, Item
from hatchway.hosted.context import ToolResult
from hatchway.hosted.failures import Failure, seconds, transport_failure
from hatchway.hosted.gemini.reading import read_response
from hatchway.hosted.gemini.stream import GeminiFold
from hatchway.hosted.gemini.tool import MAX_FILE_BYTES, GeminiCodeExecutionTool, executed
from hatchway.hosted.gemini.writing import write_answers, write_request
from hatchway.hosted.mounts import FileRules, HostMount, LocalFile
from hatchway.hosted.provider_tool import ProviderTool
from hatchway.hosted.settings import checked
from hatchway.hosted.vendor import Answered, Ask, Fold, Offer, Received, Vendor
from hatchway.hosted.wire import as_item, item_of, items_of, text_of

try:
    from google import genai
    from google.genai import errors, types
    from google.genai.client import AsyncClient
except ImportError as e:
    raise MissingExtra("the Google Gen AI SDK", "gemini") from e

_WAYS_IN = ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE")
"""Variables of the environment by which the SDK finds a way in."""

_FUNCTIONS = "run(prompt, tool_choice=…)"
_SCHEMA = "run(prompt, output_schema=…)"
_OURS = {
    "system_instruction": "GeminiAdapter(…, instructions=…)",
    "max_output_tokens": "GeminiAdapter(…, max_output_tokens=…)",
    "tool_config": _FUNCTIONS,
    "automatic_function_calling": "leave it out: calls pass the gate",
    "response_mime_type": _SCHEMA,
    "response_schema": _SCHEMA,
    "response_json_schema": _SCHEMA,
    "http_options": "GeminiAdapter(…, client=genai.Client(http_options=…))",
    "should_return_http_response": "leave it out: HostedReply.items has what came",
}


class GeminiVendor(Vendor):
    """Speaks with Gemini.

    Args:
        client: A `genai.Client` or its `aio`; without one, one is made from the environment.

    Raises:
        InvalidSetting: Something else, or no key.
    """

    provider = "gemini"
    takes = FileRules(max_file_bytes=MAX_FILE_BYTES)
    runs = GeminiCodeExecutionTool

    def __init__(self, client: Any = None) -> None:
        if client is None and not any(os.environ.get(name) for name in _WAYS_IN):
            raise _no_key("there is no API key")  # the SDK would say so too, and then fail to close what it began
        try:
            given = genai.Client() if client is None else client
        except ValueError as e:
            raise _no_key(str(e)) from None
        given = given.aio if isinstance(given, genai.Client) else given
        if not isinstance(given, AsyncClient):
            raise InvalidSetting(
                f"the client is a genai.Client or its aio, not {type(given).__name__}", hint="genai.Client().aio"
            )
        self.client: Any = given
        self._inline: dict[str, Item] = {}

    def settings(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Of `GenerateContentConfig`, in the words of the SDK or of the API; as the API takes them."""
        fields = types.GenerateContentConfig.model_fields
        known = {**{name: name for name in fields}, **{told.alias: name for name, told in fields.items() if told.alias}}
        named = {known.get(name, name): value for name, value in given.items()}
        try:
            config = types.GenerateContentConfig(**checked(named, fields, _OURS))
        except ValidationError as e:
            first = e.errors()[0]
            wrong = f"settings: {'.'.join(map(str, first['loc']))}: {first['msg']}"
            raise InvalidSetting(wrong, hint="help(google.genai.types.GenerateContentConfig) has the words") from None
        return config.model_dump(mode="json", by_alias=True, exclude_none=True)

    def spoken(self, prompt: str, files: Sequence[Item]) -> list[Item]:
        """A user's content."""
        return [{"role": "user", "parts": [*files, {"text": prompt}]}]

    def request(self, ask: Ask) -> dict[str, Any]:
        """For `generate_content`."""
        return write_request(ask)

    def read(self, response: Item, before: Sequence[Item]) -> Answer:
        """Every part."""
        return read_response(response)

    def answered(self, answers: Sequence[Answered], offer: Offer) -> list[Item]:
        """All responses in one content."""
        return write_answers(answers)

    def cleaned(self, history: Sequence[Item]) -> list[Item]:
        """There is no container that could be gone."""
        return list(history)

    def fold(self) -> Fold:
        """For one stream."""
        return GeminiFold()

    async def send(self, request: Mapping[str, Any]) -> Received:
        """The response as JSON, exactly as it came."""
        came = await self.client.models.generate_content(**_arguments(request, is_raw=True))
        raw = came.sdk_http_response
        try:
            response: Any = json.loads(raw.body)
        except (TypeError, ValueError):
            raise TransportError("gemini sent something that is no JSON", hint="check base_url") from None
        if not isinstance(response, dict):
            raise TransportError("gemini sent something that is no response", hint="check base_url")
        return Received(response=cast(Item, response), request_id=text_of(as_item(raw.headers), "x-request-id") or None)

    async def stream(self, request: Mapping[str, Any]) -> AsyncGenerator[Item, None]:
        """The chunks as JSON. The SDK empties parts it does not know; that they were there is still told."""
        chunks = await self.client.models.generate_content_stream(**_arguments(request, is_raw=False))
        async for chunk in chunks:
            told = chunk.model_dump(mode="json", by_alias=True, exclude_none=True)
            headers = told.pop("sdkHttpResponse", {}).get("headers", {})
            _mend_base64(told)
            yield {**told, "_request_id": headers.get("x-request-id")}

    def failure(self, error: Exception, request: Mapping[str, Any]) -> Failure | None:
        """By status."""
        if isinstance(error, errors.APIError):
            return _status_failure(error, error.code, error.message)
        status = getattr(error, "status_code", None)
        if isinstance(status, int):  # the newer part of the SDK, with errors of a class it does not name
            return _status_failure(error, status, str(error))
        if isinstance(error, errors.UnknownApiResponseError):
            return Failure(kind="broken", message=str(error))
        return transport_failure(error)

    async def upload(self, file: LocalFile) -> str:
        """Nowhere: it goes along in the request."""
        data = b64encode(file.content).decode("ascii")
        self._inline[file.digest] = {"inlineData": {"mimeType": guessed_type(file.name), "data": data}}
        return file.digest

    async def discard(self, file_id: str) -> None:
        """It was never there."""
        self._inline.pop(file_id, None)

    async def download(self, file: FileRef) -> bytes:
        """From its environment; code execution itself keeps no files."""
        if file.container_id is None:
            raise InvalidSetting("Gemini keeps no files", hint="its pictures are in HostedReply.images")
        return await self.client.environments.files.download(environment=file.container_id, path=file.file_id)

    async def place(
        self, tool: ProviderTool[Any, Any, Any], uploaded: Mapping[str, str], container: ContainerRef | None
    ) -> tuple[dict[str, str], list[Item]]:
        """In what is said, each after its name."""
        places = dict.fromkeys(uploaded, "in the conversation, after its name")
        said = [(Item(text=f"The file {name}:"), self._inline[digest]) for name, digest in uploaded.items()]
        return places, [part for pair in said for part in pair]

    def mounts(self, tool: ProviderTool[Any, Any, Any]) -> Sequence[HostMount]:
        """Those of the tool."""
        return cast(GeminiCodeExecutionTool, tool).host_mounts

    def result(self, tool: ProviderTool[Any, Any, Any], code: HostedCodeResult) -> tuple[Any, ToolResult[Any]]:
        """A `GeminiCodeResult`."""
        return executed(code)

    def memory_limit(self, tool: ProviderTool[Any, Any, Any] | None) -> str | None:
        """Gemini has no tiers."""
        return None


def _no_key(why: str) -> InvalidSetting:
    return InvalidSetting(f"gemini: {why}", hint="export GEMINI_API_KEY=…, or give a client")


def _arguments(request: Mapping[str, Any], *, is_raw: bool) -> dict[str, Any]:
    """Of the SDK's call. The body goes as it is, beside the SDK's types: they refuse parts they do not know."""
    config = types.GenerateContentConfig(
        http_options=types.HttpOptions(extra_body=request["body"], retry_options=types.HttpRetryOptions(attempts=1)),
        should_return_http_response=True if is_raw else None,
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    return {"model": request["model"], "contents": "-", "config": config}


def _mend_base64(chunk: Item) -> None:
    """The SDK writes bytes in the alphabet of URLs; the vendor wants signatures back as it sent them."""
    for candidate in items_of(chunk, "candidates"):
        for part in items_of(item_of(candidate, "content"), "parts"):
            for place, name in ((part, "thoughtSignature"), (item_of(part, "inlineData"), "data")):
                if name in place:
                    place[name] = text_of(place, name).replace("-", "+").replace("_", "/")


def _status_failure(error: Exception, code: int | None, message: str | None) -> Failure:
    status = int(code or 0)
    headers: Mapping[str, str] = getattr(getattr(error, "response", None), "headers", None) or {}
    common: dict[str, Any] = {
        "message": message or str(error),
        "status": status or None,
        "request_id": headers.get("x-request-id"),
    }
    if status in (401, 403):
        return Failure(kind="refused", **common)
    if status in (408, 409, 429) or status >= 500 or status < 400:
        return Failure(kind="busy", retry_after=seconds(headers.get("retry-after") or _delay(error)), **common)
    return Failure(kind="setting", **common)


def _delay(error: Exception) -> str | None:
    """Google asks for a time in the body, where others have a header."""
    told = item_of(as_item(getattr(error, "details", None)), "error")
    return next((delay for each in items_of(told, "details") if (delay := text_of(each, "retryDelay"))), None)
