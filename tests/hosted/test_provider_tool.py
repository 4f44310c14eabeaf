"""Provider tools and typed tools: what they are, what crosses, and the sample of the specification in today's words."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hatchway import CodeMode, Tool
from hatchway.core.errors import CodeRuntimeError, InvalidSetting, InvalidTool, ToolError
from hatchway.hosted import (
    AutoContainerConfig,
    CodeInterpreterResult,
    FileRef,
    GeminiAdapter,
    HostMount,
    OpenAIAdapter,
    OpenAICodeInterpreterTool,
    ProviderTool,
    ToolContext,
    ToolResult,
    UploadProgress,
    VfsPath,
    from_payload,
    to_payload,
    typed_tool,
)
from hatchway.testing import ScriptedVendor

pytestmark = pytest.mark.anyio


@dataclass(frozen=True)
class Wanted:
    """What is asked for."""

    item: str
    many: int = 1


def test_a_provider_tool_is_a_core_tool() -> None:
    tool = OpenAICodeInterpreterTool(name="openai_python", description="Runs Python.")
    assert isinstance(tool, Tool)
    assert isinstance(tool, ProviderTool)
    assert (tool.name, tool.provider, tool.parameters["properties"]) == ("openai_python", "openai", {})
    with pytest.raises(ToolError, match="runs at the vendor"):
        tool()
    with pytest.raises(InvalidSetting, match="runs at openai"):
        OpenAICodeInterpreterTool(provider="gemini")


def test_params_and_results_as_json() -> None:
    file = FileRef(provider="openai", file_id="f", container_id="c", filename="a.png", span=(1, 2))
    result = CodeInterpreterResult(output_text="1", status="ok", citations=(file,))
    assert from_payload(CodeInterpreterResult, to_payload(result)) == result
    assert from_payload(Wanted, {"item": "tea"}) == Wanted("tea", 1)
    with pytest.raises(ToolError, match=r"Wanted does not fit: many: Input should be a valid integer"):
        from_payload(Wanted, {"item": "tea", "many": "lots"})


async def test_a_typed_tool_in_a_sandbox_of_ours() -> None:
    contexts: list[ToolContext] = []

    def price(params: Wanted, *, context: ToolContext) -> ToolResult[Wanted]:
        contexts.append(context)
        return ToolResult("no such item", None, False) if params.item == "air" else ToolResult("ok", params)

    async with CodeMode("monty", tools=[typed_tool(price)]) as mode:
        assert (await mode.run("(await price(item='tea', many=2))['many']")).output == 2
        with pytest.raises(CodeRuntimeError, match="no such item"):
            await mode.run("await price(item='air')")
    assert contexts[0].run_id
    assert (contexts[0].adapter, contexts[0].session) == (None, None)


def plainly(result: "dict[str, object]", context: "OnlyForTypeCheckers") -> "ToolResult[Any]":  # type: ignore[name-defined]  # noqa: F821
    """A handler whose context only a type checker can read."""
    return ToolResult(str(result["output_text"]), result)


async def test_a_provider_tool_told_plainly_is_the_vendors_own() -> None:
    code = {"type": "code_interpreter_call", "id": "ci", "code": "1", "container_id": "c", "status": "completed"}
    output = [{**code, "outputs": [{"type": "logs", "logs": "1\n"}]}]
    vendor = ScriptedVendor("openai", [{"status": "completed", "output": output}])
    config = AutoContainerConfig(memory_limit="16g")
    told: Any = ProviderTool(name="python", provider="openai", config=config, handle_provider_output=plainly)
    async with OpenAIAdapter("m", client=vendor.client(), tools=[told]) as openai:
        reply = await openai.run("go", tool_choice="python")
    assert (reply.tool_results[0].message, reply.tool_results[0].value["code"]) == ("1\n", "1")
    assert vendor.asked[0]["tools"] == [{"type": "code_interpreter", "container": config.payload()}]
    assert vendor.asked[0]["tool_choice"] == {"type": "code_interpreter"}
    odd: Any = ProviderTool(name="python", provider="gemini", config=config)
    with pytest.raises(InvalidTool, match="GeminiCodeExecutionTool takes no config"):
        GeminiAdapter("m", client=ScriptedVendor("gemini").client(), tools=[odd])


def test_a_context_for_tests_of_handlers() -> None:
    context = ToolContext()
    assert (context.adapter, context.session, context.deadline, context.prompt.text) == (None, None, None, "")
    assert plainly({"output_text": "1"}, context).message == "1"


async def test_a_handler_that_gives_no_result_is_told() -> None:
    def odd(result: CodeInterpreterResult, context: ToolContext) -> Any:
        return "text"

    code = {"type": "code_interpreter_call", "id": "ci", "code": "1", "container_id": "c", "status": "completed"}
    vendor = ScriptedVendor("openai", [{"status": "completed", "output": [code]}])
    tool = OpenAICodeInterpreterTool(handle_provider_output=odd)
    async with OpenAIAdapter("m", client=vendor.client(), tools=[tool]) as openai:
        with pytest.raises(ToolError, match="a handler gives a ToolResult, not str"):
            await openai.run("go")


async def test_the_sample_of_the_specification(tmp_path: Path) -> None:
    (tmp_path / "sunfish" / "data").mkdir(parents=True)
    (tmp_path / "sunfish" / "data" / "notes.txt").write_text("value\n1\n2\n")
    mount = HostMount(
        host_path="sunfish",
        mount_path=VfsPath(("workspace", "sunfish")),
        include_glob=("*.py", "*.md", "*.txt"),
        exclude_glob=("**/__pycache__/**",),
        max_bytes=600_000,
    )
    plain = {
        "host_path": mount.host_path,
        "mount_path": f"/{mount.mount_path}",
        "include_glob": list(mount.include_glob),
        "exclude_glob": list(mount.exclude_glob),
        "max_bytes": mount.max_bytes,
        "follow_symlinks": mount.follow_symlinks,
    }

    def identity(result: dict[str, object], context: ToolContext) -> ToolResult[dict[str, object]]:
        return ToolResult(message=str(result.get("output_text") or ""), value=result, success=True)

    tool = OpenAICodeInterpreterTool(
        name="openai_python",
        description="Executes Python the model wrote.",
        container={"type": "auto", "memory_limit": "4g", "file_ids": ["file_csv"], "host_mounts": [plain]},
        handle_provider_output=identity,
    )
    assert tool.container.host_mounts == (mount,)
    cited = {"type": "container_file_citation", "container_id": "c", "file_id": "f", "filename": "histogram.png"}
    code = {"type": "code_interpreter_call", "id": "ci", "code": "mean()", "container_id": "c", "status": "completed"}
    part = {"type": "output_text", "text": "The mean is 1.5.", "annotations": [cited]}
    message = {"type": "message", "role": "assistant", "content": [part]}
    output = [{**code, "outputs": [{"type": "logs", "logs": "1.5\n"}]}, message]
    vendor = ScriptedVendor("openai", [{"status": "completed", "output": output}], files={"f": b"png"})
    told: list[Any] = []
    settings: dict[str, Any] = {"allowed_host_roots": [tmp_path], "on_event": told.append}
    async with OpenAIAdapter("gpt-4.1", client=vendor.client(), tools=[tool], **settings) as openai:
        reply = await openai.run("The mean of the notes, please.", tool_choice="openai_python")
        (path,) = (await openai.download_all(reply, tmp_path / "out")).values()
    assert reply.tool_results[0].message == "1.5\n"
    assert reply.tool_results[0].value["citations"][0]["filename"] == "histogram.png"
    assert (path.name, path.read_bytes()) == ("histogram.png", b"png")
    assert vendor.asked[0]["tool_choice"] == {"type": "code_interpreter"}
    made = next(request.body for request in vendor.requests if request.path == "/v1/containers")
    assert made == {"name": "hatchway", "memory_limit": "4g", "file_ids": ["file_csv"]}
    assert [event.name for event in told if isinstance(event, UploadProgress)] == ["workspace/sunfish/data/notes.txt"]
    assert "workspace/sunfish/data/notes.txt: /mnt/data/" in vendor.asked[0]["instructions"]
