"""Runs inside a sandbox, before and after the code: writes input files, gives new and changed ones back.

Everything is within one function: the code must find no name that it did not make itself.
"""

from collections.abc import Mapping
from typing import Any


def exchange_files(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Write `given["files"]`; then what is not as `given["seen"]` says, up to the limits.

    Returns:
        `seen`, what there is now; `files`, the new and changed ones; `left_out`, others that are not among them;
        `is_too_much`, when there is so much that nothing was looked at.
    """
    import os

    seen: dict[str, list[int]] = {}
    files: dict[str, bytes] = {}
    left_out: list[str] = []
    for name, content in given["files"].items():
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        with open(name, "wb") as f:
            f.write(content)
    room = given["most_bytes"]
    entries = 0
    for folder, folders, names in os.walk("."):
        entries += len(folders) + len(names)
        if entries > given["most_entries"]:
            return {"seen": {}, "files": {}, "left_out": [], "is_too_much": True}
        for name in names:
            path = os.path.normpath(os.path.join(folder, name))
            found = os.lstat(path)
            if found.st_mode & 0o170000 != 0o100000:  # not a regular file
                continue
            seen[path] = mark = [found.st_size, found.st_mtime_ns]
            if given["seen"] is None or given["seen"].get(path) == mark:
                continue
            if not path.isprintable() or found.st_size > room or len(files) == given["most_files"]:
                left_out.append(ascii(path))
                continue
            room -= found.st_size
            with open(path, "rb") as f:
                files[path] = f.read()
    return {"seen": seen, "files": files, "left_out": left_out[: given["most_files"]], "is_too_much": False}
