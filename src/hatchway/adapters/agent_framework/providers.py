"""The providers: each gives an agent `execute_code` in one sandbox, with tools that only the code can call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self, Unpack

from agent_framework import AgentSession, Content, ContextProvider, FunctionTool, SessionContext

from hatchway.adapters.agent_framework.contents import ResultForm
from hatchway.adapters.agent_framework.environments import Environments, made_setup
from hatchway.adapters.agent_framework.forms import ToolInput, ToolServer
from hatchway.adapters.agent_framework.nested import processes
from hatchway.adapters.agent_framework.options import ApprovalMode, Options, complete, effective_approval, spelled_out
from hatchway.adapters.agent_framework.pauses import Answer, Pauses
from hatchway.adapters.agent_framework.registry import EXECUTE_CODE, Registry
from hatchway.adapters.agent_framework.tools import Approvals, CodeTool
from hatchway.core.grants import AllowedDomain, AllowedDomainInput, FileMount, FileMountInput

GUIDANCE = (
    "You can run Python with `execute_code`. Prefer one piece of code that does several steps, loops and "
    "calculations to many single calls; its description says what it can call and reach."
)


class _Provider(ContextProvider):
    """What the providers have in common; each of them is a type of its own."""

    _sandbox: str

    def __init__(
        self, source_id: str, *, settings: Mapping[str, Any], type_check: bool, **options: Unpack[Options]
    ) -> None:
        super().__init__(source_id)
        given = complete(options, self)
        self.approval_mode: ApprovalMode = given["approval_mode"] or "never_require"
        self.workspace_root: str | Path | None = given["workspace_root"]
        self._registry = Registry(
            given["tools"], given["file_mounts"] or (), given["allowed_domains"] or (), self.workspace_root,
            tool_name=given["tool_name"],
        )  # fmt: skip
        self._environments = Environments(made_setup(self._sandbox, settings, given, type_check=type_check))
        self._form: ResultForm = given["result_form"]
        self._tool_name: str = given["tool_name"]
        self._pauses = Pauses(source_id, self._environments.key, self._tool_name)
        self._connected: list[ToolServer] = []
        effective_approval(self.approval_mode, self._registry.snapshot(), per_call=given["per_call_approval"])

    def add_tools(self, tools: ToolInput | Sequence[ToolInput]) -> None:
        """Offer tools to the code; one of the same name is replaced. Runs under way keep what they have.

        An MCP server of the framework offers all of its tools; one that is not connected is, by the next run.
        """
        self._registry.add_tools(tools)

    def get_tools(self) -> list[FunctionTool | ToolServer]:
        """The tools the code can call, and the servers whose tools it can."""
        return self._registry.tools()

    def remove_tool(self, name: str) -> None:
        """Take a tool away; raises KeyError when there is none of this name."""
        self._registry.remove_tool(name)

    def clear_tools(self) -> None:
        """Take all tools away: `execute_code` is then a plain interpreter."""
        self._registry.clear_tools()

    def add_file_mounts(self, mounts: FileMountInput | Sequence[FileMountInput]) -> None:
        """Show host files to the code; a mount at the same path is replaced. Granting it is its approval."""
        self._registry.add_mounts(mounts)

    def get_file_mounts(self) -> list[FileMount]:
        """The mounts, with absolute paths; the workspace is not among them."""
        return self._registry.mounts()

    def remove_file_mount(self, mount_path: str) -> None:
        """Take a mount away; raises KeyError when there is none at this path."""
        self._registry.remove_mount(mount_path)

    def clear_file_mounts(self) -> None:
        """Take all mounts away."""
        self._registry.clear_mounts()

    def add_allowed_domains(self, domains: AllowedDomainInput | Sequence[AllowedDomainInput]) -> None:
        """Let the code reach network targets; an entry for the same one is replaced. Granting it is its approval."""
        self._registry.add_domains(domains)

    def get_allowed_domains(self) -> list[AllowedDomain]:
        """The targets the code can reach."""
        return self._registry.domains()

    def remove_allowed_domain(self, domain: str) -> None:
        """Take a target away; raises KeyError when there is none."""
        self._registry.remove_domain(domain)

    def clear_allowed_domains(self) -> None:
        """Take all targets away."""
        self._registry.clear_domains()

    async def before_run(
        self, *, agent: Any, session: AgentSession | None, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Give the run `execute_code`, for the tools and grants of this moment, and a word about it.

        Raises:
            SandboxUnavailable: There is no such sandbox here.
            InvalidSetting: The agent has middleware that calls inside the code would pass by.
            InvalidTool: Two tools have one name.
        """
        if servers := self._registry.servers():
            await self._connect(servers)
        snapshot = self._registry.snapshot()
        setup = self._environments.setup
        tool = CodeTool(
            environments=self._environments,
            snapshot=snapshot,
            description=(await self._environments.described(snapshot)).description,
            approval_mode=effective_approval(self.approval_mode, snapshot, per_call=setup.per_call),
            form=self._form,
            pauses=self._pauses,
            tool_name=self._tool_name,
            middleware=processes(_middleware(agent, context)) if snapshot.tools else (),
        )
        context.extend_instructions(self.source_id, GUIDANCE.replace(EXECUTE_CODE, self._tool_name))
        context.extend_tools(self.source_id, [tool])
        context.extend_middleware(self.source_id, Approvals())

    def decide(
        self, request: Content, answers: Mapping[str, Answer] | Answer, *, session: AgentSession | None = None
    ) -> Content:
        """The response that answers a paused action, call by call, for `agent.run(response, session=session)`.

        Args:
            request: One of `response.user_input_requests`.
            answers: One answer for all calls in it, or one per `call_id`: `True`, `False`, `Allow()`, `Deny(reason)`,
                `Edit(args)`; of calls in doubt `Ran(value)` or `NotRun()`. What has no answer is denied. The code goes
                on and learns of each.
            session: The session of the run.

        Raises:
            InvalidSetting: No such action or call waits.
        """
        return self._pauses.decide(request, answers, session)

    async def __aenter__(self) -> Self:
        """`async with` closes it at the end."""
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the sandboxes of this event loop; actions paused without a journal end. Legal twice.

        Servers that were connected for a run are left.
        """
        try:
            await self._environments.aclose()
        finally:
            while self._connected:
                await self._connected.pop().close()

    async def _connect(self, servers: Sequence[ToolServer]) -> None:
        async with self._environments.opening():  # a server tells its tools some time after it is connected
            for server in servers:
                if not server.is_connected:
                    await server.connect()
                    self._connected.append(server)


def _middleware(agent: Any, context: SessionContext) -> list[Any]:
    """The middleware of an agent, one or several, and what other providers added."""
    own: Any = getattr(agent, "middleware", None) or ()
    return [*(own if isinstance(own, Sequence) else [own]), *context.get_middleware()]


class MontyCodeActProvider(_Provider):
    """CodeAct in Monty: starts in a millisecond, checks types first, runs a large subset of Python.

    Args:
        source_id: Where in a session's state its paused actions are.
        type_check: Check the code against the tools before it runs.
        options: See `Options`.
    """

    _sandbox = "monty"

    @spelled_out
    def __init__(
        self, source_id: str = "monty_codeact", *, type_check: bool = True, **options: Unpack[Options]
    ) -> None:
        super().__init__(source_id, settings={}, type_check=type_check, **options)


class JailCodeActProvider(_Provider):
    """CodeAct in the jail: the full CPython behind the kernel's walls, a fresh process per action.

    Args:
        source_id: Where in a session's state its paused actions are.
        options: See `Options`.
    """

    _sandbox = "jail"

    @spelled_out
    def __init__(self, source_id: str = "jail_codeact", **options: Unpack[Options]) -> None:
        super().__init__(source_id, settings={}, type_check=False, **options)


class ContainerCodeActProvider(_Provider):
    """CodeAct in a container: the Python of an image, with its packages.

    Args:
        source_id: Where in a session's state its paused actions are.
        image: Its image; None takes the sandbox's own.
        options: See `Options`.
    """

    _sandbox = "container"

    @spelled_out
    def __init__(
        self, source_id: str = "container_codeact", *, image: str | None = None, **options: Unpack[Options]
    ) -> None:
        super().__init__(source_id, settings={"image": image}, type_check=False, **options)


class HyperlightCodeActProvider(_Provider):
    """CodeAct in a Hyperlight micro-VM, where the machine has a hypervisor.

    Args:
        source_id: Where in a session's state its paused actions are.
        backend: Of the package `hyperlight-sandbox`.
        module: The packaged guest.
        module_path: A guest of your own, in its place.
        options: See `Options`.

    Raises:
        SandboxUnavailable: There is none that can be used; told when the provider is made.
    """

    _sandbox = "hyperlight"

    @spelled_out
    def __init__(
        self,
        source_id: str = "hyperlight_codeact",
        *,
        backend: str = "wasm",
        module: str | None = "python_guest.path",
        module_path: str | None = None,
        **options: Unpack[Options],
    ) -> None:
        settings = {"backend": backend, "module": module, "module_path": module_path}
        super().__init__(source_id, settings=settings, type_check=False, **options)
        self._environments.describe(self._registry.snapshot())
