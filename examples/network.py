"""Let code reach one server by GET, and see every request at the gate."""

import asyncio
import http.server
import threading

from hatchway import CodeMode
from hatchway.core.events import AgentEvent, CallFailed, CallStarted
from hatchway.sandboxes.monty import MontySandbox

ACTION = """
reply = await fetch(f"{base}/menu")
for method, url in [("DELETE", f"{base}/menu"), ("GET", "https://example.com/")]:
    try:
        await fetch(url, method=method)
    except RuntimeError:
        print(method, "was refused")
reply["text"]
"""


class Cafe(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self.wfile.write(b"tea, cake")

    def log_message(self, *_: object) -> None:
        pass


def tell(event: AgentEvent) -> None:
    match event:
        case CallStarted(call=call):
            print("request:", call.kwargs.get("method", "GET"))
        case CallFailed(error=error):
            print("refused:", error.rpartition(" is refused: ")[2].partition(" (")[0])
        case _:
            pass


async def main() -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), Cafe) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        where = f"127.0.0.1:{server.server_port}"
        async with MontySandbox(allowed_domains=[(where, "GET")]) as sandbox:
            async with CodeMode(sandbox, on_event=tell) as mode:
                result = await mode.run(ACTION, inputs={"base": f"http://{where}"})
        print("output: ", result.output)
        server.shutdown()


asyncio.run(main())
