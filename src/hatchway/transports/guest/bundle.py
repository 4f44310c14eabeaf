"""The guest's files as a package made of text, for a machine that has none of them."""

import importlib.abc
import importlib.machinery
import sys

PACKAGE = "_hatchway_guest"
PLACE = "/<hatchway>/"  # absolute, so that frames of ours are told from the action's by their file


class Bundle(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Imports modules of the package from their source."""

    def __init__(self, sources):
        self._sources = {PACKAGE + "." + name: text for name, text in sources.items()}
        self._sources[PACKAGE] = ""

    def find_spec(self, fullname, path=None, target=None):
        """Only ours."""
        if fullname not in self._sources:
            return None
        file = PLACE + fullname.rpartition(".")[2] + ".py"
        spec = importlib.machinery.ModuleSpec(fullname, self, origin=file, is_package=fullname == PACKAGE)
        spec.has_location = True
        return spec

    def get_source(self, fullname):
        """The text; also what tracebacks show."""
        return self._sources[fullname]

    def get_code(self, fullname):
        """Compiled under the name `find_spec` gave."""
        return compile(self._sources[fullname], self.find_spec(fullname).origin, "exec", dont_inherit=True)


def load(sources):
    """Make `import _hatchway_guest.NAME` work for every NAME in `sources`; a guest of ours has the files already."""
    if PACKAGE not in sys.modules:
        sys.meta_path.insert(0, Bundle(sources))
