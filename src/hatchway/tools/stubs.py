"""Stubs: the typed Python text the model reads and the type checker checks against. One text for both."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, cast

from hatchway.tools.docstrings import quoted, with_parameters
from hatchway.tools.namespace import Namespace, identifier, text_literal
from hatchway.tools.parameters import REQUIRED, Kind, Parameter
from hatchway.tools.types import type_text

if TYPE_CHECKING:
    from hatchway.tools.functions import Tool

Style = Literal["declared", "async", "sync"]
"""How tools are called: each as its function was defined, or all in one way."""
Styles = Style | Mapping[str, Style]
"""One style for all tools, or one by the name of each."""
_MAX_DEFAULT = 120
_BRACKETS: dict[type, str] = {list: "[]", tuple: "()", set: "{}", dict: "{}"}


def render_stub(tool: Tool, style: Styles = "declared") -> str:
    """One tool as a `def`; the classes it names are in `render_stubs`."""
    return _function(tool, style, Namespace([tool.name]))


def render_stubs(tools: Iterable[Tool], style: Styles = "declared") -> str:
    """All tools as one Python module: imports, a class for each record they take or give, functions, namespaces."""
    offered = list(tools)
    names = Namespace(tool.name for tool in offered)
    tree: dict[str, Any] = {}
    for tool in offered:
        *spaces, last = tool.name.split(".")
        branch = tree
        for space in spaces:
            branch = branch.setdefault(space, {})
        branch[last] = tool
    body = "\n\n".join(_branch(name, part, style, names) for name, part in tree.items())
    return "\n\n".join(part for part in (names.header(), body) if part) + "\n"


def parameter_list(tool: str, takes: Sequence[Parameter]) -> str:
    """The parameters of a tool as they stand in its `def`, in brackets."""
    return f"({_parameters(takes, Namespace([tool]), identifier(tool))})"


def python_signature(tool: Tool) -> inspect.Signature:
    """Names, kinds and simple defaults, with annotations as text."""
    names = Namespace([tool.name])
    parameters = [
        inspect.Parameter(
            each.name,
            each.kind,
            default=_plain_default(each.default),
            annotation=_type(each, names, identifier(tool.name)),
        )
        for each in tool.takes
    ]
    return inspect.Signature(parameters, return_annotation=_result(tool, names))


def _branch(name: str, part: Tool | dict[str, Any], style: Styles, names: Namespace) -> str:
    if not isinstance(part, dict):
        return _function(part, style, names)
    # No @staticmethod: accessed on the class they are plain functions, and not every checker knows the decorator.
    with names.inside(part):
        inner = "\n\n".join(_branch(*each, style, names) for each in part.items())
    return f"class {name}:\n" + "\n".join(f"    {line}" if line else "" for line in inner.split("\n"))


def _function(tool: Tool, style: Styles, names: Namespace) -> str:
    wish = identifier(tool.name)
    keyword = "async def" if is_called_async(tool, style) else "def"
    head = (
        f"{keyword} {tool.name.rpartition('.')[2]}({_parameters(tool.takes, names, wish)}) -> {_result(tool, names)}:"
    )
    doc = with_parameters(tool.description, {each.name: each.description for each in tool.takes})
    doc = "\n\n".join(part for part in (doc, _note(tool, names)) if part.strip())
    return "\n".join([head, *([quoted(doc, "    ")] if doc.strip() else []), "    ..."])


def is_called_async(tool: Tool, styles: Styles) -> bool:
    """Whether the code awaits the tool in this style."""
    style = styles if isinstance(styles, str) else styles[tool.name]
    chosen = tool.calls if style == "declared" else style
    return tool.is_async if chosen == "declared" else chosen == "async"


def _note(tool: Tool, names: Namespace) -> str:
    """What cannot stand in the parameter list: names that are no identifiers."""
    if not tool.by_key:
        return ""
    shown = ", ".join(
        f"{text_literal(each.name)}: {_type(each, names, identifier(tool.name))}"
        + (" (required)" if each.default is REQUIRED else "")
        for each in tool.by_key
    )
    return f"Given by ** only, as in {tool.name}(**{{{text_literal(tool.by_key[0].name)}: ...}}): {shown}"


def _result(tool: Tool, names: Namespace) -> str:
    return type_text(tool.gives, names, f"{identifier(tool.name)}Result")


def _parameters(takes: Sequence[Parameter], names: Namespace, wish: str) -> str:
    parts: list[str] = []
    kinds = [each.kind for each in takes]
    for number, each in enumerate(takes):
        if (
            each.kind is Kind.KEYWORD_ONLY
            and Kind.VAR_POSITIONAL not in kinds
            and Kind.KEYWORD_ONLY not in kinds[:number]
        ):
            parts.append("*")
        parts.append(_one(each, names, wish))
        if each.kind is Kind.POSITIONAL_ONLY and Kind.POSITIONAL_ONLY not in kinds[number + 1 :]:
            parts.append("/")
    return ", ".join(parts)


def _one(parameter: Parameter, names: Namespace, wish: str) -> str:
    stars = {Kind.VAR_POSITIONAL: "*", Kind.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    default = "" if parameter.default is REQUIRED else f" = {default_text(parameter.default)}"
    return f"{stars}{parameter.name}: {_type(parameter, names, wish)}{default}"


def _type(parameter: Parameter, names: Namespace, wish: str) -> str:
    return type_text(parameter.type, names, f"{wish} {parameter.name}")


def default_text(default: Any) -> str:
    """A default as Python text; `...` where no short literal says it."""
    shown = _literal(default)
    return shown if shown is not None and len(shown) <= _MAX_DEFAULT else "..."


def _literal(value: Any) -> str | None:
    if isinstance(value, Enum):
        return _literal(value.value)
    if isinstance(value, str) and type(value) is str:
        return text_literal(value)
    if value is None or type(value) in (bool, bytes):
        return repr(value)
    if type(value) is int:
        return repr(value) if value.bit_length() < 400 else None
    if type(value) is float:
        return repr(value) if math.isfinite(value) else None
    return _collection(value) if cast(type, type(value)) in _BRACKETS else None


def _collection(value: Any) -> str | None:
    kind = cast(Any, type(value))
    if len(value) > _MAX_DEFAULT or (kind is set and not value):
        return None
    pairs: Iterable[tuple[Any, ...]] = value.items() if kind is dict else ((item,) for item in value)
    parts = [[_literal(each) or "" for each in pair] for pair in pairs]
    if not all(text for part in parts for text in part):
        return None
    comma = "," if kind is tuple and len(value) == 1 else ""
    opening, closing = _BRACKETS[kind]
    return f"{opening}{', '.join(map(': '.join, parts))}{comma}{closing}"


def _plain_default(default: Any) -> Any:
    """Defaults that are values of JSON or bytes are kept, others are `...`: they are text for the reader."""
    plain = default.value if isinstance(default, Enum) else default
    simple = plain is REQUIRED or plain is None or type(plain) in (bool, int, float, str, bytes)
    return plain if simple else ...
