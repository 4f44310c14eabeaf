"""Signing: checkpoints are sealed with a key of this user, so that altered or foreign bytes are never executed.

A sealed checkpoint is one line of JSON claims (backend, version, key id, digest of the tools …), the HMAC-SHA256
of claims and payload in hex, and the payload, separated by newlines.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from hatchway.core.errors import CheckpointRefused, InvalidSetting

_MAGIC = "hatchway-checkpoint-1"
_KEY_BYTES = 32


_NO_HOME = Path("/var/tmp")
"""Outlives a restart, other than the usual temporary folder."""


def key_path() -> Path:
    """Where this user's key lives: `HATCHWAY_KEY_FILE`, a file in the user's data folder, or, for a user without one
    that can be written, in a folder of the user's own below `/var/tmp`."""
    if given := os.environ.get("HATCHWAY_KEY_FILE"):
        return Path(given)
    from platformdirs import user_data_path

    path = user_data_path("hatchway") / "signing.key"
    return path if _is_possible(path) else _without_home() / path.name


def load_key(path: Path | None = None) -> bytes:
    """The key, made on first use with mode 0600.

    Raises:
        InvalidSetting: The file is too short or cannot be had, or others may read or replace it.
    """
    path = path or key_path()
    try:
        if not path.exists():
            _make_key(path)
        key = _read_key(path)
    except OSError as e:
        raise InvalidSetting(
            f"the signing key {path} cannot be had: {e.strerror}",
            hint="export HATCHWAY_KEY_FILE=…: a file of your own, of mode 0600, in a folder you may write to",
        ) from e
    if len(key) < _KEY_BYTES:
        raise InvalidSetting(f"{path} holds no key of {_KEY_BYTES} bytes", hint=f"rm {path}: a new one is made")
    return key


def _without_home() -> Path:
    return _NO_HOME / f"hatchway-{os.getuid()}"


def _is_possible(path: Path) -> bool:
    """Whether the key is there, or can be made."""
    try:
        if path.exists():
            return True
        above = next(folder for folder in path.parents if folder.exists())
    except OSError:
        return False
    return os.access(above, os.W_OK | os.X_OK)


def _read_key(path: Path) -> bytes:
    if path.parent == _without_home():  # everybody may make folders there: take only one's own
        folder = os.lstat(path.parent)
        if not stat.S_ISDIR(folder.st_mode) or folder.st_uid != os.getuid() or folder.st_mode & 0o077:
            raise InvalidSetting(
                f"{path.parent} is not a folder of this user alone",
                hint="export HATCHWAY_KEY_FILE=…: a file of your own, of mode 0600",
            )
    if path.stat().st_mode & 0o077:
        raise InvalidSetting(f"{path} can be read by others", hint=f"chmod 600 {path}")
    return path.read_bytes()


def _make_key(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as f:
        f.write(secrets.token_bytes(_KEY_BYTES))
    try:
        os.link(fresh, path)  # never replaces: of two processes at once, one key wins for both
    except FileExistsError:
        pass
    finally:
        fresh.unlink()


def key_id(key: bytes) -> str:
    """A name for the key that tells nothing about it."""
    return hashlib.sha256(b"hatchway key id" + key).hexdigest()[:16]


def run_seed(run_id: str, *, key: bytes | None = None) -> bytes:
    """The secret 256-bit seed of a run: made anew from the key when needed, so that it is stored nowhere."""
    return hmac.new(key or load_key(), b"hatchway run seed\0" + run_id.encode(), hashlib.sha256).digest()


def masked(secret: bytes, nonce: bytes, *, key: bytes | None = None) -> bytes:
    """A secret of 32 bytes that only the key's owner can read; masked twice it is itself again."""
    mask = hmac.new(key or load_key(), b"hatchway mask\0" + nonce, hashlib.sha256).digest()
    return bytes(a ^ b for a, b in zip(secret, mask, strict=True))


def default_hash_seed() -> int:
    """A hash seed that all processes of this user share, so that runs can change between them; nobody else knows it."""
    try:
        digest = hmac.new(load_key(), b"hatchway hash seed", hashlib.sha256).digest()
    except (OSError, InvalidSetting):
        digest = secrets.token_bytes(4)
    return int.from_bytes(digest[:4], "big")


def seal(payload: bytes, claims: Mapping[str, str], *, key: bytes | None = None) -> bytes:
    """The payload under a signature that covers it and the claims."""
    key = key or load_key()
    head = json.dumps({"magic": _MAGIC, "key": key_id(key), **claims}, sort_keys=True).encode()
    return b"\n".join((head, _signature(key, head, payload), payload))


def unseal(sealed: bytes, expected: Mapping[str, str], *, key: bytes | None = None) -> tuple[bytes, Mapping[str, str]]:
    """The payload and the claims, if the signature is ours and the claims include `expected`.

    Raises:
        CheckpointRefused: Cut, altered, signed with another key, or made by another backend or version.
        TypeError: It is no bytes.
    """
    if not isinstance(sealed, bytes):
        raise TypeError(f"a checkpoint is bytes, not {type(sealed).__name__}")
    key = key or load_key()
    head, _, rest = sealed.partition(b"\n")
    signature, _, payload = rest.partition(b"\n")
    claims = _claims(head)
    if claims.get("key") != key_id(key):
        raise CheckpointRefused("it was signed with another key")
    if not hmac.compare_digest(signature, _signature(key, head, payload)):
        raise CheckpointRefused("its signature does not match: the bytes were cut or altered")
    for name, value in expected.items():
        if claims.get(name) != value:
            raise CheckpointRefused(f"its {name} is {claims.get(name)!r}, here it is {value!r}")
    return payload, claims


def _claims(head: bytes) -> dict[str, str]:
    try:
        claims: Any = json.loads(head)
    except (ValueError, RecursionError):
        claims = None
    if not isinstance(claims, dict) or cast(dict[str, str], claims).get("magic") != _MAGIC:
        raise CheckpointRefused("it is not a checkpoint of ours")
    return cast(dict[str, str], claims)


def _signature(key: bytes, head: bytes, payload: bytes) -> bytes:
    return hmac.new(key, head + b"\n" + payload, hashlib.sha256).hexdigest().encode()
