"""The packages of an environment that is there already: found by its folders, without running anything of it."""

from __future__ import annotations

import os
from glob import escape, glob

_PLACES = ("lib", "lib64")


def environment_prefix(python: str) -> str | None:
    """The virtual or conda environment an interpreter belongs to; None: it is a bare interpreter."""
    beside = os.path.dirname(os.path.abspath(python))  # not the real path: a venv's python is a link out of it
    for prefix in (os.path.dirname(beside), beside):
        if os.path.isfile(os.path.join(prefix, "pyvenv.cfg")) or os.path.isdir(os.path.join(prefix, "conda-meta")):
            return prefix
    return None


def site_packages(python: str) -> tuple[str, ...]:
    """The site-packages of the environment of an interpreter; none when it is a bare one."""
    prefix = environment_prefix(python)
    if prefix is None:
        return ()
    folders = [f for place in _PLACES for f in glob(f"{escape(prefix)}/{place}/python3*/site-packages")]
    return tuple(dict.fromkeys(os.path.realpath(folder) for folder in folders))


def installed(folder: str) -> list[str]:
    """What is installed in a folder, as `name==version`, by name."""
    names = [os.path.basename(path).removesuffix(".dist-info") for path in glob(f"{escape(folder)}/*.dist-info")]
    return sorted("==".join(name.rsplit("-", 1)) for name in names if "-" in name)


def has_module(folders: tuple[str, ...], name: str) -> bool:
    """Whether a package of this import name lies in one of the folders."""
    return any(os.path.isfile(os.path.join(folder, name, "__init__.py")) for folder in folders)
