"""IPython's ways in a session: `!cmd`, `%magics`, `name?`, `_` and `Out`, rich display.

The action itself is compiled and run as everywhere else, so that awaits, tools, limits and line numbers are the same;
IPython rewrites its source before, and keeps its books after. It is imported when the host asks for it, not before.
"""

import os
import subprocess
import sys
import types

from . import action as actions
from . import report

NO_SHELL = "there is no shell in this sandbox: !%s cannot run"


class Shell:
    """IPython around the main namespace of this interpreter."""

    def __init__(self, displays):
        import IPython

        self.ip = _made(displays)
        self._displays = displays
        displays.shell = self.ip
        report.HIDDEN.append(os.path.dirname(os.path.abspath(IPython.__file__)))

    def action(self, source, filename, look=None):
        """The action as Python. Where lines are still the same, tracebacks show them as they were written."""
        python = self.ip.transform_cell(source)
        action = actions.Action(python, filename, look)
        if python.count("\n") == source.rstrip("\n").count("\n") + 1:
            actions.remember_source(source, filename)
        return action

    def run(self, source, run):
        """Run an action; its value, or None when it ends in a semicolon."""
        ip, number = self.ip, self.ip.execution_count
        about = types.SimpleNamespace(
            raw_cell=source, store_history=True, silent=False, shell_futures=True, cell_id=None, transformed_cell=None
        )
        ended = types.SimpleNamespace(info=about, success=False, result=None, execution_count=number)
        ip.events.trigger("pre_execute")
        ip.events.trigger("pre_run_cell", about)
        ip.history_manager.store_inputs(number, source, source)
        try:
            with ip.builtin_trap:
                ended.result = run()
            ended.success = True
            if self._is_quiet(source):
                ended.result = None
            elif ended.result is not None:
                ip.execution_count += number - ip.displayhook.prompt_count  # some versions count before they display
                ip.displayhook.update_user_ns(ended.result)
            return ended.result
        finally:
            self._displays.ending()
            ip.events.trigger("post_execute")
            ip.events.trigger("post_run_cell", ended)
            ip.execution_count = number + 1

    def _is_quiet(self, source):
        try:
            return self.ip.displayhook.semicolon_at_end_of_expression(source)
        except Exception:
            return False  # it does not tokenize as Python: a magic of a whole cell


def _made(displays):
    from IPython.core.displaypub import DisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.core.profiledir import ProfileDir
    from traitlets import Type

    class HostPublisher(DisplayPublisher):
        """Shows to the host what IPython shows."""

        def publish(self, data, *_args, **_options):
            if not displays.show_bundle(data):
                sys.stdout.write(data.get("text/plain", "") + "\n")

    class HostShell(InteractiveShell):
        """A shell whose commands write to our own streams: there is no terminal to give them."""

        display_pub_class = Type(HostPublisher)

        def system(self, cmd):
            command = self.var_expand(cmd, depth=1)
            sys.stdout.flush()
            try:
                self.user_ns["_exit_code"] = subprocess.call(command, shell=True)
            except OSError:
                raise RuntimeError(NO_SHELL % command) from None

        def enable_gui(self, gui=None):
            """There is none."""

        def getoutput(self, cmd, split=True, depth=0):
            try:
                return super().getoutput(cmd, split=split, depth=depth + 1)
            except OSError:
                raise RuntimeError(NO_SHELL % cmd) from None

    folder = os.path.join(os.environ.get("HOME") or os.getcwd(), ".ipython")
    startup = os.path.join(folder, "profile_default", "startup")
    os.makedirs(startup, exist_ok=True)
    open(os.path.join(startup, "README"), "a").close()  # IPython would copy one with its mode, which may be refused
    main = sys.modules["__main__"]
    shell = HostShell.instance(
        config=_config(),
        user_module=main,
        user_ns=vars(main),
        ipython_dir=folder,
        profile_dir=ProfileDir.create_profile_dir(os.path.join(folder, "profile_default")),
    )
    for name in ("exit", "quit", "open"):
        shell.user_ns.pop(name, None)  # for a person at a prompt
    png = shell.display_formatter.formatters["image/png"]
    png.for_type_by_name("matplotlib.figure", "Figure", displays.figure_png)
    return shell


def _config():
    import IPython
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False  # no database, no thread
    config.InteractiveShell.colors = "nocolor" if IPython.version_info[0] >= 9 else "NoColor"
    config.InteractiveShell.xmode = "Plain"
    return config
