"""The generated module of one tool: `Params`, `Result`, `run(params)` and its async twin. Plain text from a schema.

Nothing a server sends reaches the text but as a literal, a comment of one line, or an identifier made here.
"""

from __future__ import annotations

from typing import Any, cast

from hatchway.tools.docstrings import quoted
from hatchway.tools.functions import Tool
from hatchway.tools.namespace import Member, Namespace, text_literal
from hatchway.tools.parameters import REQUIRED, Hint, Kind, Parameter, Shape
from hatchway.tools.shapes import shape_text
from hatchway.tools.stubs import default_text
from hatchway.tools.types import type_text

MARK = "# Made by Hatchway from an MCP server's own description; changes are lost."
"""The first line of every generated file."""
_OWN = ("run", "arun", "call", "acall")
_PARAMS, _RESULT = "Params", "Result"


def module_text(tool: Tool) -> str:
    """The source of the module; it imports the standard library and `mcptools._host`."""
    names = Namespace(_OWN, fixed={_PARAMS: _PARAMS, _RESULT: _RESULT})
    given = [each for each in (*tool.takes, *tool.by_key) if each.kind is not Kind.VAR_KEYWORD]
    is_open = len(given) < len(tool.takes) + len(tool.by_key) and not tool.by_key
    _declare_params(names, given)
    params = f"{_PARAMS} | {names.type('dict')}[{names.type('str')}, {names.type('Any')}]" if is_open else _PARAMS
    result, alias = _result(tool, names)
    needed = any(each.default is REQUIRED for each in given)
    head = f"params: {params}" if needed else f"params: {params} | None = None"
    told = "params" if needed else "params or {}"
    doc = [quoted(tool.description, "    ")] if tool.description.strip() else []
    name = text_literal(tool.name)
    functions = [
        "\n".join([f"def run({head}) -> {result}:", *doc, f"    return call({name}, {told})"]),
        "\n".join([f"async def arun({head}) -> {result}:", *doc, f"    return await acall({name}, {told})"]),
    ]
    header = names.header()
    imports, _, classes = header.partition("\n\n")
    if not imports.startswith(("from ", "import ")):
        imports, classes = "", header
    future = "from __future__ import annotations"
    ours = "from mcptools._host import acall, call"
    parts = [f"{MARK}\n\n{future}", "\n".join(part for part in (imports, ours) if part), classes, alias, *functions]
    return "\n\n".join(part for part in parts if part) + "\n"


def _declare_params(names: Namespace, given: list[Parameter]) -> None:
    def members() -> tuple[str, list[Member]]:
        return "", [
            Member(
                name=each.name,
                text=names.member(lambda each=each: type_text(each.type, names, f"{_PARAMS} {each.name}")),
                required=each.default is REQUIRED,
                description=_said(each),
            )
            for each in given
        ]

    names.declare(_PARAMS, _PARAMS, members)


def _said(given: Parameter) -> str:
    """What is said of a key, and what it is when it is left out: a TypedDict has no defaults."""
    shown = "..." if given.default is REQUIRED else default_text(given.default)
    return given.description if shown == "..." else f"{given.description} (default: {shown})".lstrip()


def _result(tool: Tool, names: Namespace) -> tuple[str, str]:
    """The type of the result, and the line that names it where it is no class."""
    match tool.gives:
        case Hint(annotation) if annotation is Any:
            return names.type("Any"), ""
        case Shape(schema, root) if _is_record(schema):
            _declare_result(names, cast(dict[str, Any], schema), root)
            return _RESULT, ""
        case gives:
            text = type_text(gives, names, "ResultValue")
            return _RESULT, f"{_RESULT} = {text}"


def _is_record(schema: Any) -> bool:
    node = cast(dict[str, Any], schema) if isinstance(schema, dict) else {}
    return bool(node.get("properties")) and isinstance(node["properties"], dict) and "$ref" not in node


def _declare_result(names: Namespace, schema: dict[str, Any], root: Any) -> None:
    listed = schema.get("required")
    required = cast(list[Any], listed) if isinstance(listed, list) else []

    def member(name: str, part: Any) -> Member:
        said: Any = cast(dict[str, Any], part).get("description") if isinstance(part, dict) else None
        return Member(
            name=name,
            text=names.member(lambda: shape_text(part, root, names, f"{_RESULT} {name}")),
            required=name in required,
            description=said if isinstance(said, str) else "",
        )

    names.declare(_RESULT, _RESULT, lambda: ("", [member(*each) for each in schema["properties"].items()]))
