"""Skills after agentskills.io: a folder with a SKILL.md; its head is read at start, its body when it is used."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from hatchway.agent.workspace_files import read_start
from hatchway.core.errors import InvalidSetting, MissingExtra

FILE = "SKILL.md"
NAME_CHARACTERS, DESCRIPTION_CHARACTERS, COMPATIBILITY_CHARACTERS = 64, 1024, 500
_HEAD_BYTES, _BODY_BYTES, _MOST_RESOURCES = 64 * 1024, 1024**2, 1000
_NAME = re.compile(r"[^\W_]+(?:-[^\W_]+)*")


@dataclass(frozen=True, slots=True)
class SkillMetadata:
    """What is known of a skill before it is used."""

    name: str
    description: str
    """What it does and when to use it, in one line."""
    path: Path
    """Its SKILL.md."""
    license: str = ""
    compatibility: str = ""
    """What it needs, in words."""
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    """Whatever else its author says of it."""
    allowed_tools: tuple[str, ...] = ()
    """Tools its author would have allowed. Told to the person; nothing is allowed by it."""

    def body(self) -> str:
        """The instructions: all of SKILL.md but its head.

        Raises:
            InvalidSetting: The file cannot be read any more.
        """
        return _split(self.path, _text(self.path, _BODY_BYTES))[1].strip()

    def resources(self) -> list[Path]:
        """The other files of the skill, relative to its folder; links that lead out of it are left out."""
        folder = self.path.parent.resolve()
        found = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.resolve().is_relative_to(folder))
        inside = [path.relative_to(folder) for path in found]
        return [path for path in inside if path != Path(FILE)][:_MOST_RESOURCES]


def find_skills(folders: Iterable[Path]) -> tuple[list[SkillMetadata], list[str]]:
    """The skills in these folders, by name, and why others were left out. Of two of one name the first counts."""
    skills: dict[str, SkillMetadata] = {}
    warnings: list[str] = []
    for path in (path for folder in folders for path in sorted(folder.glob(f"*/{FILE}"))):
        try:
            skill = read_skill(path)
        except InvalidSetting as e:
            warnings.append(f"skill left out: {e.message}")
            continue
        if skill.name in skills:
            warnings.append(f"skill left out: {path}: there is one of this name in {skills[skill.name].path.parent}")
        else:
            skills[skill.name] = skill
    return sorted(skills.values(), key=lambda skill: skill.name), warnings


def read_skill(path: Path) -> SkillMetadata:
    """What the head of a SKILL.md says.

    Raises:
        InvalidSetting: It has no head, or one that the specification does not allow; the message names all mistakes.
    """
    head = _head(path, _split(path, _text(path, _HEAD_BYTES))[0])
    mistakes = list(_mistakes(head, path.parent.resolve().name))
    if mistakes:
        raise InvalidSetting(f"{path}: {'; '.join(mistakes)}", hint="https://agentskills.io/specification")
    extra = cast(dict[str, Any], head.get("metadata") or {})
    return SkillMetadata(
        name=head["name"],
        description=_one_line(head["description"]),
        path=path,
        license=head.get("license") or "",
        compatibility=head.get("compatibility") or "",
        metadata={str(key): str(value) for key, value in extra.items()},
        allowed_tools=tuple(_words(head.get("allowed-tools"))),
    )


def render_skills(skills: Sequence[SkillMetadata], working_dir: Path) -> str:
    """The skills as a system prompt lists them, by their files in the workspace; the same bytes for the same skills."""
    lines = [f"- `{skill.name}`: {skill.description} (`{_near(skill.path, working_dir)}`)" for skill in skills]
    return "\n".join(lines) or "There are none."


def _near(path: Path, working_dir: Path) -> Path:
    return path.relative_to(working_dir) if path.is_relative_to(working_dir) else path


def _text(path: Path, most: int) -> str:
    try:
        return read_start(path, most).decode("utf-8-sig", "replace").replace("\r\n", "\n")
    except OSError as e:
        raise InvalidSetting(f"{path} cannot be read: {e.strerror}") from None


def _split(path: Path, text: str) -> tuple[str, str]:
    found = re.match(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)(.*)", text, re.DOTALL | re.MULTILINE)
    if found is None:
        raise InvalidSetting(f"{path}: it does not begin with a head between two lines of ---")
    return found[1], found[2]


def _head(path: Path, text: str) -> dict[str, Any]:
    try:
        import yaml
    except ImportError as e:
        raise MissingExtra("PyYAML, which reads skills,", "agent") from e
    try:
        head: Any = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as e:
        mark = getattr(e, "problem_mark", None)
        where = f":{mark.line + 2}:{mark.column + 1}" if mark else ""
        raise InvalidSetting(f"{path}{where}: its head is no YAML: {getattr(e, 'problem', None) or e}") from None
    if not isinstance(head, dict):
        raise InvalidSetting(f"{path}: its head has no name and no description")
    return cast(dict[str, Any], head)


def _mistakes(head: Mapping[str, Any], folder: str) -> Iterable[str]:
    name, description = head.get("name"), head.get("description")
    if not isinstance(name, str) or not name:
        yield "it has no name"
    elif len(name) > NAME_CHARACTERS or not _NAME.fullmatch(name) or name != name.lower():
        yield f"the name {name[:80]!r} is not lowercase letters, digits and single hyphens, at most {NAME_CHARACTERS}"
    elif name != folder:
        yield f"its name is {name!r}, its folder's is {folder!r}: they must be the same"
    if not isinstance(description, str) or not description.strip():
        yield "it has no description"
    elif len(description) > DESCRIPTION_CHARACTERS:
        yield f"its description has {len(description)} characters, at most {DESCRIPTION_CHARACTERS} are allowed"
    for key, most in (("license", None), ("compatibility", COMPATIBILITY_CHARACTERS)):
        if not isinstance(text := head.get(key) or "", str):
            yield f"{key} is no text"
        elif most is not None and len(text) > most:
            yield f"{key} has more than {most} characters"
    if not _is_plain(head.get("metadata") or {}, dict):
        yield "metadata is not a mapping to texts"
    if not isinstance(tools := head.get("allowed-tools") or "", str) and not _is_plain(tools, list):
        yield "allowed-tools is neither a text nor a list of texts"


def _is_plain(value: Any, kind: type[dict[Any, Any]] | type[list[Any]]) -> bool:
    """A few lines of YAML can stand for billions of lists in lists, once somebody writes them out."""
    if not isinstance(value, kind):
        return False
    held = cast("dict[Any, Any] | list[Any]", value)
    inside = [*held, *held.values()] if isinstance(held, dict) else held
    return not any(isinstance(each, dict | list | set | tuple) for each in inside)


def _one_line(text: str) -> str:
    """Without control characters, which a terminal would obey."""
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())


def _words(value: Any) -> list[str]:
    """`Bash(git:*) Read` as the specification has it, or a list as some write it."""
    if isinstance(value, list):
        return [str(each) for each in cast(list[Any], value)]
    return re.findall(r"[^\s,(]+(?:\([^)]*\))?", value) if value else []
