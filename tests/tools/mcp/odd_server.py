"""An MCP server that misbehaves on request, in plain JSON lines: what no server of good manners can be made to do.

Its first argument says what it lists or how it starts; the name of the tool says what a call does.
"""

import base64
import json
import os
import signal
import sys
import time
from pathlib import Path

LISTS = sys.argv[1] if len(sys.argv) > 1 else ""
NAMES = Path(sys.argv[2]).read_text().split() if LISTS == "file" else []
OBJECT = {"type": "object", "properties": {}}
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
INJECTION = '"""\nimport os; os.system("touch injected")\n"""\\'
PLAIN = "die hang flood garbage image fail ask change daemon drop progress pid huge deaf"
tools = [{"name": name, "inputSchema": OBJECT} for name in PLAIN.split()] + [
    {"name": "echo", "inputSchema": TEXT, "annotations": {"readOnlyHint": True}}
]
FEW = {"hollow": ("hollow",), "refusing": ("refuse", "progress")}
TASKS = ("completed", "failed", "input_required", "dropped", "endless", "nameless")
if LISTS == "tasks":
    tools = [{"name": name, "inputSchema": OBJECT, "execution": {"taskSupport": "required"}} for name in TASKS]
looks: list[object] = []
cancelled: list[object] = []
asked: dict[str, object] = {}


