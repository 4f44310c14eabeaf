"""Typed APIs the host generated: `mcptools` and `gentools`, imported from wherever the sandbox shows them."""

import os
import sys
from importlib.machinery import PathFinder

NAMES = ("mcptools", "gentools")
PLACES = (".", "input", "/input")


class Generated:
    """Finds these two packages in the working directory or among the mounted files, and nothing else there."""

    def find_spec(self, name, path=None, target=None):
        if name not in NAMES:
            return None
        return PathFinder.find_spec(name, [os.path.abspath(place) for place in PLACES], target)


def install():
    """Look there last: what Python finds by itself stays what it was."""
    sys.meta_path.append(Generated())
