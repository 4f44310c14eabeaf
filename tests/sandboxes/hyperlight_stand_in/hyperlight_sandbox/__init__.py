"""A stand-in with the interface of hyperlight-sandbox 0.8.0, for machines without a hypervisor. It holds nothing."""

import io
import threading
import traceback
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path


@dataclass
class ExecutionResult:
    stdout: str
    stderr: str
    exit_code: int

    @property
    def success(self) -> bool:
        return self.exit_code == 0


class Sandbox:
    """Runs code by `exec`. As the real one: unsendable, tools before the first run, keyword arguments only."""

    def __init__(
        self, *, input_dir=None, output_dir=None, temp_output=False, backend="wasm", module="python_guest.path",
        module_path=None, heap_size=None, stack_size=None, filesystem_limits=None, max_file_size=None,
        max_total_size=None, max_file_count=None,
    ) -> None:  # fmt: skip
        self._thread = threading.get_ident()
        self._tools, self._names, self._has_run = {}, {}, False
        self._domains, self._dirs = [], {"/input": input_dir, "/output": output_dir}

    def register_tool(self, name_or_tool, callback=None) -> None:
        self._check()
        if self._has_run:
            raise RuntimeError("tools must be registered before the first run")
        self._tools[name_or_tool] = callback

    def allow_domain(self, target, methods=None) -> None:
        self._check()
        self._domains.append((target, methods))

    def run(self, code: str) -> ExecutionResult:
        self._check()
        self._has_run = True
        out, err = io.StringIO(), io.StringIO()
        self._names.update(call_tool=self._call, domains=list(self._domains), open_path=self._path)
        with redirect_stdout(out), redirect_stderr(err):
            try:
                exec(compile(code, "guest", "exec"), self._names)
            except BaseException:
                return ExecutionResult(out.getvalue(), traceback.format_exc(), 1)
        return ExecutionResult(out.getvalue(), err.getvalue(), 0)

    def snapshot(self):
        self._check()
        return dict(self._names)

    def restore(self, snapshot) -> None:
        self._check()
        self._names = dict(snapshot)

    def get_output_files(self):
        return [path.name for path in Path(self._dirs["/output"]).iterdir()]

    def output_path(self):
        return self._dirs["/output"]

    def _call(self, name, **kwargs):
        return self._tools[name](**kwargs)

    def _path(self, path):
        top, _, rest = path[1:].partition("/")
        return Path(self._dirs["/" + top]) / rest

    def _check(self) -> None:
        if threading.get_ident() != self._thread:
            raise RuntimeError("WasmSandbox is unsendable, but sent to another thread")
