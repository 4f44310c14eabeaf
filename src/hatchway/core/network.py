"""Network rules: which requests code may make. Checked for each request, each redirect and each resolved address."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from hatchway.core.errors import InvalidSetting, ToolDenied
from hatchway.core.grants import AllowedDomain, AllowedDomainInput, as_allowed_domains

DEFAULT_PORTS = {"http": 80, "https": 443}
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_METHOD = re.compile(r"[A-Z]{1,20}")
NEVER_SENT = frozenset(("CONNECT", "TRACE", "TRACK"))
"""Methods that open tunnels or mirror headers; granting all methods does not grant them."""
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC = tuple(ipaddress.IPv4Network(text) for text in ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32"))
"""What `is_global` does not know everywhere: protocol assignments, relays, a cloud's own service."""
_NAT64 = (
    ipaddress.IPv6Network("64:ff9b::/96"),
    ipaddress.IPv6Network("64:ff9b:1::/48"),
    ipaddress.IPv6Network("::/96"),
)


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes."""

    scheme: str
    host: str
    """Lower case, ASCII; an address without brackets."""
    port: int

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}" + ("" if self.port == DEFAULT_PORTS[self.scheme] else f":{self.port}")


@dataclass(frozen=True, slots=True)
class Entry:
    """One granted or denied target: a name, `*.` and a name, or an address; with one port, or the default ones."""

    host: str
    port: int | None = None
    methods: tuple[str, ...] | None = None

    @classmethod
    def parse(cls, target: str, methods: Iterable[str] | None = None) -> Entry:
        """Read `github.com`, `*.github.com`, `example.org:8443`, `127.0.0.1:8000` or `[::1]:8000`.

        Raises:
            InvalidSetting: The text names no target.
        """
        host, port = _host_and_port(target)
        bare = host.removeprefix("*.")
        if not _is_name(bare) and _address(bare) is None:
            raise InvalidSetting(
                f"{target!r} is not a domain", hint="write it as github.com, *.github.com or host:port"
            )
        named = None if methods is None else tuple(methods)
        if named is not None and not (named and all(_METHOD.fullmatch(m) for m in named)):
            raise InvalidSetting(f"{target!r}: {named!r} are not HTTP methods")
        return cls(host, port, named)

    def covers(self, target: Target) -> bool:
        """Whether the target is this entry's. A bare name does not cover its subdomains."""
        ports = DEFAULT_PORTS.values() if self.port is None else (self.port,)
        return target.port in ports and self.names(target.host)

    def names(self, host: str) -> bool:
        """Whether the host is this entry's, on whatever port."""
        return host.endswith(self.host[1:]) if self.host.startswith("*.") else host == self.host

    @property
    def is_local(self) -> bool:
        """Whether it grants an address by itself: a literal one, or `localhost`."""
        return self.host == "localhost" or _address(self.host) is not None


@dataclass(frozen=True, slots=True)
class NetworkRules:
    """What a sandbox may reach. Denied targets win; nothing is allowed by default."""

    allowed: tuple[Entry, ...] = ()
    denied: tuple[Entry, ...] = ()

    @classmethod
    def of(cls, allowed: Iterable[AllowedDomainInput], denied: Iterable[str] = ()) -> NetworkRules:
        """From the settings of a sandbox.

        Raises:
            InvalidSetting: An entry names no target.
        """
        granted = tuple(Entry.parse(*domain) for domain in as_allowed_domains(allowed))
        return cls(granted, tuple(Entry.parse(*domain) for domain in as_allowed_domains(_names(denied))))

    def domains(self) -> tuple[AllowedDomain, ...]:
        """What is granted, in the form it was given."""
        return tuple(AllowedDomain(_text(entry), entry.methods) for entry in self.allowed)

    def check(self, method: str, url: str) -> Target:
        """Where the request goes, if a rule allows it.

        Raises:
            ToolDenied: Which rule refused it, or that none allows it.
        """
        target = target_of(url)
        entries = self.check_target(target)
        if not _METHOD.fullmatch(method.upper()) or method.upper() in NEVER_SENT:
            raise ToolDenied(f"{target} is refused: {method!r} is not a method that can be sent")
        if not any(entry.methods is None or method.upper() in entry.methods for entry in entries):
            granted = sorted({m for entry in entries for m in entry.methods or ()})
            raise ToolDenied(f"{method.upper()} {target} is refused: only {', '.join(granted)} is allowed there")
        return target

    def check_target(self, target: Target) -> list[Entry]:
        """The entries that grant a target some method.

        Raises:
            ToolDenied: It is denied, or there is none.
        """
        for entry in self.denied:
            if entry.names(target.host) and entry.port in (None, target.port):
                raise ToolDenied(f"{target} is refused: {_text(entry)} is denied")
        entries = [entry for entry in self.allowed if entry.covers(target)]
        if not entries:
            raise ToolDenied(f"{target} is refused: it is not among the allowed domains ({self._listed()})")
        return entries

    def check_address(self, target: Target, address: str) -> None:
        """Refuse a private, loopback, link-local or metadata address that no entry for that very address grants.

        Raises:
            ToolDenied: The name leads to such an address.
        """
        found = _address(address)
        if found is None:
            raise ToolDenied(f"{target} is refused: {address!r} is not an address")
        if any(entry.host == str(found) and entry.port in (None, target.port) for entry in self.denied):
            raise ToolDenied(f"{target} is refused: it resolves to {found}, which is denied")
        if _is_public(found) or self._grants(target, found):
            return
        raise ToolDenied(f"{target} is refused: it resolves to {found}, which is not a public address")

    def _grants(self, target: Target, found: Address) -> bool:
        """Whether an entry for that very address, or `localhost` for the loopback, grants it."""
        if found.is_multicast or found.is_unspecified:
            return False
        local = [entry for entry in self.allowed if entry.is_local and entry.covers(target)]
        return any(entry.host == str(found) or (entry.host == "localhost" and found.is_loopback) for entry in local)

    def _listed(self) -> str:
        return ", ".join(_text(entry) for entry in self.allowed) or "none"


