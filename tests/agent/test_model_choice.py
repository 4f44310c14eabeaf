"""Which model a person gets who has said nothing, or little."""

import ast
import asyncio
import importlib.util
import json
import os
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import get_args

import pytest
from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelRequest, TextPart
from pydantic_ai.models import KnownModelName, Model, infer_model

from hatchway.agent import Agent
from hatchway.agent.config import Config
from hatchway.agent.env_file import read_env_file
from hatchway.agent.local_models import LocalServer, find_local_models
from hatchway.agent.model_choice import ModelChoice, choose_model
from hatchway.agent.vendors import VENDORS, Vendor, vendor_of
from hatchway.core.errors import InvalidSetting

ANSWER = {
    "id": "1", "object": "chat.completion", "created": 1, "model": "qwen3",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hello"}}],
}  # fmt: skip


class Handler(BaseHTTPRequestHandler):
    models: object = {"data": [{"id": "nomic-embed-text"}, {"id": "qwen3"}]}

    def do_GET(self) -> None:
        self._answer(self.models if self.path == "/v1/models" else {}, 200 if self.path == "/v1/models" else 404)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(ANSWER, 200)

    def _answer(self, told: object, status: int) -> None:
        body = told if isinstance(told, bytes) else json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def served(models: object = None) -> ThreadingHTTPServer:
    kind = type("Own", (Handler,), {} if models is None else {"models": models})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@pytest.fixture
def server() -> Iterator[LocalServer]:
    with served() as running:
        yield LocalServer("ollama", "Ollama", running.server_port)
        running.shutdown()


@pytest.fixture
def nobody() -> LocalServer:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return LocalServer("lmstudio", "LM Studio", free.getsockname()[1])


def chosen(folder: Path, flag: str | None = None, servers: tuple[LocalServer, ...] = (), **environ: str) -> ModelChoice:
    return choose_model(flag, Config(folder), environ, folder, servers=servers)


def test_a_flag_comes_before_the_settings_and_those_before_a_key(tmp_path: Path) -> None:
    (tmp_path / ".hatchway").mkdir()
    (tmp_path / ".hatchway" / "config.json").write_text(
        '{"model": "anthropic:claude-sonnet-5", "model-settings": {"temperature": 0.2}}'
    )
    by_flag = chosen(tmp_path, "openai:gpt-5", OPENAI_API_KEY="k")
    assert (by_flag.model, by_flag.why, by_flag.settings) == ("openai:gpt-5", "named by --model", {"temperature": 0.2})
    by_config = chosen(tmp_path, OPENAI_API_KEY="k")
    assert (by_config.model, by_config.why) == ("anthropic:claude-sonnet-5", "named by .hatchway/config.json")


def test_a_key_in_the_environment_comes_before_one_in_the_file(tmp_path: Path, server: LocalServer) -> None:
    (tmp_path / ".env").write_text("ANTHROPIC_API_KEY=from-file\n")
    found = chosen(tmp_path, None, (server,), OPENAI_API_KEY="k")
    assert (found.model, found.why, found.variables) == ("openai:gpt-5", "OPENAI_API_KEY is set", {})
    found = chosen(tmp_path, None, (server,), OPENAI_API_KEY="")
    assert (found.model, found.why) == ("anthropic:claude-sonnet-5", "ANTHROPIC_API_KEY is set in .env")


def test_a_key_of_the_file_is_secret_and_reaches_the_vendors_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "")  # so that it is taken away again at the end
    monkeypatch.delenv("OPENAI_API_KEY")
    (tmp_path / ".env").write_text("OPENAI_API_KEY=sk-very-secret\nOPENAI_BASE_URL=http://evil\nPATH=/evil\n")
    found = chosen(tmp_path)
    assert "very-secret" not in f"{found!r}{found.why}"
    assert found.variables == {"OPENAI_API_KEY": "sk-very-secret"}
    before = os.environ["PATH"]
    assert found.load() == "openai:gpt-5"
    assert (os.environ["OPENAI_API_KEY"], os.environ["PATH"]) == ("sk-very-secret", before)
    assert "OPENAI_BASE_URL" not in os.environ
    unused = "OPENAI_BASE_URL in .env is not used: export OPENAI_BASE_URL=… if that is where to ask"
    assert found.notes == chosen(tmp_path, "openai:gpt-5-mini").notes == (unused,)
    assert chosen(tmp_path, OPENAI_BASE_URL="http://own").notes == ()
    assert chosen(tmp_path, "openai:gpt-5-mini").variables == {"OPENAI_API_KEY": "sk-very-secret"}
    assert chosen(tmp_path, "openai:gpt-5-mini", OPENAI_API_KEY="own").variables == {}


