"""Start of a spawner: `python -I -S __main__.py <socket fd> <guest folder>`."""

import importlib
import os
import sys
import types

PACKAGE = "_hatchway_spawner"  # these files as a package, under a name no action imports by chance

if __name__ == "__main__":
    package = types.ModuleType(PACKAGE)
    package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
    sys.modules[PACKAGE] = package
    importlib.import_module(PACKAGE + ".spawner").main(int(sys.argv[1]), sys.argv[2])
