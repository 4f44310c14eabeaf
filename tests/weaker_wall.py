"""What a machine without namespaces says in addition, and what it cannot do."""

from hatchway.core.errors import SandboxUnavailable
from hatchway.sandboxes.jail.landlock_checks import check_path_rules
from hatchway.sandboxes.registry import availability

WARNINGS = ("the jail holds by Landlock only: ", "the command is held by Landlock only: ")


def no_memory_read() -> str:
    """Why nobody may look into the code's memory here; empty where it is allowed.

    The landlock tier can then neither deny files by name nor, for an ordinary user, let the code change modes.
    """
    try:
        check_path_rules()
    except SandboxUnavailable as e:
        return e.message
    return ""


def no_agent() -> str:
    """Why no agent can run here: its jail denies files by name, which not every wall can. Empty where one can."""
    jail = availability("jail")
    if jail.tier == "landlock" and (why := no_memory_read()):
        return why
    return "" if jail.state == "usable" else f"no jail here: {jail.reason}"


def without_warning(stderr: str) -> str:
    """The rest of what was said."""
    return "".join(line for line in stderr.splitlines(keepends=True) if not line.startswith(WARNINGS))
