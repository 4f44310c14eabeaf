"""Removing what dead code has left behind."""

from __future__ import annotations

import os


def remove_tree(folder: str) -> None:
    """Remove a folder, however deep and closed. `shutil.rmtree` recurses: code that nests would end whoever calls it.

    Directories are taken apart level by level, their own directories moved up, so that no path grows long. What
    cannot be removed is left.
    """
    moved = 0
    todo = [folder]
    while todo:
        directory = todo.pop()
        try:
            os.chmod(directory, 0o700)
            for entry in list(os.scandir(directory)):
                if entry.is_dir(follow_symlinks=False):
                    os.chmod(entry.path, 0o700)  # a directory nobody may write to cannot be moved
                    moved += 1
                    place = f"{folder}.{moved}"
                    os.rename(entry.path, place)
                    todo.append(place)
                else:
                    os.unlink(entry.path)
            os.rmdir(directory)
        except OSError:
            continue  # something of another user's: the system's own clean-up takes it
