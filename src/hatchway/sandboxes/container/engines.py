"""The engines by name: where their `run` differs from Docker's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from hatchway.core.errors import InvalidSetting

PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flavor:
    """What one engine's command line needs beside what all of them take alike."""

    run_args: tuple[str, ...]
    """Keep the engine from logging what the code prints, and from handing it the host's proxies."""
    knows_tmpfs: bool
    """Whether `--tmpfs` takes every option of the kernel's, not only size and mode."""
    start: str
    """The command that starts an engine that is down."""


FLAVORS: Mapping[str, Flavor] = {
    "docker": Flavor(
        run_args=(
            "--log-driver=none",
            # the client's config.json may name proxies, with passwords, and would hand them to every container
            *(f"--env={name}=" for upper in PROXY_VARIABLES for name in (upper, upper.lower())),
        ),
        knows_tmpfs=True,
        start="sudo systemctl start docker",
    ),
    "podman": Flavor(
        run_args=("--log-driver=none", "--http-proxy=false", "--read-only-tmpfs=false"),
        knows_tmpfs=False,
        start="systemctl --user start podman.socket",
    ),
    "nerdctl": Flavor(
        run_args=("--log-opt=max-size=1m", "--log-opt=max-file=1"),  # it knows no `none`
        knows_tmpfs=True,
        start="sudo systemctl start containerd",
    ),
}


def flavor_of(engine: str) -> Flavor:
    """How to speak to an engine, given by name or by the path of its client.

    Raises:
        InvalidSetting: No engine of that name is known.
    """
    found = FLAVORS.get(os.path.basename(engine))
    if found is None or engine.startswith("-"):
        raise InvalidSetting(f"there is no container engine {engine!r}", hint=f"there are: {', '.join(FLAVORS)}")
    return found
