"""How an action's failure is told: the traceback Python would print, without frames of ours, and never too long."""

import errno
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
HIDDEN = [HERE]
"""Folders whose frames are not the action's."""
MAX_CHARS = 64 * 1024
_STARTING = re.compile(r"new process|fork|spawn|Popen|subprocess|Process\(|\.start\(")  # else EAGAIN is of a read
_AWAITED_VALUE = re.compile(r"can't be used in 'await' expression|awaitable is required|coroutine was expected")


def failure(error, tools):
    """The kind and the text of the error that ended an action."""
    kind = _kind(error)
    try:
        text = _formatted(error) + _hint(error, tools)
    except BaseException:
        text = "%s: (its message could not be read)" % type(error).__name__
    return kind, cut(text)


def _kind(error):
    """What the error is about: memory, a field of `Limits` the system refused by, or nothing but the code."""
    if isinstance(error, MemoryError):
        return "memory"
    if isinstance(error, RuntimeError) and str(error).startswith("can't start new thread"):
        return "processes"
    if not isinstance(error, OSError):
        return "runtime"
    if error.errno == errno.ENOSPC:
        return "disk_bytes" if _has_inodes(error) else "disk_files"
    if error.errno == errno.EAGAIN and (_STARTING.search(str(error)) or _STARTING.search(_last_line(error))):
        return "processes"
    return {errno.EMFILE: "open_files", errno.EFBIG: "file_bytes"}.get(error.errno, "runtime")


def _has_inodes(error):
    """Whether there may be another file where there was no room: `output` is a disk of its own."""
    try:
        named = error.filename2 or error.filename
        folder = os.path.dirname(named) if isinstance(named, str) else ""
        return os.statvfs(folder or ".").f_ffree > 0
    except (OSError, ValueError):
        return True


def syntax_failure(error):
    """The text of an error of the compiler."""
    import traceback

    if isinstance(error, SyntaxError):
        return cut("".join(traceback.format_exception_only(type(error), error)).rstrip("\n"))
    if isinstance(error, UnicodeError):
        return "SyntaxError: the code is not valid text: %s" % error
    if isinstance(error, RecursionError):
        return "SyntaxError: the code is nested too deeply"
    return "SyntaxError: %s" % error


def cut(text):
    """The text with its middle left out when it is very long."""
    if len(text) <= MAX_CHARS:
        return text
    half = MAX_CHARS // 2
    return "%s\n… %d characters cut …\n%s" % (text[:half], len(text) - 2 * half, text[-half:])


def _formatted(error):
    import traceback

    shown = traceback.TracebackException.from_exception(error)
    _strip(shown, set())
    return "".join(shown.format()).rstrip("\n")


def _strip(shown, seen):
    """Drop our frames here and in every chained or grouped error."""
    if shown is None or id(shown) in seen:
        return
    seen.add(id(shown))
    theirs = [frame for frame in shown.stack if not frame.filename.startswith(tuple(HIDDEN))]
    first = next((i for i, frame in enumerate(theirs) if frame.filename.startswith("<action")), 0)
    shown.stack[:] = theirs[first:]
    for chained in (shown.__cause__, shown.__context__, *(getattr(shown, "exceptions", None) or ())):
        _strip(chained, seen)


def _hint(error, tools):
    """The right style, when the error looks like a plain tool was awaited."""
    if not isinstance(error, TypeError) or not _AWAITED_VALUE.search(str(error)):
        return ""
    plain = _mentioned(_last_line(error), [name for name, is_async in tools.items() if not is_async])
    return "".join("\n%s is a plain function: call it as %s(...), without await" % (name, name) for name in plain)


def _mentioned(line, names):
    return [name for name in names if re.search(r"(?<![\w.])%s\(" % re.escape(name), line)]


def _last_line(error):
    import linecache

    trace, line = error.__traceback__, ""
    while trace is not None:
        filename = trace.tb_frame.f_code.co_filename
        if filename.startswith("<action"):
            line = linecache.getline(filename, trace.tb_lineno)
        trace = trace.tb_next
    return line
