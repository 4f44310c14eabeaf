"""Files at OpenAI: brought into a container file by file, again into the next one, and had back by their citations."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from openai.types.responses.response_output_text import AnnotationContainerFileCitation

from hatchway.core.errors import InvalidSetting
from hatchway.core.events import AgentEvent
from hatchway.core.results import ExecFile
from hatchway.hosted import ContainerLost, HostMount, OpenAIAdapter, OpenAICodeInterpreterTool
from hatchway.testing import RanCode, ScriptedVendor, VendorReply, VendorSays

pytestmark = pytest.mark.anyio


async def test_a_container_gone_between_turns_has_all_files_again(tmp_path: Path) -> None:
    """Whatever the words are: a 404 from a place that is asked for by its container."""
    (tmp_path / "a.txt").write_text("a")
    vendor = ScriptedVendor("openai", [VendorSays(RanCode("x = 1", "one"), "x"), VendorSays("y")])
    tier = OpenAICodeInterpreterTool(container={"memory_limit": "16g"}, host_mounts=[HostMount(host_path="a.txt")])
    events: list[AgentEvent] = []
    async with OpenAIAdapter(
        "m", client=vendor.client(), tools=[tier], allowed_host_roots=tmp_path, on_event=events.append
    ) as openai:
        session = openai.session()
        await openai.run("go", session=session)
        assert session.container is not None
        lost = session.container.id
        vendor.routes[f"POST /v1/containers/{lost}/files"] = VendorReply(status=404, body={"error": {"message": "no"}})
        await openai.run("go", session=session, files=[ExecFile(name="b.txt", content=b"b")])
        assert sorted(session.placed) == ["a.txt", "b.txt"]
        assert session.container.id != lost
    assert [event.container_id for event in events if isinstance(event, ContainerLost)] == [lost]
    assert lost not in json.dumps(vendor.asked[1])
    made = [request.body["memory_limit"] for request in vendor.requests if request.path == "/v1/containers"]
    assert made == ["16g", "16g"]


async def test_a_busy_place_leaves_one_container_with_each_file_once(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(name)
    vendor = ScriptedVendor("openai", [VendorSays("x")])
    busy = VendorReply(status=429, body={"error": {"message": "slow"}}, headers={"retry-after": "0"})
    brought: list[str] = []

    def place(request: Any) -> Any:
        brought.append(request.body["file_id"])
        if len(brought) == 2:
            return busy
        return {"id": "cfile", "object": "container.file", "path": f"/mnt/data/{request.body['file_id']}"}

    vendor.routes["POST /v1/containers/[^/]+/files"] = place
    tool = OpenAICodeInterpreterTool(host_mounts=[HostMount(host_path=".")])
    async with OpenAIAdapter(
        "m", client=vendor.client(), tools=[tool], allowed_host_roots=tmp_path, retries=1
    ) as openai:
        await openai.run("go")
    assert sum(request.path == "/v1/containers" for request in vendor.requests) == 1
    assert brought == ["file_1", "file_2", "file_2"]


async def test_a_file_the_vendor_forgot_is_uploaded_again(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    vendor = ScriptedVendor("openai", [VendorSays("x")] * 2)
    tool = OpenAICodeInterpreterTool(host_mounts=[HostMount(host_path="a.txt")])
    async with OpenAIAdapter("m", client=vendor.client(), tools=[tool], allowed_host_roots=tmp_path) as openai:
        await openai.run("go")
        vendor.routes["POST /v1/containers/[^/]+/files"] = VendorReply(
            status=404, body={"error": {"message": "no file"}}
        )
        with pytest.raises(InvalidSetting, match="HTTP 404: no file") as told:
            await openai.run("go")
        assert told.value.hint == "check that the model, file or container it names is still there"
        vendor.routes.clear()
        assert (await openai.run("go")).text == "x"
    assert sum(request.path == "/v1/files" for request in vendor.requests) == 2


async def test_citations_as_the_vendor_sent_them_can_be_downloaded(tmp_path: Path) -> None:
    vendor = ScriptedVendor("openai", [VendorSays(RanCode("x", files={"f": "../x.png"}), "x")], files={"f": b"png"})
    async with OpenAIAdapter("m", client=vendor.client(), tools=[OpenAICodeInterpreterTool()]) as openai:
        reply = await openai.run("go")
        raw = reply.items[1]["content"][0]["annotations"][0]
        assert raw["type"] == "container_file_citation"
        of_sdk = AnnotationContainerFileCitation(**raw)
        for citation in (reply.citations[0], raw, of_sdk):
            assert await openai.download(citation) == await reply.download(citation) == b"png"
        assert (
            list(await reply.download_all(tmp_path / "a")) == list(await openai.download_all([raw], tmp_path)) == ["f"]
        )
        assert (tmp_path / "a" / "x.png").read_bytes() == (tmp_path / "x.png").read_bytes() == b"png"
        with pytest.raises(InvalidSetting, match="dict names no file"):
            await openai.download({"filename": "x"})
        with pytest.raises(InvalidSetting, match="kept in the journal"):
            await replace(reply, session=None).download_all(tmp_path)


async def test_history_without_its_container_misses_no_thoughts() -> None:
    """The vendor binds thoughts to the item that followed them by its id: both go, what was said and done stays."""

    def add(a: int) -> int:
        """Add one."""
        return a + 1

    call = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "add", "arguments": '{"a": 1}'}
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
    gone = VendorReply(status=404, body={"error": {"message": "Container expired"}})
    script = [VendorSays(thought, RanCode("print(1)", "1"), call), VendorSays("two"), gone, VendorSays("fine")]
    vendor = ScriptedVendor("openai", script)
    async with OpenAIAdapter("m", client=vendor.client(), tools=[OpenAICodeInterpreterTool(), add]) as openai:
        session = openai.session()
        await openai.run("go", session=session)
        assert (await openai.run("more", session=session)).text == "fine"
    ran, called, gave, said = vendor.asked[-1]["input"][1:5]
    assert ran["content"].endswith("```python\nprint(1)\n```\nIt printed:\n1")
    assert called == {name: value for name, value in call.items() if name != "id"}
    assert (gave["call_id"], gave["output"]) == ("c", "2")
    assert said == {"role": "assistant", "content": "two"}
