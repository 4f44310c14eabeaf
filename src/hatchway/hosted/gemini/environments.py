"""Gemini's environments: containers of its Interactions, made, looked into, deleted. Google calls them experimental."""

from __future__ import annotations

import warnings
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from hatchway.core.errors import InvalidSetting
from hatchway.core.results import ExecFile, check_input_files
from hatchway.hosted.code import FileRef
from hatchway.hosted.containers import NetworkPolicy
from hatchway.hosted.gemini.vendor import GeminiVendor

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class GeminiEnvironment:
    """One environment; give its id to `client.aio.interactions.create(environment=…)`."""

    id: str
    status: str = ""
    """`active` or `expired`, as Google says it."""
    file_count: int | None = None
    size_bytes: int | None = None
    """Of all its files."""


class GeminiEnvironments:
    """The environments of one account.

    Args:
        client: As for `GeminiAdapter`.

    Raises:
        InvalidSetting: No client, and no key.
    """

    def __init__(self, client: Any = None) -> None:
        self._vendor = GeminiVendor(client)

    async def create(
        self,
        *,
        network_policy: NetworkPolicy | None = None,
        files: Iterable[ExecFile] = (),
        copy_of: str | None = None,
    ) -> GeminiEnvironment:
        """Make one.

        Args:
            network_policy: What its code may reach; None leaves it to Google.
            files: What lies in it.
            copy_of: The id of one it begins as a copy of; then without `files`.

        Raises:
            InvalidSetting: Files for a copy, secrets, or what Google refuses.
            SandboxUnavailable, TransportError: Google is busy, or cannot be reached.
        """
        sources = _sources(tuple(files))
        if copy_of is not None and sources:
            raise InvalidSetting("a copy has the files of what it is a copy of", hint="leave files= or copy_of= out")
        body = {"from_environment": copy_of, "sources": sources or None, "network": _network(network_policy)}
        given = {name: value for name, value in body.items() if value is not None}
        return _environment(await self._asked(lambda: self._all.create(**given)))

    async def get(self, environment_id: str) -> GeminiEnvironment:
        """What is known of one. Raises as `create`; one that is gone is `InvalidSetting`."""
        return _environment(await self._asked(lambda: self._all.get(id=environment_id)))

    async def files(self, environment_id: str) -> tuple[FileRef, ...]:
        """All files in one; `GeminiAdapter.download` and `download_all` have what is in them."""
        found: list[FileRef] = []
        token: str | None = None
        while True:
            more = {"page_token": token} if token else {}
            page = await self._asked(
                lambda more=more: self._all.files.list(environment=environment_id, path="", recursive=True, **more)
            )
            found += [
                FileRef(provider="gemini", file_id=file.path, container_id=environment_id, filename=file.name or "")
                for file in page.files or ()
                if file.type == "file" and file.path
            ]
            token = page.next_page_token
            if not token:
                return tuple(found)

    async def delete(self, environment_id: str) -> None:
        """Delete one, with its files. Raises as `get`."""
        await self._asked(lambda: self._all.delete(id=environment_id))

    @property
    def _all(self) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that it is experimental is told here
            return self._vendor.client.environments

    async def _asked(self, ask: Callable[[], Awaitable[T]]) -> T:
        try:
            return await ask()
        except Exception as e:
            failure = self._vendor.failure(e, {})
            if failure is None:
                raise
            raise failure.error("gemini") from e


def _sources(files: tuple[ExecFile, ...]) -> list[dict[str, str]]:
    check_input_files(files)
    return [
        {"type": "inline", "encoding": "base64", "content": b64encode(file.content).decode(), "target": file.name}
        for file in files
    ]


def _network(policy: NetworkPolicy | None) -> Any:
    if policy is None:
        return None
    if policy.domain_secrets:
        raise InvalidSetting("Google keeps secrets of its own for environments", hint="leave domain_secrets out")
    if not policy.allowed_domains:
        return "disabled"
    return {"allowlist": [{"domain": domain} for domain in policy.allowed_domains]}


def _environment(told: Any) -> GeminiEnvironment:
    return GeminiEnvironment(
        id=cast(str, told.id), status=told.status or "", file_count=told.file_count, size_bytes=told.size_bytes
    )