def _names(denied: Iterable[str]) -> list[str]:
    names = [] if isinstance(denied, str) else list(denied)
    if isinstance(denied, str) or not all(isinstance(name, str) for name in names):
        raise InvalidSetting(
            f"denied_domains takes a list of domains, not {denied!r}", hint="denied_domains=['x.github.com']"
        )
    return names


def target_of(url: str) -> Target:
    """The target of an absolute http or https URL.

    Raises:
        ToolDenied: It is none, or it carries a user name.
    """
    if any(ord(c) <= 32 or ord(c) == 127 for c in url):
        raise ToolDenied("the URL is refused: it holds blanks or control characters")
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname or ""
    except ValueError as e:
        raise ToolDenied(f"{url!r} is refused: {e}") from None
    scheme = parts.scheme.lower()
    if scheme not in DEFAULT_PORTS or not host:
        raise ToolDenied(f"{url!r} is refused: only http:// and https:// URLs can be fetched")
    if "@" in parts.netloc or "\\" in parts.netloc:
        raise ToolDenied(f"{url!r} is refused: a user name or a backslash before the host is not allowed")
    return Target(scheme, _normal(host), port if port is not None else DEFAULT_PORTS[scheme])


def _host_and_port(target: str) -> tuple[str, int | None]:
    text = target.strip().lower().rstrip(".")
    match = re.fullmatch(r"(\[[0-9a-f:.]+\]|[^:\[\]/?#@\s]+)(?::(\d{1,5}))?", text)
    bare = _address(text)
    if bare is not None:
        return str(bare), None
    if match is None or (match[2] is not None and not 0 < int(match[2]) < 65536):
        raise InvalidSetting(f"{target!r} is not a domain", hint="write it as github.com, *.github.com or host:port")
    return _normal(match[1].strip("[]")), int(match[2]) if match[2] else None


def _normal(host: str) -> str:
    host = host.lower().rstrip(".")
    address = _address(host)
    if address is not None:
        return str(address)
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return host


def _is_name(host: str) -> bool:
    labels = host.split(".")
    return len(host) <= 253 and all(_LABEL.fullmatch(label) for label in labels) and not labels[-1].isdigit()


def _address(host: str) -> Address | None:
    try:
        address = ipaddress.ip_address(host.split("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address  # ::ffff:127.0.0.1 is the loopback in other clothes


def _is_public(address: Address) -> bool:
    """Whether it is a place of the public network, and so is the address it carries inside, if any."""
    if isinstance(address, ipaddress.IPv6Address):
        carried = _carried(address)
        if carried:
            return all(_is_public(inner) for inner in carried)
        return address.is_global and address in _GLOBAL_UNICAST
    return address.is_global and not address.is_multicast and not any(address in network for network in _NOT_PUBLIC)


def _carried(address: ipaddress.IPv6Address) -> list[Address]:
    """The IPv4 addresses that 6to4, Teredo and NAT64 lead to."""
    inner = [address.sixtofour, *(address.teredo or ())]
    if any(address in network for network in _NAT64):
        inner.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return [found for found in inner if found is not None]


def _text(entry: Entry) -> str:
    host = f"[{entry.host}]" if ":" in entry.host else entry.host
    return host if entry.port is None else f"{host}:{entry.port}"
