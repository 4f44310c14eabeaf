"""Which files of the host a program needs to start: the system's own directories, and what it looks up in /etc."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_DIRECTORIES = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ESSENTIALS = (
    "/etc/alternatives", "/etc/bash.bashrc", "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/inputrc",
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/mime.types",
    "/etc/pki/tls/certs", "/etc/protocols", "/etc/services", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/terminfo",
    "/etc/timezone",
)  # fmt: skip
"""No file that holds a secret: of /etc/ssl the certificates, never the keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemFiles:
    """The system as a jailed program sees it."""

    binds: tuple[str, ...]
    """Files and directories shown read-only at their own paths."""
    links: tuple[tuple[str, str], ...]
    """Symbolic links made beside them: path and target."""
    masks: tuple[str, ...] = ()
    """Nothing of it is covered."""


@cache
def system_files() -> SystemFiles:
    """What is there on this machine."""
    shown = [p for p in _DIRECTORIES if os.path.isdir(p) and not os.path.islink(p)]
    return SystemFiles(
        binds=(*shown, *(p for p in _ESSENTIALS if os.path.exists(p))),
        links=tuple((p, os.readlink(p)) for p in _DIRECTORIES if os.path.islink(p)),
    )
