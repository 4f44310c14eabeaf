"""The names a set of stubs declares before its functions: imports and classes, each once."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Callable, Collection, Generator, Hashable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from hatchway.tools.docstrings import one_line, quoted
from hatchway.tools.parameters import is_parameter_name

_IMPORTABLE = {
    "Any": "typing", "Literal": "typing", "NotRequired": "typing", "TypedDict": "typing",
    "Iterable": "collections.abc", "Mapping": "collections.abc", "Sequence": "collections.abc",
    "date": "datetime", "datetime": "datetime", "time": "datetime", "timedelta": "datetime",
    "Decimal": "decimal", "UUID": "uuid",
}  # fmt: skip
_MAX_NESTING = 40
"""A generic class that holds itself with ever other parameters would never end."""
_RESERVED = frozenset([*dir(builtins), *keyword.kwlist, *keyword.softkwlist, *_IMPORTABLE, "builtins"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One key of a class."""

    name: str
    text: str
    """Its type."""
    required: bool
    """Whether it is always there."""
    description: str = ""


class Namespace:
    """Imports and classes of one stub text.

    Args:
        taken: Names of tools: nothing else may be called like one.
        fixed: Names that classes of these keys have, and no other.
    """

    def __init__(self, taken: Iterable[str] = (), *, fixed: Mapping[Hashable, str] | None = None) -> None:
        self._taken = frozenset(part for name in taken for part in name.split("."))
        self._fixed = dict(fixed or {})
        self._imports: dict[str, str] = {}
        self._names: dict[Hashable, str] = {}
        self._open: set[Hashable] = set()
        self._classes: list[str] = []
        self._forward = False
        self._shadowed: Collection[str] = ()

    @contextmanager
    def inside(self, siblings: Collection[str]) -> Generator[None]:
        """Types are written for the body of a class whose members have these names and hide builtins of the same."""
        outer, self._shadowed = self._shadowed, siblings
        try:
            yield
        finally:
            self._shadowed = outer

    def type(self, name: str) -> str:
        """How a type of Python's own is written here: imported where needed, renamed where a tool has its name."""
        if name not in _IMPORTABLE:
            if name not in self._shadowed:
                return name
            self._imports["import builtins"] = ""
            return f"builtins.{name}"
        shown = self._spelled(name)
        self._imports[f"{name} as {shown}" if shown != name else name] = _IMPORTABLE[name]
        return shown

    def _spelled(self, name: str) -> str:
        return f"{name}_" if name in self._taken else name

    def union(self, parts: Iterable[str]) -> str:
        """`A | B | None`, each once; Any swallows the rest."""
        found = list(dict.fromkeys(parts))
        if not found or any(map(self.is_any, found)):
            return self.type("Any")
        return " | ".join(sorted(found, key="None".__eq__))

    def is_any(self, text: str) -> bool:
        """Whether a type expression says nothing."""
        return text == self._spelled("Any")

    def declare(self, key: Hashable, wish: str, members: Callable[[], tuple[str, Sequence[Member]]]) -> str:
        """The name of the class `key` stands for, declared on first use from its docstring and members."""
        if key in self._names:
            self._forward = self._forward or key in self._open
            return self._names[key]
        if len(self._open) > _MAX_NESTING:
            return self.type("Any")
        name = self._names[key] = self._fixed.get(key) or self._free(wish)
        self._open.add(key)
        with self.inside(()):
            doc, found = members()
        self._open.discard(key)
        self._classes.append(self._class(name, doc, found))
        return name

    def member(self, render: Callable[[], str]) -> str:
        """A member's type; as a text where it names a class that is not complete yet."""
        outer = self._forward
        text, forward = self.traced(render)
        self._forward = outer
        return text_literal(text) if forward else text

    def traced(self, render: Callable[[], str]) -> tuple[str, bool]:
        """A type expression, and whether it names a class that is not complete yet."""
        outer, self._forward = self._forward, False
        text = render()
        forward, self._forward = self._forward, self._forward or outer
        return text, forward

    def repeated(self, text: str, *, forward: bool) -> str:
        """A type expression that was written before, with what was known of it then."""
        self._forward = self._forward or forward
        return text

    def header(self) -> str:
        """The imports and classes used so far."""
        modules = sorted(set(self._imports.values()) - {""})
        imports = [
            f"from {module} import {', '.join(sorted(each for each, home in self._imports.items() if home == module))}"
            for module in modules
        ]
        plain = sorted(line for line, home in self._imports.items() if not home)
        return "\n\n".join(part for part in ("\n".join([*plain, *imports]), *self._classes) if part)

    def _free(self, wish: str) -> str:
        used = {*self._names.values(), *self._taken, *self._fixed.values(), *_RESERVED}
        wish = identifier(wish)
        return next(name for name in (wish, *(f"{wish}{n}" for n in range(2, len(used) + 3))) if name not in used)

    def _class(self, name: str, doc: str, members: Sequence[Member]) -> str:
        typed_dict = self.type("TypedDict")
        if not all(is_parameter_name(each.name) for each in members):
            pairs = [f"{text_literal(each.name)}: {self._annotation(each)}" for each in members]
            if not any(each.description.strip() for each in members):
                return f"{name} = {typed_dict}({text_literal(name)}, {{{', '.join(pairs)}}})"
            told = [f"    {pair},{_comment(each.description)}" for pair, each in zip(pairs, members, strict=True)]
            return "\n".join([f"{name} = {typed_dict}({text_literal(name)}, {{", *told, "})"])
        lines = [f"class {name}({typed_dict}):"]
        if doc.strip():
            lines.append(quoted(doc, "    "))
        lines += [f"    {each.name}: {self._annotation(each)}{_comment(each.description)}" for each in members]
        return "\n".join(lines if len(lines) > 1 else [*lines, "    pass"])

    def _annotation(self, member: Member) -> str:
        return member.text if member.required else f"{self.type('NotRequired')}[{member.text}]"


def _comment(text: str) -> str:
    line = one_line(text)
    return f"  # {line}" if line else ""


def identifier(text: str) -> str:
    """A class name from any text."""
    words = [word for word in re.split(r"[^0-9A-Za-z]+", text) if word]
    name = "".join(word[0].upper() + word[1:] for word in words)[:60]
    return name if name and not name[0].isdigit() else f"Model{name}"


def text_literal(value: str) -> str:
    """A text in double quotes where that reads better, always one that compiles."""
    shown = repr(value)
    return f'"{shown[1:-1]}"' if shown[0] == "'" and '"' not in shown else shown
