"""Pictures without files: figures of matplotlib and images of Pillow come out of every sandbox that runs CPython."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from hatchway.core.errors import CodeExecutionError, CodeLimitError, CodeRuntimeError, CodeTimeoutError
from hatchway.core.limits import Limits
from hatchway.core.results import Display, ExecutionResult
from hatchway.core.sandbox import CodeSandbox
from hatchway.sandboxes.jail import JailSandbox
from hatchway.sandboxes.process import ProcessSandbox
from hatchway.sandboxes.wall import landlock

pytestmark = pytest.mark.anyio
PNG = b"\x89PNG\r\n\x1a\n"
KINDS = ("process", "namespaces", "landlock")
PLOT = "import matplotlib.pyplot as plt\n"


@pytest.fixture(params=[pytest.param(k, marks=[] if k == "namespaces" else pytest.mark.slow) for k in KINDS])
async def sandbox(request: pytest.FixtureRequest, environment_python: str) -> AsyncIterator[CodeSandbox]:
    """A sandbox of each kind with the packages of the tests' own environment."""
    if request.param == "namespaces" and (seen := JailSandbox.probe()).tier != "namespaces":
        pytest.skip(f"{seen.reason} {seen.hint}")
    if request.param == "landlock" and landlock.abi() < 6:
        pytest.skip(f"needs Landlock version 6, this kernel has {landlock.abi()}")
    if request.param == "process":
        made: CodeSandbox = ProcessSandbox(python=environment_python)
    else:
        made = JailSandbox(tier=request.param, python=environment_python, spares=1)
    async with made:
        yield made


async def run(where: Any, code: str, **limits: Any) -> ExecutionResult:
    result = await (await where.execute(code, limits=Limits(**limits))).next()
    assert isinstance(result, ExecutionResult)
    return result


async def failed(where: Any, code: str, **limits: Any) -> CodeExecutionError:
    with pytest.raises(CodeExecutionError) as raised:
        await run(where, code, **limits)
    return raised.value


def told(displays: Any) -> list[str]:
    assert all(isinstance(display, Display) for display in displays)
    assert all(display.content.startswith(PNG) for display in displays if display.mime_type == "image/png")
    return [f"{display.name} {display.text}" for display in displays]


async def test_figures_are_shown_and_those_left_open_follow(sandbox: CodeSandbox) -> None:
    code = f"""{PLOT}
plt.figure(figsize=(1, 1))
plt.figure(figsize=(2, 2))
plt.show()
print(plt.get_fignums(), plt.get_backend())
plt.figure(figsize=(3, 3))
plt.plot([1, 2])
"""
    result = await run(sandbox, code)
    assert told(result.images) == [
        "display-1.png <Figure size 100x100 with 0 Axes>",
        "display-2.png <Figure size 200x200 with 0 Axes>",
        "display-3.png <Figure size 300x300 with 1 Axes>",
    ]
    assert (result.stdout, result.stderr, result.output) == ("[] agg\n", "", None)


@pytest.mark.parametrize("choice", ["import matplotlib\nmatplotlib.use('Agg')", "import matplotlib"])
async def test_a_figure_that_is_the_last_value_comes_once(sandbox: CodeSandbox, choice: str) -> None:
    result = await run(sandbox, f"{choice}\n{PLOT}fig, ax = plt.subplots(figsize=(1, 1))\nfig")
    assert told(result.images) == ["display-1.png <Figure size 100x100 with 1 Axes>"]
    assert result.output is None


async def test_a_figure_apart_from_pyplot(sandbox: CodeSandbox) -> None:
    code = "from matplotlib.figure import Figure\nf = Figure(figsize=(1, 1))\nf.subplots()\nf.show()\ndisplay(f)\nf"
    assert len(told((await run(sandbox, code)).images)) == 3


async def test_what_a_drawing_function_gives_is_no_output(sandbox: CodeSandbox) -> None:
    result = await run(sandbox, PLOT + "plt.hist([1, 2, 2])")
    assert (len(result.images), result.output) == (1, None)
    error = await failed(sandbox, PLOT + "plt.close('all')\nobject()")
    assert isinstance(error, CodeRuntimeError)


async def test_images_of_pillow(sandbox: CodeSandbox) -> None:
    code = """
from PIL import Image
Image.new("RGB", (2, 2)).show()
Image.new("F", (2, 2)).show()
print("shown")
Image.new("L", (3, 3))
"""
    result = await run(sandbox, code)
    assert [image.mime_type for image in result.images] == ["image/png"] * 3
    assert ["mode=L size=3x3" in image.text for image in result.displays] == [False, False, True]
    assert (result.stdout, result.output) == ("shown\n", None)


async def test_ipythons_own_display_and_its_kinds(sandbox: CodeSandbox) -> None:
    code = "from IPython.display import HTML, Markdown, display\ndisplay(HTML('<i>a</i>'))\nMarkdown('*b*')"
    result = await run(sandbox, code)
    assert [(d.mime_type, d.content) for d in result.displays] == [
        ("text/html", b"<i>a</i>"),
        ("text/markdown", b"*b*"),
    ]


