"""What the user types to call this very installation."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from importlib.metadata import distribution
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit


def command_name() -> str:
    """How this very installation is called from the directory the user is in."""
    if _is_by_uvx():
        return f"uvx {_from()}hatchway"
    script = Path(sys.executable).with_name("hatchway")
    found = shutil.which("hatchway")
    if found and Path(found).resolve() == script.resolve():
        return "hatchway"
    return min(os.path.relpath(script), str(script), key=len) if script.exists() else "python -m hatchway"


def _is_by_uvx() -> bool:
    """Whether `uvx` runs this, in an environment of its cache that is on the PATH of nobody else."""
    return "UV" in os.environ and Path(sys.prefix, "CACHEDIR.TAG").exists()


def _from() -> str:
    """What `uvx` was given to install, if that is not the package index."""
    told = distribution("hatchway").read_text("direct_url.json")
    if told is None:
        return ""
    direct: dict[str, Any] = json.loads(told)
    url = str(direct["url"])
    if url.startswith("file:"):
        path = unquote(urlsplit(url).path)
        url = min(os.path.relpath(path), path, key=len)
    elif kind := direct.get("vcs_info", {}).get("vcs"):
        url = f"{kind}+{url}"
    return f"--from {shlex.quote(url)} "
