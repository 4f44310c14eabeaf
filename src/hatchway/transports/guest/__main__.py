"""Start of a guest: `python -I -S <this file>`, with HATCHWAY_CHANNEL="<read fd>,<write fd>" in the environment."""

import os
import sys
import types

PACKAGE = "_hatchway_guest"  # a name no action imports by chance


def load():
    """Make the files of this folder, and the codec, a package."""
    here = os.path.dirname(os.path.abspath(__file__))
    core = os.path.join(os.path.dirname(os.path.dirname(here)), "core")
    package = types.ModuleType(PACKAGE)
    package.__path__ = [here, core]
    sys.modules[PACKAGE] = package


def main():
    """Serve the host on the given channel."""
    load()
    from _hatchway_guest.channel import PipeChannel
    from _hatchway_guest.interpreter import Interpreter

    read_fd, write_fd = map(int, os.environ.pop("HATCHWAY_CHANNEL").split(","))
    Interpreter(PipeChannel(read_fd, write_fd)).serve()


if __name__ == "__main__":
    main()
