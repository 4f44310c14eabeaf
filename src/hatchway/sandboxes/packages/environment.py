"""The packages one sandbox was granted: the folders to show, and what to tell a model about them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hatchway.sandboxes.packages import cache, existing
from hatchway.sandboxes.packages.requirements import Packages, as_packages


@dataclass(slots=True)
class Environment:
    """Folders with packages; those that are to be built have their place already."""

    folders: tuple[str, ...] = ()
    """Shown read-only to the code, in the order of its import path."""
    names: tuple[str, ...] = ()
    """What they hold: requirements as they were asked for, then `name==version` of an existing environment."""
    _packages: Packages | None = None
    _python: str = ""
    _is_built: bool = False

    @property
    def is_ready(self) -> bool:
        """Whether nothing has to be built."""
        return self._packages is None or self._is_built

    async def ensure(self) -> None:
        """Build what has to be built; legal many times at once.

        Raises:
            SandboxUnavailable: A package cannot be installed; uv's words are in the message.
            MissingExtra: There is no uv.
        """
        if self._packages is not None:
            await cache.build(self._packages, self._python, Path(self.folders[0]))
            self._is_built = True

    def may_have(self, name: str, module: str) -> bool:
        """Whether a package is there, or was asked for by this name and will be."""
        asked = () if self._packages is None else self._packages.requirements
        return self.has_module(module) or any(re.match(rf"{name}\b(?!-)", text, re.IGNORECASE) for text in asked)

    def has_module(self, name: str) -> bool:
        """Whether code could import a package of this name, now."""
        return existing.has_module(self.folders, name)


def environment_of(
    given: Packages | Iterable[str], *, executable: str, site_folders: tuple[str, ...] = ()
) -> Environment:
    """What a sandbox grants.

    Args:
        given: As the setting `packages` takes it.
        executable: The interpreter the packages must fit.
        site_folders: Folders of an existing environment.

    Raises:
        InvalidSetting: A requirement is not one.
    """
    packages = as_packages(given)
    already = tuple(name for folder in site_folders for name in existing.installed(folder))
    if packages is None:
        return Environment(site_folders, already)
    place = cache.place_of(packages, executable)
    return Environment((str(place), *site_folders), (*packages.requirements, *already), packages, executable)
