"""Start of a spawner: `python -s -S __main__.py <socket fd> <guest folder>`."""

import importlib
import os
import sys
import types

PACKAGE = "_hatchway_spawner"  # these files as a package, under a name no action imports by chance

if __name__ == "__main__":
    del sys.path[0]  # the folder of this file: an action must not import what lies there
    package = types.ModuleType(PACKAGE)
    package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
    sys.modules[PACKAGE] = package
    importlib.import_module(PACKAGE + ".spawner").main(int(sys.argv[1]), sys.argv[2])
