"""What the host says about its MCP servers: `mcpServers` entries as every MCP client writes them, and a few more words.

Commands and credentials come from here only, never from the code.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from hatchway.core.decisions import Approval
from hatchway.core.errors import InvalidSetting
from hatchway.tools.mcp.other_words import in_our_words

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_SECTIONS = ("mcpServers", "ptc-servers", "mcp-servers", "servers")


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SandboxSettings(_Settings):
    """The jail a server's command runs in; it sees the system's directories, what is named here and nothing else."""

    read: tuple[str, ...] = ()
    """Places of the host it may read, at their own paths."""
    write: tuple[str, ...] = ()
    """Places of the host it may read and change."""
    deny_read: tuple[str, ...] = ()
    """Patterns of what it cannot open, such as `.env`."""
    deny_write: tuple[str, ...] = ()
    """Patterns of what it cannot change."""
    workdir: str | None = None
    """Where it starts; the first place of `write`, then of `read` by default."""
    allowed_domains: tuple[str, ...] = ()
    """Names it may reach over HTTP, through a proxy."""
    denied_domains: tuple[str, ...] = ()
    """Names it may not."""
    tier: Literal["namespaces", "landlock"] | None = None
    """Which wall; None is the strongest that works here."""
    memory_bytes: Annotated[int, Field(gt=0)] = 1 << 30
    """Memory of the command with all its children."""


class _Entry(_Settings):
    approval: Approval = "ask"
    """What the gate does with a call of its tools when no rule decides it."""
    timeout: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 60.0
    """Seconds a call may take; each sign of progress starts them anew, ten times at most."""
    connect_timeout: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 60.0
    """Seconds the server may take to start and to list its tools."""
    include: tuple[str, ...] = ()
    """Patterns of its tools' names; none is all of them."""
    exclude: Annotated[tuple[str, ...], Field(validation_alias=AliasChoices("exclude", "excluded_tools"))] = ()
    """Patterns of tools that are not offered; `excluded_tools` is another word for it."""
    optional: bool = False
    """Whether to go on without it when it cannot be reached."""
    disabled: bool = False
    """Whether to leave it out."""


class StdioSettings(_Entry):
    """A server that is a command of this machine."""

    command: Annotated[str, Field(min_length=1)]
    """The program."""
    args: tuple[str, ...] = ()
    """Its arguments."""
    env: Mapping[str, str] = Field(default_factory=dict)
    """Environment variables it gets beside the few every program needs."""
    cwd: str | None = None
    """Where it starts; not in a sandbox, which has `workdir`."""
    sandbox: SandboxSettings | None = None
    """The jail it runs in; None runs it as any program of this user."""
    type: Literal["stdio"] = "stdio"


class HttpSettings(_Entry):
    """A server that is reached by streamable HTTP."""

    url: Annotated[str, Field(pattern=r"^https?://[^/\s]+")]
    """Its endpoint."""
    headers: Mapping[str, str] = Field(default_factory=dict)
    """Sent with every request: `{"Authorization": "Bearer ${TOKEN}"}`."""
    ca_file: str | None = None
    """A certificate authority to trust instead of the system's."""
    type: Literal["http", "streamable-http", "streamable_http", "streamableHttp"] = "http"


ServerSettings = StdioSettings | HttpSettings


def server_settings(
    entries: Mapping[str, Any], environment: Mapping[str, str] | None = None
) -> dict[str, ServerSettings]:
    """The entries checked, every `${VAR}` and `${VAR:-default}` in them filled in. Disabled ones are left out.

    Raises:
        InvalidSetting: An entry is not valid, or variables are not set; the message names all of them.
    """
    known = os.environ if environment is None else environment
    entries = {name: _ours(entry) for name, entry in entries.items()}
    raw = {name: entry for name, entry in entries.items() if not isinstance(entry, _Entry) and not _is_off(entry)}
    missing = sorted(variables_in(raw) - known.keys())
    if missing:
        raise InvalidSetting(
            f"the settings of MCP servers use {len(missing)} environment variable(s) that are not set: "
            + ", ".join(missing),
            hint=f"export {' '.join(f'{name}=…' for name in missing)}, or write ${{{missing[0]}:-default}}",
        )
    found = {
        name: entry if isinstance(entry, _Entry) else _checked(name, _filled(entry, known))
        for name, entry in entries.items()
    }
    return {name: cast(ServerSettings, entry) for name, entry in found.items() if not entry.disabled}


