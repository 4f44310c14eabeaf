"""The keys of `config.json`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hatchway.agent.json_places import JsonFile, Mistake, refused, told
from hatchway.agent.sandbox_config import SandboxConfig
from hatchway.tools.mcp.settings import HttpSettings, StdioSettings

Servers = Mapping[str, Mapping[str, Any]]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_VARIABLE = re.compile(r"\$\{")


class AgentSettings(BaseModel):
    """`config.json`, checked; every key has a default."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, protected_namespaces=())

    tool_search: Annotated[Literal["basic", "hybrid"], Field(alias="tool-search")] = "basic"
    """How code finds tools: by category, or also by searching in words."""
    mcp_servers: Annotated[Servers, Field(alias="mcp-servers")] = {}
    """MCP servers whose tools the model calls by JSON."""
    ptc_servers: Annotated[Servers, Field(alias="ptc-servers")] = {}
    """MCP servers whose tools the code calls."""
    model: Annotated[str, Field(min_length=1)] | None = None
    """A model of Pydantic AI, such as `anthropic:claude-sonnet-4-5`."""
    model_settings: Annotated[Mapping[str, Any] | None, Field(alias="model-settings")] = None
    """Temperature and the like, as Pydantic AI's ModelSettings."""
    sandbox: bool | str = True
    """True: the strongest wall there is; a name; False: no wall at all."""
    sandbox_config: Annotated[SandboxConfig | str | None, Field(alias="sandbox-config")] = None
    """What code may read, write and reach, or the file that says so."""
    packages: tuple[str, ...] = ()
    """What code may import beside the standard library, such as `pandas==2.*`."""
    python: Annotated[str, Field(min_length=1)] | None = None
    """The interpreter of an environment whose packages code may import, such as `.venv/bin/python`."""
    execution_timeout: Annotated[Seconds | None, Field(alias="execution-timeout")] = 300
    """Seconds an action may take, waiting for a person aside; null: any time."""
    approval_timeout: Annotated[Seconds | None, Field(alias="approval-timeout")] = None
    """Seconds a request for approval waits; null: any time."""


def check_servers(file: JsonFile, settings: AgentSettings) -> None:
    """See that the entries of servers can be right once their variables are filled in.

    Raises:
        InvalidSetting: All mistakes, a line each.
    """
    mistakes: list[Mistake] = []
    for section, servers in (("mcp-servers", settings.mcp_servers), ("ptc-servers", settings.ptc_servers)):
        for name, entry in servers.items():
            mistakes += _mistakes(file, (section, name), entry)
    if mistakes:
        raise refused(mistakes)


def _mistakes(file: JsonFile, above: tuple[str, str], entry: Mapping[str, Any]) -> list[Mistake]:
    if ("command" in entry) == ("url" in entry):
        return [file.mistake(above, "an entry has either a command or a url")]
    kind = StdioSettings if "command" in entry else HttpSettings
    try:
        kind.model_validate(entry)
    except ValidationError as e:
        known = [error for error in e.errors() if not _VARIABLE.search(str(error["input"]))]
        return [told(file, above, error, kind) for error in known]
    return []
