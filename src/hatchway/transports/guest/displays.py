"""What an action shows: pictures, tables, formulas. Each is told to the host at once, in the order it was shown."""

import base64
import sys

from . import codec

FORMS = (
    ("image/png", "_repr_png_"),
    ("image/jpeg", "_repr_jpeg_"),
    ("image/svg+xml", "_repr_svg_"),
    ("text/html", "_repr_html_"),
    ("text/markdown", "_repr_markdown_"),
    ("text/latex", "_repr_latex_"),
)  # of several forms the first one is told
MAX_TEXT = 4096
_BEGINNINGS = {  # a value can be mistaken about its own picture: the host would take that for a broken protocol
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}
_PLAIN = frozenset((type(None), bool, int, float, complex, str, bytes, list, dict, tuple, set))
_DRAWING = ("matplotlib", "mpl_toolkits", "seaborn", "pandas.plotting")


class Displays:
    """The way out for everything one interpreter shows."""

    def __init__(self, exchange):
        self._exchange = exchange
        self.limit = 0
        """Bytes one of them may have."""
        self.shell = None
        """IPython's shell where there is one; its formatters come first."""
        self.is_ipython = False
        """Whether there is one, or will be."""
        self._drawn = 0
        self._left_open = None
        self._stands_for = None

    def display(self, *values, **_options):
        """Show values: rich ones as what they are, the rest as printed text."""
        for value in values:
            if not self.show(value):
                sys.stdout.write(repr(value) + "\n")

    def show(self, value):
        """Show a value in its richest form; whether it has one."""
        if type(value) in _PLAIN or isinstance(value, type):
            return False
        found = _rich_form(value, self.shell)
        if found is None:
            return False
        self.send(found[0], found[1], _text(value))
        return True

    def show_bundle(self, bundle):
        """Show one thing given in several forms, by their MIME types; whether any of them can be shown."""
        found = _best(bundle)
        if found is not None:
            self.send(found[0], found[1], str(bundle.get("text/plain", "")))
        return found is not None

    def send(self, mime_type, data, text):
        """Tell the host. Raises ValueError when it is too large."""
        size = len(data) if isinstance(data, bytes) else len(data.encode("utf-8", "replace"))
        if size > self.limit:
            raise ValueError("what is shown has %d bytes, Limits.display_bytes leaves %d" % (size, self.limit))
        self._drawn += mime_type.startswith("image/")
        message = {"type": "display", "mime_type": mime_type, "data": data, "text": text[:MAX_TEXT]}
        self._exchange.tell(codec.dumps(message) + b"\n")

    def show_figure(self, figure):
        """Show a figure of matplotlib now, and take it off its list of open ones."""
        self.send("image/png", self.figure_png(figure), _text(figure))
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is not None:
            pyplot.close(figure)

    def figure_png(self, figure):
        """A figure as a picture."""
        return _figure_png(figure)

    def show_open_figures(self):
        """Show every open figure of pyplot, in the order in which they were made."""
        for figure in _open_figures():
            self.show_figure(figure)

    def begin(self, limit):
        """An action begins."""
        self.limit, self._drawn, self._left_open, self._stands_for = limit, 0, None, None

    def ending(self):
        """The code has run: the figures that are open now will be shown, by us or by a backend of IPython's."""
        if self._left_open is None:
            self._left_open = _open_figures()

    def end(self, output):
        """The action has ended with this output: show what it left open, and the output if it has a rich form."""
        self.ending()
        self.show_open_figures()
        is_figure_shown = any(figure is output for figure in self._left_open)
        if is_figure_shown or self.show(output) or (self._drawn and _is_drawing(output, 3)):
            self._stands_for = (output,)

    def end_failed(self):
        """The action has failed: show what it left open, if that can be."""
        try:
            self.show_open_figures()
        except BaseException:
            pass  # the failure that is told is the action's

    def stands_for(self, output):
        """Whether the output was shown, so that it need not cross the wall as a value."""
        return self._stands_for is not None and self._stands_for[0] is output


def _rich_form(value, shell):
    """The MIME type and the data of a value's richest form; None when it has none."""
    if shell is not None:
        found = _best(shell.display_formatter.format(value)[0])
        if found is not None:
            return found
    if _is_figure(value):
        return "image/png", _figure_png(value)
    bundle = _asked(value, "_repr_mimebundle_")
    found = _best(bundle) if isinstance(bundle, dict) else None
    if found is not None:
        return found
    for mime_type, method in FORMS:
        found = _best({mime_type: _asked(value, method)})
        if found is not None:
            return found
    return None


def _asked(value, method):
    """What a method of the value's class gives, without its metadata; None when there is no such method or it fails.

    Of the class, not of the value: something that has every attribute would have this one too.
    """
    if getattr(type(value), method, None) is None:
        return None
    try:
        given = getattr(value, method)()
    except Exception:
        return None
    return given[0] if isinstance(given, tuple) and given else given


def _best(bundle):
    for mime_type in (*(mime_type for mime_type, _ in FORMS), "image/gif", "image/webp"):
        data = bundle.get(mime_type)
        if isinstance(data, (list, tuple)):
            data = "".join(map(str, data))
        if not data:
            continue
        if mime_type not in _BEGINNINGS:
            return mime_type, str(data)
        picture = _bytes(data)
        if picture.startswith(_BEGINNINGS[mime_type]) and (mime_type != "image/webp" or picture[8:12] == b"WEBP"):
            return mime_type, picture
    return None


def _bytes(data):
    if isinstance(data, (bytes, bytearray)):
        return bytes(data)
    try:
        return base64.b64decode(data)
    except (TypeError, ValueError):
        return b""


def _open_figures():
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    return [] if helpers is None else [manager.canvas.figure for manager in helpers.Gcf.get_all_fig_managers()]


def _is_figure(value):
    figures = sys.modules.get("matplotlib.figure")
    return figures is not None and isinstance(value, figures.Figure)


def _figure_png(figure):
    import io

    file = io.BytesIO()
    figure.savefig(file, format="png", bbox_inches="tight")
    return file.getvalue()


def _is_drawing(value, depth):
    """Whether a value is what a drawing function gave: a line, a text, axes, or a collection with such a thing."""
    if (type(value).__module__ + ".").startswith(tuple(name + "." for name in _DRAWING)):
        return True
    items = getattr(value, "flat", None) if type(value).__name__ == "ndarray" else value
    if depth and (items is not value or isinstance(value, (list, tuple))):
        return any(_is_drawing(item, depth - 1) for item in items)
    if depth and isinstance(value, dict):
        return any(_is_drawing(item, depth - 1) for item in value.values())
    return False


def _text(value):
    try:
        return repr(value)[:MAX_TEXT]
    except Exception:
        return "<%s>" % type(value).__name__
