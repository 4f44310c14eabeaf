"""Names: public ones stay where people import them from, all of them say what they are, and each concept has a word."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from hatchway.core.errors import MissingExtra

REPO = Path(__file__).parents[1]
HOMES = {
    "hatchway": (
        "CodeConstraints CodeExecution CodeExecutionError CodeRuntimeError CodeSandbox CodeSyntaxError CodeTypeError "
        "ExecutionResult FunctionCall"
    ),
    "hatchway.transports": "CallbackTransport HttpCallbackTransport StdinStdoutTransport TransportConfig",
    "hatchway.sandboxes.monty": "MontySandbox",
    "hatchway.adapters.pydantic_ai": "CodeModeToolset build_code_mode_prompt",
    "hatchway.executors": (
        "CodeExecutionInput CodeExecutionResult CodeExecutor ContainerCodeExecutor ExecFile LlmAgent LocalCodeExecutor "
        "Outcome"
    ),
    "hatchway.adapters.agent_framework": (
        "AllowedDomain FileMount HyperlightCodeActProvider HyperlightExecuteCodeTool MontyCodeActProvider "
        "MontyExecuteCodeTool"
    ),
    "hatchway.hosted": (
        "AutoContainerConfig ExistingContainerRef HostMount OpenAICodeInterpreterTool ProviderTool Tool ToolContext "
        "ToolResult VfsPath"
    ),
    "hatchway.agent": (
        "Agent AgentEvent ApprovalRequest CodeExecutionOutput CodeExecutionOutputChunk Response ResponseChunk Thoughts "
        "ThoughtsChunk ToolOutput"
    ),
    "hatchway.agent.config": "Config SkillMetadata init_config",
    "hatchway.agent.permissions": "PermissionManager",
    "hatchway.tools.apigen": "generate_mcp_sources",
}
"""What other people's code imports, by the module it imports it from."""
WORDS = (
    "action sandbox execution session run conversation call result tool gate rule decision journal checkpoint "
    "transport guest host stub tier event"
)
FOREIGN = {"connection_made", "connection_lost", "data_received", "pause_writing", "resume_writing", "find_spec"}
"""Methods the standard library calls, and documents."""
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@pytest.mark.parametrize(("module", "names"), HOMES.items())
def test_public_names_stay_where_they_are(module: str, names: str) -> None:
    try:
        home = import_module(module)
        found = {name: getattr(home, name, None) for name in names.split()}
    except MissingExtra as e:
        pytest.skip(str(e))
    assert [name for name, value in found.items() if value is None or getattr(value, "__name__", name) != name] == []
    assert [name for name, value in found.items() if not getattr(value, "__doc__", None)] == []


def test_each_concept_has_one_word() -> None:
    table = (REPO / "docs" / "concepts.md").read_text(encoding="utf-8").partition("## The path")[0]
    rows = re.findall(r"^\| ([a-z, ]+) \|", table, re.MULTILINE)
    words = [word for row in rows for word in row.split(", ")][1:]  # the first row is the head
    assert sorted(words) == sorted(WORDS.split())


def test_every_public_name_says_what_it_is() -> None:
    docs: dict[str, str | None] = {}
    for path in (REPO / "src").rglob("*.py"):
        tree, here = ast.parse(path.read_text(encoding="utf-8")), str(path.relative_to(REPO / "src"))
        docs[here] = ast.get_docstring(tree)
        docs |= {f"{here}: {name}": ast.get_docstring(node) for name, node in _public(tree)}
    assert {name: doc for name, doc in docs.items() if not doc or not _is_sentence(doc)} == {}


def _public(tree: ast.Module | ast.ClassDef, above: str = "") -> Iterator[tuple[str, Definition]]:
    """Classes, functions and methods without an underscore; those that a decorator explains are left out."""
    for node in tree.body:
        if isinstance(node, Definition) and not node.name.startswith("_") and node.name not in FOREIGN:
            if not any(re.match(r"check\(|overload$|\w+\.setter$", ast.unparse(each)) for each in node.decorator_list):
                yield f"{above}{node.name}", node
            if isinstance(node, ast.ClassDef):
                yield from _public(node, f"{node.name}.")


def _is_sentence(doc: str) -> bool:
    """Whether it begins with one paragraph that is whole."""
    return doc.split("\n\n")[0].rstrip().endswith((".", ":", "?"))