def load_servers(path: str | Path, environment: Mapping[str, str] | None = None) -> dict[str, ServerSettings]:
    """The servers of a file: its `mcpServers` (or `ptc-servers`), or the whole object.

    Raises:
        InvalidSetting: The file cannot be read, is no JSON object, or an entry is not valid.
    """
    try:
        told: Any = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as e:
        raise InvalidSetting(f"the MCP servers in {path} cannot be read: {e}") from None
    found = cast(dict[str, Any], told) if isinstance(told, dict) else {"mcpServers": None}
    section: Any = next((found[word] for word in _SECTIONS if word in found), found)
    if not isinstance(section, dict):
        raise InvalidSetting(f"{path} holds no MCP servers", hint='write {"mcpServers": {"name": {"command": …}}}')
    return server_settings(cast(dict[str, Any], section), environment)


def _ours(entry: Any) -> Any:
    return in_our_words(cast(Mapping[str, Any], entry)) if isinstance(entry, Mapping) else entry


def _is_off(entry: Any) -> bool:
    return isinstance(entry, dict) and cast(dict[str, Any], entry).get("disabled") is True


def _checked(name: str, entry: Any) -> ServerSettings:
    if not isinstance(entry, dict) or ("command" in entry) == ("url" in entry):
        raise InvalidSetting(
            f"MCP server {name!r}: an entry has either a command or a url",
            hint='{"command": "uvx", "args": ["mcp-server-time"]} or {"url": "https://…/mcp"}',
        )
    kind = StdioSettings if "command" in entry else HttpSettings
    if cast(dict[str, Any], entry).get("type") == "sse":
        raise InvalidSetting(
            f"MCP server {name!r}: the SSE transport is no more, streamable HTTP is spoken here",
            hint='most servers speak it at another path: {"url": "https://…/mcp"}',
        )
    try:
        return TypeAdapter(kind).validate_python(entry)
    except ValidationError as e:
        told = "; ".join(f"{'.'.join(map(str, each['loc']))}: {_wrong(each)}" for each in e.errors())
        unknown = [each["loc"] for each in e.errors() if each["type"] == "extra_forbidden"]
        meant = [word for each in unknown for word in _meant(kind, each)]
        hint = f"did you mean {' and '.join(map(repr, meant))}?" if meant else ""
        raise InvalidSetting(f"MCP server {name!r}: {told}", hint=hint) from None


def _meant(kind: type[_Entry], place: tuple[int | str, ...]) -> list[str]:
    """The word of an entry, or of its `sandbox`, that comes near to one there is not."""
    words = kind if len(place) == 1 else SandboxSettings
    return get_close_matches(str(place[-1]), words.model_fields, n=1)


def _wrong(error: Any) -> str:
    """What is wrong with a word of an entry, in ours where pydantic's are for developers."""
    if error["type"] == "extra_forbidden":
        return "there is no such word"
    return "must begin with http:// or https://" if error["type"] == "string_pattern_mismatch" else error["msg"]


def variables_in(part: Any) -> set[str]:
    """The variables that entries need: every `${VAR}` without a default."""
    if isinstance(part, str):
        return {found[1] for found in _VARIABLE.finditer(part) if found[2] is None}
    if isinstance(part, Mapping):
        return set[str]().union(*map(variables_in, cast(Mapping[str, Any], part).values()))
    if isinstance(part, list | tuple):
        return set[str]().union(*map(variables_in, cast(list[Any], part)))
    return set()


def _filled(part: Any, known: Mapping[str, str]) -> Any:
    if isinstance(part, str):
        return _VARIABLE.sub(lambda found: known.get(found[1], found[2] or ""), part)
    if isinstance(part, Mapping):
        return {key: _filled(value, known) for key, value in cast(Mapping[str, Any], part).items()}
    return [_filled(item, known) for item in cast(list[Any], part)] if isinstance(part, list | tuple) else part
