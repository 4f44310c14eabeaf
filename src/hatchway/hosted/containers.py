"""Containers at OpenAI: how one is asked for, checked before any request is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, cast, get_args

from hatchway.core.errors import InvalidSetting
from hatchway.hosted.given import several, texts
from hatchway.hosted.mounts import HostMount, as_mount

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
        object.__setattr__(self, "allowed_domains", texts("allowed_domains", self.allowed_domains))
        object.__setattr__(self, "domain_secrets", tuple(map(_secret, several("domain_secrets", self.domain_secrets))))
        if wrong := [domain for domain in self.allowed_domains if "/" in domain]:
            raise InvalidSetting(f"a domain is a bare host name, not {wrong[0]!r}", hint='"api.example.com"')
        if strangers := {secret.domain for secret in self.domain_secrets} - set(self.allowed_domains):
            raise InvalidSetting(
                f"a secret is for an allowed domain, not for {', '.join(sorted(strangers))}",
                hint="add the domain to allowed_domains, or leave its secret out",
            )

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
        object.__setattr__(self, "file_ids", texts("file_ids", self.file_ids))
        object.__setattr__(self, "host_mounts", mounts(self.host_mounts))
        object.__setattr__(self, "network_policy", _policy(self.network_policy))
        minutes = self.expires_after_minutes
        if minutes is not None and (not isinstance(minutes, int) or minutes < 1):
            raise InvalidSetting(f"expires_after_minutes is at least 1, not {minutes!r}", hint="leave it out, or 20")

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
        object.__setattr__(self, "host_mounts", mounts(self.host_mounts))

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
            raise InvalidSetting(
                f"a container is an AutoContainerConfig or an ExistingContainerRef, not {given!r:.80}",
                hint='container={"type": "auto", "memory_limit": "1g"}, or {"id": "cntr_…"}',
            )


def mounts(given: Any) -> tuple[HostMount, ...]:
    """Host mounts, also in the plain form.

    Raises:
        InvalidSetting: They are none.
    """
    return tuple(map(as_mount, several("host_mounts", given)))


def _from_mapping(told: dict[str, Any]) -> ContainerConfig:
    kind = ExistingContainerRef if "id" in told else AutoContainerConfig
    _check_fields(kind.__name__, told, {each.name for each in fields(kind)})
    if kind is AutoContainerConfig and told.get("type", "auto") != "auto":
        raise InvalidSetting(
            f"a container is of type 'auto', or has an id; not of type {told['type']!r}", hint='{"id": "cntr_…"}'
        )
    return kind(**told)


def _policy(told: Any) -> NetworkPolicy | None:
    """A policy, also in the vendor's own form."""
    if told is None or isinstance(told, NetworkPolicy):
        return told
    if not isinstance(told, Mapping):
        raise InvalidSetting(f"a network policy is a NetworkPolicy, not {told!r:.80}", hint="NetworkPolicy() for none")
    given = dict(cast("Mapping[str, Any]", told))
    _check_fields("a network policy", given, {"type", "allowed_domains", "domain_secrets"})
    kind = given.pop("type", "allowlist")
    if kind not in ("disabled", "allowlist"):
        raise InvalidSetting(
            f"a network policy is 'disabled' or 'allowlist', not {kind!r}", hint='{"type": "disabled"}'
        )
    if (kind == "disabled") != (not given.get("allowed_domains")):  # which of the two was meant is not guessed
        raise InvalidSetting(
            "a network policy is 'disabled', or an 'allowlist' with allowed_domains",
            hint='{"type": "disabled"}, or {"type": "allowlist", "allowed_domains": ["api.example.com"]}',
        )
    return NetworkPolicy(**given)


def _secret(given: Any) -> DomainSecret:
    if isinstance(given, DomainSecret):
        return given
    told = dict(cast("Mapping[str, Any]", given)) if isinstance(given, Mapping) else {}
    if set(told) != {"domain", "name", "value"}:  # what was given is not shown: it is a secret
        raise InvalidSetting("a domain secret has a domain, a name and a value", hint="DomainSecret(domain=…, …)")
    return DomainSecret(**told)


def _check_fields(what: str, told: Mapping[str, Any], known: set[str]) -> None:
    if unknown := set(told) - known:
        raise InvalidSetting(
            f"{what} has no {', '.join(sorted(map(str, unknown)))}; it has {', '.join(sorted(known))}",
            hint="leave it out, or spell it as one of these",
        )


def _check_tier(tier: object) -> None:
    if tier not in TIERS:
        raise InvalidSetting(f"memory_limit is one of {', '.join(TIERS)}, not {tier!r}", hint='memory_limit="1g"')
