"""HostedSession: what was said to a vendor's model, and the container its code lives in."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hatchway.core.limits import Limits
from hatchway.core.results import ExecFile
from hatchway.core.sandbox import CodeExecution, CodeSession, Functions, OnOutput
from hatchway.hosted.code import ContainerRef, Item

if TYPE_CHECKING:
    from hatchway.hosted.sandbox import HostedSandbox


@dataclass(eq=False)
class HostedSession(CodeSession):
    """A conversation with a vendor and its container, kept from request to request. One request at a time.

    `history` is in the vendor's own form and whole: it can be stored as JSON and given to a new session.
    """

    sandbox: HostedSandbox
    history: list[Item] = field(default_factory=list[Item])
    container: ContainerRef | None = None
    placed: dict[str, str] = field(default_factory=dict[str, str])
    """Where the uploaded files of this session lie in its container, by the name the model knows."""
    brought: dict[str, str] = field(default_factory=dict[str, str])
    """Ids at the vendor of all files this session was given, by name: a container after this one has them again."""
    here: dict[str, ExecFile] = field(default_factory=dict[str, ExecFile])
    """Files for code that runs here, by name; they are not part of `state`."""
    is_supplied: bool = False
    """Whether the files its code tool mounts were brought."""
    lost: set[str] = field(default_factory=set[str])
    """Ids of containers that are gone."""
    is_busy: bool = False
    session_id: str = field(default_factory=lambda: uuid.uuid4().hex)

    async def execute(
        self,
        code: str,
        functions: Functions = (),
        *,
        inputs: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        on_output: OnOutput | None = None,
    ) -> CodeExecution:
        """Ask the vendor's model; what was said before and what its code left is there."""
        return await self.sandbox.begin(self, code, functions, inputs=inputs, limits=limits, on_output=on_output)

    def forget(self, file_ids: Set[str]) -> None:
        """The vendor has these files no more."""
        self.brought = {name: file_id for name, file_id in self.brought.items() if file_id not in file_ids}

    def state(self) -> dict[str, Any]:
        """The session as JSON."""
        container = self.container
        return {
            "history": self.history,
            "container": container and {
                "id": container.id, "expires_at": container.expires_at, "memory_limit": container.memory_limit,
            },
            "placed": self.placed,
            "brought": self.brought,
            "is_supplied": self.is_supplied,
            "lost": sorted(self.lost),
        }  # fmt: skip

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` gave."""
        self.history = list(state["history"])
        self.container = ContainerRef(**state["container"]) if state["container"] else None
        self.placed = dict(state["placed"])
        self.brought = dict(state.get("brought", {}))
        self.is_supplied = state["is_supplied"]
        self.lost = set(state["lost"])
