"""Containers at OpenAI: how one is asked for, checked before any request is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, cast, get_args

from hatchway.core.errors import InvalidSetting
from hatchway.hosted.mounts import HostMount, VfsPath

MemoryLimit = Literal["1g", "4g", "16g", "64g"]
"""What a container may have."""
TIERS = get_args(MemoryLimit)


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainSecret:
    """A value the vendor puts in place of a name in requests to one domain; the code does not see it."""

    domain: str
    name: str
    value: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkPolicy:
    """What code in the container may reach; without domains nothing."""

    allowed_domains: tuple[str, ...] = ()
    domain_secrets: tuple[DomainSecret, ...] = ()

    def __post_init__(self) -> None:
        if any(not domain or "/" in domain for domain in self.allowed_domains):
            raise InvalidSetting(f"a domain is a bare host name, not one of {self.allowed_domains}")
        if strangers := {secret.domain for secret in self.domain_secrets} - set(self.allowed_domains):
            raise InvalidSetting(f"a secret is for an allowed domain, not for {', '.join(sorted(strangers))}")

    def payload(self) -> dict[str, Any]:
        """As the vendor takes it."""
        if not self.allowed_domains:
            return {"type": "disabled"}
        told: dict[str, Any] = {"type": "allowlist", "allowed_domains": list(self.allowed_domains)}
        if self.domain_secrets:
            told["domain_secrets"] = [
                {"domain": secret.domain, "name": secret.name, "value": secret.value} for secret in self.domain_secrets
            ]
        return told


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoContainerConfig:
    """A container the vendor makes when it is needed.

    Raises:
        InvalidSetting: An unknown memory tier, or a file id that is none.
    """

    memory_limit: MemoryLimit = "1g"
    file_ids: tuple[str, ...] = ()
    """Files uploaded before."""
    network_policy: NetworkPolicy | None = None
    """None leaves it to the vendor's own default."""
    host_mounts: tuple[HostMount, ...] = ()
    """Files of this machine, uploaded first; never sent as they stand."""
    expires_after_minutes: int | None = None
    """Idle minutes after which it goes; only where a container is made for mounts."""
    type: Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        _check_tier(self.memory_limit)
        object.__setattr__(self, "file_ids", tuple(self.file_ids))
        if any(not isinstance(each, str) or not each for each in self.file_ids):
            raise InvalidSetting(f"file_ids are ids of uploaded files, not {self.file_ids}")
        object.__setattr__(self, "host_mounts", tuple(map(_as_mount, self.host_mounts)))

    def payload(self) -> dict[str, Any]:
        """As the vendor takes it, in a tool declaration."""
        told: dict[str, Any] = {"type": "auto", "memory_limit": self.memory_limit}
        if self.file_ids:
            told["file_ids"] = list(self.file_ids)
        if self.network_policy is not None:
            told["network_policy"] = self.network_policy.payload()
        return told


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingContainerRef:
    """A container that is there already.

    Raises:
        InvalidSetting: No id, or an unknown memory tier.
    """

    id: str
    memory_limit: MemoryLimit | None = None
    """What it was made with; told in telemetry, and used for the next one should this one be gone."""
    host_mounts: tuple[HostMount, ...] = ()
    """Files of this machine, uploaded into it first."""

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not self.id.strip():
            raise InvalidSetting(
                "an existing container is named by its id",
                hint='ExistingContainerRef(id="cntr_…"), from containers.create',
            )
        if self.memory_limit is not None:
            _check_tier(self.memory_limit)
        object.__setattr__(self, "host_mounts", tuple(map(_as_mount, self.host_mounts)))

    def payload(self) -> str:
        """As the vendor takes it: the id, and nothing else."""
        return self.id


ContainerConfig = AutoContainerConfig | ExistingContainerRef


def container_config(given: ContainerConfig | Mapping[str, Any] | str | None) -> ContainerConfig:
    """What a tool was given as its container, checked.

    Raises:
        InvalidSetting: It is not one; the message says what is.
    """
    match given:
        case None:
            return AutoContainerConfig()
        case AutoContainerConfig() | ExistingContainerRef():
            return given
        case str():
            return ExistingContainerRef(id=given)
        case Mapping():
            return _from_mapping(dict(given))
        case _:
            raise InvalidSetting(f"a container is an AutoContainerConfig or an ExistingContainerRef, not {given!r:.80}")


def _from_mapping(told: dict[str, Any]) -> ContainerConfig:
    kind = ExistingContainerRef if "id" in told else AutoContainerConfig
    known = {each.name for each in fields(kind)}
    if unknown := set(told) - known:
        raise InvalidSetting(f"{kind.__name__} has no {', '.join(sorted(unknown))}; it has {', '.join(sorted(known))}")
    if kind is AutoContainerConfig and told.get("type", "auto") != "auto":
        raise InvalidSetting(
            f"a container is of type 'auto', or has an id; not of type {told['type']!r}", hint='{"id": "cntr_…"}'
        )
    policy = told.get("network_policy")
    if isinstance(policy, Mapping):
        told["network_policy"] = _policy(cast("Mapping[str, Any]", policy))
    return kind(**told)


def _policy(told: Mapping[str, Any]) -> NetworkPolicy:
    if told.get("type", "allowlist") not in ("disabled", "allowlist"):
        raise InvalidSetting(f"a network policy is 'disabled' or 'allowlist', not {told['type']!r}")
    secrets = [DomainSecret(**secret) for secret in told.get("domain_secrets", ())]
    return NetworkPolicy(allowed_domains=tuple(told.get("allowed_domains", ())), domain_secrets=tuple(secrets))


def _check_tier(tier: object) -> None:
    if tier not in TIERS:
        raise InvalidSetting(f"memory_limit is one of {', '.join(TIERS)}, not {tier!r}")


def _as_mount(given: HostMount | Mapping[str, Any]) -> HostMount:
    """A mount, also in the plain form with `mount_path` as text."""
    if isinstance(given, HostMount):
        return given
    told = dict(given)
    path = told.get("mount_path")
    if isinstance(path, str):
        told["mount_path"] = VfsPath(tuple(part for part in path.split("/") if part))
    for name in ("include_glob", "exclude_glob"):
        if isinstance(told.get(name), Sequence):
            told[name] = tuple(told[name])
    try:
        return HostMount(**told)
    except TypeError as e:
        raise InvalidSetting(f"a host mount is not given like this: {e}") from None
