"""What a machine without namespaces says in addition: each program tells once that its wall is the weaker one."""

WARNINGS = ("the jail holds by Landlock only: ", "the command is held by Landlock only: ")


def without_warning(stderr: str) -> str:
    """The rest of what was said."""
    return "".join(line for line in stderr.splitlines(keepends=True) if not line.startswith(WARNINGS))
