"""Typed APIs the host generated: `mcptools` and `gentools`, imported from wherever the sandbox shows them."""

import importlib
import os
import sys
from importlib.machinery import PathFinder, SourceFileLoader

NAMES = ("mcptools", "gentools")
PLACES = (".", "input", "/input")


class Generated:
    """Finds these two packages in the working directory or among the mounted files, and nothing else there."""

    def find_spec(self, name, path=None, target=None):
        if name not in NAMES:
            return None
        return PathFinder.find_spec(name, [os.path.abspath(place) for place in PLACES], target)


class FromSource(SourceFileLoader):
    """Takes no bytecode: that of a file saved twice within a second passes for the newer one's."""

    def path_stats(self, path):
        """Says that there are none, by which Python tells bytecode that still fits."""
        raise OSError("its bytecode is neither read nor written")


class Saved:
    """Notes which files of saved tools were imported: a tool saved anew is imported anew by the next action."""

    def __init__(self):
        self._files = {}

    def find_spec(self, name, path=None, target=None):
        if not name.startswith("gentools."):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.has_location:
            self._files[name] = spec.origin, _stamp(spec.origin)
            if isinstance(spec.loader, SourceFileLoader):
                spec.loader = FromSource(name, spec.origin)
        return spec

    def forget_changed(self):
        """Forget tools of which a file is another one now; whoever holds their functions keeps those."""
        changed = {_tool(name) for name, (file, stamp) in self._files.items() if _stamp(file) != stamp}
        for name in [name for name in self._files if _tool(name) in changed]:
            del self._files[name]
            sys.modules.pop(name, None)
        if changed:
            importlib.invalidate_caches()


def _tool(name):
    """`gentools.<category>.<tool>`, of whatever in it."""
    return ".".join(name.split(".")[:3])


def _stamp(file):
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def install():
    """Look there last: what Python finds by itself stays what it was. What it gives knows the tools' files."""
    saved = Saved()
    sys.meta_path.insert(0, saved)
    sys.meta_path.append(Generated())
    return saved