def send(message: dict[str, object]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(said: str, **more: object) -> dict[str, object]:
    return {"content": [{"type": "text", "text": said}], **more}


def refuse() -> None:
    """An error of its own, by the number that the SDK has for connections that ended."""
    send({"id": asked["id"], "error": {"code": -32000, "message": "quota used up"}})


def die() -> None:
    sys.stderr.write("giving up\n")
    sys.stderr.flush()
    os._exit(3)


def flood() -> dict[str, object]:
    sys.stderr.write("noise " * 1_000_000)
    return text("still here")


def garbage() -> dict[str, object]:
    sys.stdout.write("this is no JSON\n{\n[]\n")
    return text("after garbage")


def image() -> dict[str, object]:
    data = base64.b64encode(b"\x89PNG").decode()
    return {"content": [{"type": "image", "mimeType": "image/png", "data": data}]}


def ask() -> dict[str, object]:
    send({"id": "q1", "method": "elicitation/create", "params": {"message": "?", "requestedSchema": OBJECT}})
    answer = json.loads(sys.stdin.readline())
    return text(answer["error"]["message"] if "error" in answer else json.dumps(answer["result"]))


def change() -> dict[str, object]:
    tools.append({"name": "added", "inputSchema": OBJECT})
    send({"method": "notifications/tools/list_changed"})
    return text("changed")


def daemon() -> dict[str, object]:
    """Leave a process behind that is in no group of ours and deaf to everything."""
    heard, told = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if pid := os.fork():
            os.write(told, str(pid).encode())
            os._exit(0)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.closerange(0, 100)
        time.sleep(600)
        os._exit(0)
    return text(os.read(heard, 100).decode())


def drop() -> dict[str, object]:
    tools[:] = [tool for tool in tools if tool["name"] != "added"]
    send({"method": "notifications/tools/list_changed"})
    return text("dropped")


def deaf() -> dict[str, object]:
    os.close(0)
    return text("cannot hear you any more")


def deep() -> None:
    """An answer to the first call that no reader takes."""
    sys.stdout.write(f'{{"jsonrpc": "2.0", "id": {asked["id"]}, "result": {{"content": {"[" * 5000}{"]" * 5000}}}}}\n')
    sys.stdout.flush()


def chatty() -> None:
    sys.stdout.write("thinking about it\n")
    sys.stdout.flush()


ACTS = {
    "deep": deep,
    "neither": lambda: send({"id": asked["id"]}),
    "half": lambda: text("cut here: \ud83d"),
    "bare": lambda: {"structuredContent": {"rows": [1]}},
    "new_kind": lambda: {"content": [{"type": "text", "text": "seen"}, {"type": "hologram", "depth": 3}]},
    "chatty": chatty,
    "deaf": deaf,
    "die": die,
    "refuse": refuse,
    "hang": lambda: None,
    "flood": flood,
    "garbage": garbage,
    "image": image,
    "ask": ask,
    "change": change,
    "daemon": daemon,
    "drop": drop,
    "fail": lambda: text("no such row", isError=True),
    "pid": lambda: text(str(os.getpid())),
    "huge": lambda: text("x" * 5_000_000),
    "cancelled": lambda: text(json.dumps(cancelled)),
    "hollow": lambda: {},
    "other_schema": lambda: text("called"),
}


def call(name: str, given: dict[str, str], meta: dict[str, object]) -> dict[str, object] | None:
    if name == "progress":
        for step in range(8):
            time.sleep(0.2)
            told = {"progressToken": meta.get("progressToken"), "progress": step}
            send({"method": "notifications/progress", "params": told})
    return ACTS[name]() if name in ACTS else text(given.get("text", name))


def task(method: str, params: dict[str, str]) -> dict[str, object]:
    """A task ends on the third look as its tool is named, or never."""
    name = params.get("taskId") or params["name"]
    if method == "tasks/cancel":
        cancelled.append(name)
    if method == "tasks/result":
        return text(f"{name} at last", isError=name == "failed")
    looks.append(name)
    is_over = looks.count(name) > 3 and name != "endless"
    told = {"taskId": name, "status": name if is_over else "working", "statusMessage": "busy", "pollInterval": 1}
    return told if method != "tools/call" else {"task": {} if name == "nameless" else told}


def listed() -> list[dict[str, object]]:
    if LISTS == "many":
        return [{"name": f"tool_{n}", "inputSchema": TEXT} for n in range(5000)]
    if LISTS == "twice":
        return [{"name": name, "inputSchema": TEXT} for name in ("a-b", "a_b", "a-b", "from")]
    if LISTS == "broken":
        bad = {"type": "object", "properties": {"x": {"type": "strange", "minimum": "no"}}}
        return [{"name": "echo", "inputSchema": bad}, {"name": "fine", "inputSchema": TEXT}]
    if LISTS == "code":
        described = {"type": "object", "properties": {"text": {"type": "string", "description": INJECTION}}}
        return [{"name": "echo", "description": INJECTION, "inputSchema": described}]
    if LISTS == "long":
        return [{"name": "x" * 5000, "inputSchema": TEXT}]
    if LISTS == "mistaken":
        return json.loads(Path(__file__).with_name("mistaken_tools.json").read_text(encoding="utf-8"))
    if LISTS == "answers":
        names = ("deep", "neither", "half", "bare", "new_kind", "chatty")
        return [{"name": name, "description": "half \ud83d", "inputSchema": OBJECT} for name in names]
    if LISTS in FEW:
        return [{"name": name, "inputSchema": OBJECT} for name in FEW[LISTS]]
    if LISTS == "moving":  # what is told while a list is on its way is not in that list
        before = list(tools)
        if not any(tool["name"] == "added" for tool in tools):
            change()
        return before
    if LISTS == "file":  # one version of it per start
        return [{"name": name, "inputSchema": OBJECT} for name in NAMES]
    return [*tools, {"name": "cancelled", "inputSchema": OBJECT}]


def hear() -> str:
    try:
        return sys.stdin.readline()
    except OSError:  # deaf, and still there
        time.sleep(600)
        return ""


def main() -> None:
    global asked
    if LISTS == "mute":
        time.sleep(600)
    if LISTS == "rubbish":
        sys.stdout.write("Welcome to my server!\n")
        sys.stdout.flush()
        time.sleep(600)
    if LISTS == "stillborn":
        sys.exit("no licence found")
    for line in iter(hear, ""):
        asked = json.loads(line)
        number, params = asked.get("id"), asked.get("params") or {}
        if asked.get("method") == "initialize":
            info = {"name": "odd", "version": "1"}
            about = {"tools": {"listChanged": True}}
            result = {"protocolVersion": "2025-06-18", "capabilities": about, "serverInfo": info}
            send({"id": number, "result": result})
        elif asked.get("method") == "tools/list":
            send({"id": number, "result": {"tools": listed()}})
        elif asked.get("method") == "notifications/cancelled":
            cancelled.append(params.get("requestId"))
        elif str(asked.get("method")).startswith("tasks/") or "task" in params:
            send({"id": number, "result": task(asked["method"], params)})
        elif asked.get("method") == "tools/call":
            answer = call(params["name"], params.get("arguments") or {}, params.get("_meta") or {})
            if answer is not None:
                send({"id": number, "result": answer})
        elif number is not None and "method" in asked:
            send({"id": number, "error": {"code": -32601, "message": "unknown method"}})


main()