def test_an_address_of_the_file_never_gets_a_key_of_the_environment(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("AZURE_OPENAI_ENDPOINT=http://evil\nOPENAI_API_VERSION=1\n")
    found = chosen(tmp_path, "azure:own-name", AZURE_OPENAI_API_KEY="k")
    assert found.variables == {}
    assert chosen(tmp_path, None, (), AZURE_OPENAI_API_KEY="k").notes == (
        "AZURE_OPENAI_API_KEY is set, but not AZURE_OPENAI_ENDPOINT, OPENAI_API_VERSION",
    )


def test_what_cannot_be_used_is_told_and_the_next_is_taken(tmp_path: Path, nobody: LocalServer) -> None:
    absent = [v for v in VENDORS if importlib.util.find_spec(v.package.partition(".")[0]) is None]
    assert absent, "the test needs a vendor whose package is not installed"
    vendor = absent[0]
    note = f"{vendor.keys[0]} is set, but its package is missing: pip install 'pydantic-ai-slim[{vendor.extra}]'"
    alone = choose_model(None, Config(tmp_path), {vendor.keys[0]: "k"}, tmp_path, servers=(nobody,))
    assert (alone.model, alone.notes) == (None, (note,))
    cannot = "no model is named, no vendor's key can be used, and no model server answers on this machine"
    assert alone.why == f"{cannot}; {note}"
    both = choose_model(None, Config(tmp_path), {vendor.keys[0]: "k", "DEEPSEEK_API_KEY": "k"}, tmp_path, servers=())
    assert both.model == "deepseek:deepseek-chat"


def test_a_server_of_this_machine_is_found_and_answers(
    tmp_path: Path, server: LocalServer, nobody: LocalServer
) -> None:
    found = chosen(tmp_path, None, (nobody, server))
    assert (found.model, found.why) == ("ollama:qwen3", f"Ollama answers on port {server.port} of this machine")
    model = found.load()
    assert isinstance(model, Model)
    answer = asyncio.run(model_request(model, [ModelRequest.user_text_prompt("hi")]))  # its own loop would stay open
    assert answer.parts == [TextPart(content="hello")]


def test_no_server_is_asked_where_that_is_switched_off(tmp_path: Path, server: LocalServer) -> None:
    assert chosen(tmp_path, None, (server,), HATCHWAY_LOCAL_MODELS="off").model is None
    assert chosen(tmp_path, None, (server,), HATCHWAY_LOCAL_MODELS="").model is not None


def test_a_named_model_of_this_machine_needs_no_settings(tmp_path: Path) -> None:
    found = chosen(tmp_path, "ollama:qwen3:8b")
    assert found.base_url == "http://127.0.0.1:11434/v1"
    model = found.load()
    assert isinstance(model, Model)
    assert model.model_name == "qwen3:8b"


@pytest.mark.parametrize(
    "models",
    [{"data": []}, {"data": [{"id": "x-embed"}]}, {"data": "x"},
     {"data": [3, {"id": 3}, {"id": ""}, {"id": "a\x1b[2J"}]}, [],
     b"<html>", b"", b"[" * 100_000, {"data": [{"id": "x" * 201}]}],
)  # fmt: skip
def test_something_else_on_the_port_is_no_model(tmp_path: Path, models: object) -> None:
    with served(models) as running:
        assert find_local_models([LocalServer("a", "A", running.server_port)], seconds=5).best is None
        running.shutdown()


def test_a_server_that_never_answers_is_left_behind(tmp_path: Path, server: LocalServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        deaf = LocalServer("a", "A", silent.getsockname()[1])
        assert find_local_models([deaf], seconds=0.05).best is None
        found = find_local_models([deaf, server], seconds=3).best
        assert found is not None
        assert found.model == "qwen3"


def test_nothing_at_all_is_said_in_one_line(tmp_path: Path, nobody: LocalServer) -> None:
    found = chosen(tmp_path, None, (nobody,))
    assert found.model is None
    assert found.why == "no model is named, no vendor's key is set, and no model server answers on this machine"
    with pytest.raises(ValueError, match="no model is named"):
        found.load()


def _library() -> dict[str, str]:
    """Every variable a provider of the library reads, and the file that does."""
    folder = Path(str(importlib.util.find_spec("pydantic_ai.providers").submodule_search_locations[0]))  # type: ignore
    found: dict[str, str] = {}
    for path in folder.glob("[!_]*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Attribute(attr="getenv" | "get"), args=[ast.Constant(value=str(name)), *_]):
                    if name.isupper():
                        found[name] = path.stem
    return found


NO_MODELS = {"ELEVENLABS_API_KEY", "VOYAGE_API_KEY", "AZURE_VOICELIVE_API_KEY", "GITHUB_API_KEY"}
"""Voices, embeddings, and a vendor that has ended."""
OWN_SERVERS = {"OLLAMA_API_KEY", "VLLM_API_KEY"}
"""Of servers that must be named."""


def test_the_table_has_every_vendor_the_library_knows() -> None:
    words = ("_API_KEY", "_TOKEN", "_INFERENCE_KEY", "_BEDROCK")
    keys = {name for name in _library() if name.endswith(words)} - NO_MODELS - OWN_SERVERS
    assert keys - {key for vendor in VENDORS for key in vendor.keys} == set()


def test_the_models_of_the_table_are_models_the_library_knows() -> None:
    known = set(get_args(KnownModelName.__value__))
    prefixes = {name.partition(":")[0] for name in known}
    table = {f"{v.prefix}:{v.model}" for v in VENDORS if v.model and v.prefix in prefixes}
    assert table - known == set()


HERE = [v for v in VENDORS if importlib.util.find_spec(v.package.partition(".")[0]) and v.prefix != "google-cloud"]
"""Those whose package is installed, and that want no file of credentials."""


@pytest.mark.parametrize("vendor", HERE, ids=lambda vendor: vendor.prefix)
def test_the_library_makes_each_model_of_the_table(vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (vendor.keys[0], *vendor.needs, "PYDANTIC_AI_GATEWAY_BASE_URL"):
        monkeypatch.setenv(variable, "https://example.com/x" if "ENDPOINT" in variable or "URL" in variable else "x")
    name = vendor.model or "some"
    assert infer_model(f"{vendor.prefix}:{name}").model_name == name
    assert vendor_of(f"{vendor.prefix}:{name}") == vendor


def test_env_files_as_people_write_them(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(
        "\ufeff# keys\nA=1\nexport B = two words # why\nC='single # $x'\nD=\"a\\nb\\\"c\" # x\nE=\nF=a#b\n"
        "not a line\n9X=1\nG=\"open\nH=last", encoding="utf-8"
    )  # fmt: skip
    assert read_env_file(tmp_path / ".env") == {
        "A": "1", "B": "two words", "C": "single # $x", "D": 'a\nb"c', "E": "", "F": "a#b", "G": '"open', "H": "last"
    }  # fmt: skip
    assert read_env_file(tmp_path) == read_env_file(tmp_path / "none") == {}
    (tmp_path / "big").write_bytes(os.urandom(5_000_000))
    read_env_file(tmp_path / "big")


def test_an_agent_that_is_given_none_takes_what_the_command_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for vendor in VENDORS:
        for key in vendor.keys:
            monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv("HATCHWAY_LOCAL_MODELS", "off")

    async def started() -> object:
        agent = Agent(None, sandbox="monty", working_dir=tmp_path)
        async with agent:
            return agent.model

    with pytest.raises(InvalidSetting) as none:
        asyncio.run(started())
    assert str(none.value) == (
        "there is no model: no model is named, no vendor's key is set, and no model server answers on this machine\n"
        "name one, as Agent('openai:gpt-5') or as \"model\" in .hatchway/config.json, or set a vendor's key"
    )
    (tmp_path / ".env").write_text("OPENAI_API_KEY=sk-test\n")
    monkeypatch.setenv("OPENAI_API_KEY", "")
    assert str(asyncio.run(started())).startswith("openai:")


def test_a_server_without_a_model_is_told_with_what_gets_one(tmp_path: Path) -> None:
    head = "no model is named, no vendor's key is set, and"
    for none in (None, [], [{"id": "nomic-embed-text"}]):
        with served({"object": "list", "data": none}) as running:
            server = LocalServer("ollama", "Ollama", running.server_port, "ollama pull NAME")
            found = chosen(tmp_path, None, (server,))
            port = running.server_port
            running.shutdown()
        assert found.model is None
        told = f"Ollama, which answers on port {port} of this machine, has no model (ollama pull NAME)"
        assert found.why == f"{head} {told}"
    with served({"data": []}) as running:  # anything may listen there
        found = chosen(tmp_path, None, (LocalServer("llama.cpp", "llama.cpp", running.server_port),))
        running.shutdown()
    assert found.why == f"{head} no model server answers on this machine"
