"""The guest's files as a package made of text, for a machine that has none of them."""

import sys
from importlib.machinery import ModuleSpec

PACKAGE = "_hatchway_guest"
PLACE = "/<hatchway>/"  # absolute, so that frames of ours are told from the action's by their file


class Bundle:
    """Finds and loads modules of the package by their source. `importlib.abc` would cost more than all of them."""

    def __init__(self, sources, package):
        self._package = package
        self._sources = {package + "." + name: text for name, text in sources.items()}
        self._sources[package] = ""

    def find_spec(self, fullname, path=None, target=None):
        """Only ours."""
        if fullname not in self._sources:
            return None
        file = PLACE + fullname.rpartition(".")[2] + ".py"
        spec = ModuleSpec(fullname, self, origin=file, is_package=fullname == self._package)
        spec.has_location = True
        return spec

    def create_module(self, spec):
        """An ordinary one."""

    def exec_module(self, module):
        """Run the source under the name `find_spec` gave it."""
        exec(compile(self._sources[module.__name__], module.__file__, "exec", dont_inherit=True), vars(module))

    def get_source(self, fullname):
        """What tracebacks show."""
        return self._sources[fullname]


def load(sources, package=PACKAGE):
    """Make `import PACKAGE.NAME` work for every NAME in `sources`; a guest of ours has the files already."""
    if package not in sys.modules:
        sys.meta_path.insert(0, Bundle(sources, package))
