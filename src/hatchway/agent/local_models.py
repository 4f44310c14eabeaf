"""Model servers of this machine that speak OpenAI's protocol: found by asking the ports they usually have."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

SECONDS = 0.4
"""How long a server may take to answer; one on this machine that is idle takes a few milliseconds."""
_MOST_BYTES = 1 << 20
_MOST_CHARACTERS = 200
_NOT_FOR_TALKING = ("embed", "rerank", "whisper", "tts", "bge-", "clip")


class LocalServer(NamedTuple):
    """A kind of server and where it listens."""

    prefix: str
    """What its models are called by."""
    name: str
    port: int
    gets_model: str = "load one"
    """What a person does who has none yet."""


class LocalModel(NamedTuple):
    """A model that is served on this machine."""

    server: LocalServer
    model: str

    @property
    def base_url(self) -> str:
        """Where OpenAI's protocol is spoken."""
        return f"http://127.0.0.1:{self.server.port}/v1"


class LocalModels(NamedTuple):
    """What the servers of this machine have."""

    best: LocalModel | None
    """A model of the first server that has one."""
    empty: tuple[LocalServer, ...]
    """Servers that answer and have no model to talk with."""


SERVERS = (
    LocalServer("ollama", "Ollama", 11434, "ollama pull NAME"),
    LocalServer("lmstudio", "LM Studio", 1234, "load one in its window, or lms load NAME"),
    LocalServer("llama.cpp", "llama.cpp", 8080, "start it with -m FILE.gguf"),
)
"""In the order in which they are taken when several answer."""


def find_local_models(servers: Sequence[LocalServer] = SERVERS, *, seconds: float = SECONDS) -> LocalModels:
    """What the servers have. All are asked at once, and only on loopback."""
    told: dict[LocalServer, list[str] | None] = {}

    def ask(server: LocalServer) -> None:
        told[server] = _asked(server, seconds)

    threads = [threading.Thread(target=ask, args=(server,), daemon=True) for server in servers]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 2 * seconds
    for thread in threads:  # one that answers byte by byte is left behind
        thread.join(max(0.0, deadline - time.monotonic()))
    best = next((LocalModel(server, names[0]) for server in servers if (names := told.get(server))), None)
    return LocalModels(best, tuple(server for server in servers if told.get(server) == []))


def _asked(server: LocalServer, seconds: float) -> list[str] | None:
    """The models it serves that can talk; None: no model server is there."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=seconds)
    try:
        connection.request("GET", "/v1/models", headers={"Accept": "application/json"})
        answer = connection.getresponse()
        told: Any = json.loads(answer.read(_MOST_BYTES)) if answer.status == 200 else None
    except (OSError, http.client.HTTPException, ValueError, RecursionError):
        return None  # nobody there, or something else than a model server
    finally:
        connection.close()
    names = [name for name in _names(told) if not any(word in name.lower() for word in _NOT_FOR_TALKING)]
    return names if names or _is_list(told) else None


def _is_list(told: Any) -> bool:
    """Whether it is OpenAI's list of models, be it an empty one; anything may listen on these ports."""
    return isinstance(told, dict) and cast(dict[str, Any], told).get("object") == "list"


def _names(told: Any) -> list[str]:
    listed: Any = cast(dict[str, Any], told).get("data") if isinstance(told, dict) else None
    entries = cast(list[Any], listed) if isinstance(listed, list) else []
    names = [cast(dict[str, Any], entry).get("id") for entry in entries if isinstance(entry, dict)]
    return [name for name in names if isinstance(name, str) and _is_name(name)]


def _is_name(text: str) -> bool:
    return 0 < len(text) <= _MOST_CHARACTERS and text.isprintable()
