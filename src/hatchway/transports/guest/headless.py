"""Libraries that open windows show their pictures to the host instead. Nothing is imported that the action did not.

Each is changed when the action has imported it, by a finder that lets the real ones find it.
"""

import os
import sys


class Headless:
    """Finds nothing itself; what is on its list is changed after it was imported."""

    def __init__(self, displays):
        self._displays = displays
        self._changes = {
            "matplotlib": self._change_matplotlib,
            "matplotlib.figure": self._change_figure,
            "matplotlib.pyplot": self._change_pyplot,
            "PIL.ImageShow": self._change_pillow,
            "IPython.core.display_functions": self._change_ipython,
        }

    def find_spec(self, name, path=None, target=None):
        """The spec the others find, with its loader told to call us afterwards."""
        change = self._changes.get(name)
        if change is None:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                _call_after(spec.loader, change)
                return spec
        return None

    def _change_matplotlib(self, matplotlib):
        if "MPLBACKEND" not in os.environ:
            matplotlib.rcParams["backend"] = "agg"

    def _change_figure(self, module):
        displays = self._displays

        def show(self, warn=True):
            """Show the figure to the host."""
            displays.show_figure(self)

        module.Figure.show = show

    def _change_pyplot(self, pyplot):
        displays = self._displays

        def show(*_args, **_options):
            """Show every open figure to the host."""
            displays.show_open_figures()

        pyplot.show = show

    def _change_pillow(self, module):
        displays = self._displays

        class HostViewer(module.Viewer):
            """Shows an image to the host."""

            def show(self, image, **_options):
                return 1 if displays.show(image) else int(displays.show(image.convert("RGB")))

        module.register(HostViewer(), 0)

    def _change_ipython(self, module):
        """Without a shell of its own, IPython's `display` only prints."""
        if not self._displays.is_ipython:
            module.display = self._displays.display


def _call_after(loader, change):
    run = loader.exec_module

    def exec_module(module):
        del loader.exec_module
        run(module)
        change(module)

    loader.exec_module = exec_module
