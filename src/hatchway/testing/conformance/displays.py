"""What the code shows comes out: in order, as it is shown, also when the code then fails, within limits."""

from __future__ import annotations

from hatchway.core.errors import CodeLimitError, CodeRuntimeError
from hatchway.core.limits import Limits
from hatchway.core.results import Display
from hatchway.core.sandbox import CodeSandbox
from hatchway.testing.conformance.checks import check
from hatchway.testing.conformance.drive import failure, finish, next_call, run, started
from hatchway.testing.conformance.expect import contains, equal

DISPLAYS = ("displays",)
RICH = r"""
class Rich:
    def __init__(self, name, data):
        self.name, self.data = name, data
    def __repr__(self):
        return f"<{self.name}>"
class Png(Rich):
    def _repr_png_(self):
        return b"\x89PNG\r\n\x1a\n" + self.data
    def _repr_html_(self):
        return "<p>not this one</p>"
class Jpeg(Rich):
    def _repr_jpeg_(self):
        return b"\xff\xd8\xff" + self.data
class Svg(Rich):
    def _repr_svg_(self):
        return "<svg/>"
class Html(Rich):
    def _repr_html_(self):
        return "<b>" + self.data + "</b>"
class Broken(Rich):
    def _repr_png_(self):
        raise ValueError("no picture")
"""


def told(displays: tuple[Display, ...]) -> list[list[str]]:
    """The displays, as far as they can be foreseen."""
    return [[display.name, display.mime_type, display.text] for display in displays]


@check("display() and the last value give pictures and tables, in order, of several forms the best", needs=DISPLAYS)
async def check_in_order(sandbox: CodeSandbox) -> None:
    code = RICH + "display(Png('a', b'1'), Html('b', 'ü'))\ndisplay(Svg('c', 0))\nJpeg('d', b'2')"
    result = await run(sandbox, code)
    expected = [
        ["display-1.png", "image/png", "<a>"],
        ["display-2.html", "text/html", "<b>"],
        ["display-3.svg", "image/svg+xml", "<c>"],
        ["display-4.jpg", "image/jpeg", "<d>"],
    ]
    equal("the displays", told(result.displays), expected)
    equal("the images", [image.name for image in result.images], ["display-1.png", "display-3.svg", "display-4.jpg"])
    equal("their bytes", result.displays[1].content, "<b>ü</b>".encode())
    equal("the output of a value that was shown and cannot cross", result.output, None)


@check("display() of plain values prints them; an object that cannot be shown is no output", needs=DISPLAYS)
async def check_plain(sandbox: CodeSandbox) -> None:
    result = await run(sandbox, RICH + "display(1, 'x', Broken('b', 0))\n[1]")
    equal("stdout, output, displays", [result.stdout, result.output, result.displays], ["1\n'x'\n<b>\n", [1], ()])
    await failure(sandbox, CodeRuntimeError, RICH + "Broken('b', 0)")


@check("what is shown is streamed, after what was printed before it and before the next call", needs=DISPLAYS)
async def check_streamed(sandbox: CodeSandbox) -> None:
    seen: list[str] = []
    code = RICH + "print('one')\ndisplay(Png('a', b''))\nprint('two')\nping()\ndisplay(Html('b', ''))"
    async with started(sandbox, code, ["ping"], on_output=lambda _, text: seen.extend(text.split())) as execution:
        execution.watch_displays(lambda display: seen.append(display.text))
        await next_call(execution)
        equal("heard before the call", sorted(seen), ["<a>", "one", "two"])
        equal("printed before it was heard before it", seen.index("one") < seen.index("<a>"), True)
        await execution.provide_result(None)
        await finish(execution)
    equal("heard last", seen[3:], ["<b>"])


@check("what was shown is kept when the code fails", needs=DISPLAYS)
async def check_kept_on_error(sandbox: CodeSandbox) -> None:
    error = await failure(sandbox, CodeRuntimeError, RICH + "display(Png('a', b''))\n1 / 0")
    equal("error.displays", told(error.displays), [["display-1.png", "image/png", "<a>"]])
    equal("error.images", error.images, error.displays)


@check("showing more than Limits.displays or Limits.display_bytes is a CodeLimitError", needs=DISPLAYS)
async def check_limits(sandbox: CodeSandbox) -> None:
    many = RICH + "for n in range(9):\n    display(Png(n, b''))"
    error = await failure(sandbox, CodeLimitError, many, limits=Limits(displays=3))
    equal("the limit and what was kept", [error.limit, len(error.displays)], ["displays", 3])
    large = RICH + "for n in range(9):\n    display(Png(n, bytes(600)))"
    error = await failure(sandbox, CodeLimitError, large, limits=Limits(display_bytes=2000))
    equal("the limit and what was kept", [error.limit, len(error.displays)], ["display_bytes", 3])


@check("one thing that is too large is an error at display(), which the code can catch", needs=DISPLAYS)
async def check_one_too_large(sandbox: CodeSandbox) -> None:
    code = RICH + "try:\n    display(Html('a', 'x' * 3000))\nexcept ValueError as e:\n    told = str(e)\ntold"
    result = await run(sandbox, code, limits=Limits(display_bytes=2000))
    contains("what was caught", result.output, "Limits.display_bytes")
    equal("the displays", result.displays, ())
