"""Tools from a module or a file the user names: its `TOOLS`, or every public function and `Tool` in it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from hatchway.core.errors import InvalidSetting
from hatchway.tools.functions import Tool

Offered = Tool | Callable[..., Any]


def load_tools(source: str) -> Sequence[Offered]:
    """The tools of `package.module` or `path/to/file.py`.

    Raises:
        InvalidSetting: It cannot be imported, or offers nothing.
    """
    module = load_module(source)
    tools = _listed(module, source) if hasattr(module, "TOOLS") else _public(module)
    if not tools:
        raise InvalidSetting(f"there is no tool in {source}", hint="give it a public function, or a list named TOOLS")
    return tools


def import_from_here() -> None:
    """Let the user's own modules be found from the directory the command was started in, as `python -m` does."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)


def load_module(source: str, what: str = "the tools in") -> ModuleType:
    """The module of `package.module` or `path/to/file.py`.

    Raises:
        InvalidSetting: It cannot be imported.
    """
    try:
        if source.endswith(".py"):
            return _from_file(Path(source))
        import_from_here()
        return import_module(source)
    except (KeyboardInterrupt, InvalidSetting):
        raise
    except BaseException as e:  # a module may end in anything, sys.exit among it
        raise InvalidSetting(f"{what} {source} cannot be imported: {type(e).__name__}: {e}") from e


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise InvalidSetting(f"there is no file {path}")
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise InvalidSetting(f"{path} is not a Python file")
    module = module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses and pydantic look their module up here
    sys.path.insert(0, str(path.resolve().parent))
    spec.loader.exec_module(module)
    return module


def _listed(module: ModuleType, source: str) -> Sequence[Offered]:
    listed = cast("Sequence[Any]", vars(module)["TOOLS"])
    if not isinstance(listed, list | tuple) or not all(callable(t) or isinstance(t, Tool) for t in listed):
        raise InvalidSetting(f"TOOLS in {source} must be a list of functions and Tools")
    return listed


def _public(module: ModuleType) -> Sequence[Offered]:
    names = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    return [value for value in names.values() if isinstance(value, Tool) or _own_function(value, module)]


def _own_function(value: object, module: ModuleType) -> bool:
    return inspect.isfunction(value) and value.__module__ == module.__name__