async def test_a_picture_that_is_none_is_passed_over_for_the_next_form(sandbox: CodeSandbox) -> None:
    code = """
class Odd:
    _repr_png_ = _repr_jpeg_ = lambda self: b"no picture"
    _repr_html_ = lambda self: "<b>odd</b>"
class Bare:
    _repr_mimebundle_ = lambda self: {"image/webp": b"RIFF and no more", "image/gif": 3}
    __repr__ = lambda self: "<bare>"
display(Odd(), Bare())
"""
    result = await run(sandbox, code)
    assert [(d.mime_type, d.content) for d in result.displays] == [("text/html", b"<b>odd</b>")]
    assert result.stdout == "<bare>\n"


async def test_pictures_survive_an_error_a_timeout_and_sys_exit(sandbox: CodeSandbox) -> None:
    draw = PLOT + "plt.figure(figsize=(1, 1))\n"
    error = await failed(sandbox, draw + "plt.show()\nplt.figure(figsize=(2, 2))\n1 / 0")
    assert told(error.images) == [
        "display-1.png <Figure size 100x100 with 0 Axes>",
        "display-2.png <Figure size 200x200 with 0 Axes>",
    ]
    assert 'File "<action>", line 5' in error.message
    late = await failed(sandbox, draw + "plt.show()\nwhile True: pass", wall_seconds=8)
    assert isinstance(late, CodeTimeoutError)
    assert len(told(late.images)) == 1
    assert len(told((await run(sandbox, draw + "import sys\nsys.exit()")).images)) == 1


async def test_a_figure_that_cannot_be_drawn_is_the_error_of_the_code(sandbox: CodeSandbox) -> None:
    error = await failed(sandbox, PLOT + "plt.title('$\\\\frac$')\nNone")
    assert "ParseFatalException" in error.message or "ValueError" in error.message


async def test_a_session_shows_the_figures_of_each_action(sandbox: CodeSandbox) -> None:
    async with sandbox.session() as session:
        first = await run(session, PLOT + "fig = plt.figure(figsize=(1, 1))")
        second = await run(session, "fig.subplots()\nfig")
        third = await run(session, "1")
    assert (told(first.images), told(second.images)) == (
        ["display-1.png <Figure size 100x100 with 0 Axes>"],
        ["display-1.png <Figure size 100x100 with 1 Axes>"],
    )
    assert third.displays == ()


async def test_a_forked_copy_shows_nothing_and_threads_do(sandbox: CodeSandbox) -> None:
    code = """
import os, threading
class Html:
    def _repr_html_(self): return "<b/>"
if not (pid := os.fork()):
    try:
        display(Html())
    except RuntimeError as e:
        print(e, flush=True)
    os._exit(0)
os.waitpid(pid, 0)
threads = [threading.Thread(target=display, args=(Html(),)) for _ in range(8)]
[t.start() for t in threads], [t.join() for t in threads]
None
"""
    result = await run(sandbox, code)
    assert len(result.displays) == 8
    assert result.stdout == "tools can be called only in the process the action started in\n"


FORGED = """
import os, json
def tell(**fields):
    line = json.dumps({"type": "display", "text": "", **fields}).encode() + b"\\n"
    for fd in range(3, 40):  # one of them is the channel
        try:
            while line:
                line = line[os.write(fd, line):]
        except OSError:
            pass
"""


@pytest.mark.parametrize(
    ("forged", "why"),
    [
        ("tell(mime_type='application/x-sh', data='rm')", "a display without a proper type or text"),
        ("tell(mime_type='image/png', data={'$': 'bytes', 'v': 'AAAA'})", "a display that is not image/png"),
        ("tell(mime_type='text/html', data=['x'])", "a display without its text"),
    ],
)
async def test_forged_displays_end_the_execution_and_nothing_else(sandbox: CodeSandbox, forged: str, why: str) -> None:
    error = await failed(sandbox, FORGED + forged + "\nimport time\ntime.sleep(9)")
    assert error.message == f"the code broke the sandbox protocol: {why}"
    assert (await run(sandbox, "1 + 1")).output == 2


async def test_a_flood_of_large_displays_is_stopped_by_the_host(sandbox: CodeSandbox) -> None:
    code = FORGED + "while True:\n    tell(mime_type='text/html', data='x' * 1000000, name='/etc/passwd')"
    error = await failed(sandbox, code, display_bytes=5_000_000)
    assert isinstance(error, CodeLimitError)
    assert (error.limit, len(error.displays), error.displays[0].name) == ("display_bytes", 5, "display-1.html")


async def test_nothing_is_imported_that_the_code_did_not(sandbox: CodeSandbox) -> None:
    code = "import sys\ndisplay(1)\nsorted({'matplotlib', 'PIL', 'IPython'} & set(sys.modules))"
    assert (await run(sandbox, code)).output == []
