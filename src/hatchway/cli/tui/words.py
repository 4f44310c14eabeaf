"""Words: what begins with a slash at the prompt."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from hatchway.cli.tui.completing import COMMANDS
from hatchway.trace.blocks import Block, Line, Part, Prose
from hatchway.trace.text import cut, neutral

if TYPE_CHECKING:
    from hatchway.agent.agent import Agent
    from hatchway.agent.skills import SkillMetadata

KEYS = """\
Enter      send; Alt+Enter is a newline
Esc        cancel the turn; what there is stays
Ctrl+O     everything so far, nothing folded
q Enter    quit
"""
WORDS = """\
@path      bring a file along: a picture, text, or all pictures of a folder/
/skill     the skills there are; /skill NAME words… uses one
/model     which model it is; /model NAME takes another
/tools     what the code can call
"""
ASKED = """
When an action or a call asks:
Enter, y   yes, this one
n          no; with a reason the model goes on, without one the turn is over
s          yes, and the like until you leave
a          yes, and the like for good, by a pattern you can change
e          change it first
d          everything about it
"""
HELP = KEYS + WORDS + ASKED


class Teller(Protocol):
    """What words need of a view."""

    def note(self, text: str, *, is_bad: bool = False) -> None:
        """A line of our own."""
        ...

    def show(self, blocks: Sequence[Block]) -> None:
        """Show what is no part of the conversation."""
        ...


def is_word(text: str) -> bool:
    """Whether a prompt is one for us, and not for the model."""
    return text.lstrip().startswith("/") and "\n" not in text.strip()


class Words:
    """Does what a slash says.

    Args:
        view: Where it is shown.
        agent: What is talked about.
        skills: What `/skill` knows.
        set_model: Takes another model, by its name.
        help_text: What `/help` says.
    """

    def __init__(
        self,
        view: Teller,
        agent: Agent,
        skills: Sequence[SkillMetadata],
        set_model: Callable[[str], None],
        *,
        help_text: str = HELP,
    ) -> None:
        self._view, self._agent, self._skills, self._set_model = view, agent, skills, set_model
        self._help_text = help_text

    def take(self, text: str) -> str | None:
        """Do it; the prompt that comes of it, if any does.

        Raises:
            InvalidSetting: There is no such skill or model.
        """
        word, _, rest = text.strip().partition(" ")
        match word:
            case "/help":
                self._view.show([Prose(text=f"```text\n{self._help_text}```")])
            case "/skill":
                return self._skill(rest.strip())
            case "/model":
                self._model(rest.strip())
            case "/tools":
                self._tools()
            case _:
                self._view.note(f"{word}: there is {', '.join(COMMANDS)}", is_bad=True)
        return None

    def _skill(self, rest: str) -> str | None:
        name, _, words = rest.partition(" ")
        found = next((skill for skill in self._skills if skill.name == name), None)
        if found is None:
            if name:
                self._view.note(f"there is no skill {name!r}", is_bad=True)
            self._list([[skill.name, _first(skill.description)] for skill in self._skills] or [["there is no skill"]])
            return None
        return f"Use the skill `{found.name}` ({found.path}):\n\n{found.body()}\n\n{words}".rstrip()

    def _model(self, name: str) -> None:
        if name:
            self._set_model(name)
        self._view.note(f"the model is {name or model_name(self._agent)}")

    def _tools(self) -> None:
        listed = [[name, _first(about)] for name, about in self._agent.offered.items()]
        self._list(listed or [["there is no tool"]])

    def _list(self, rows: Sequence[Sequence[str]]) -> None:
        for first, *rest in rows:
            more = [Part(f"  {cut(neutral('  '.join(rest)), 300)}", "dim")] if rest else []
            self._view.show([Line(mark="·", tone="dim", parts=[Part(neutral(first), "bold"), *more])])


def _first(about: str) -> str:
    """The first sentence of a description, which says what; the others say when."""
    return re.split(r"(?<=\.)\s|\n", about.strip(), maxsplit=1)[0]


def model_name(agent: Agent) -> str:
    """The name of an agent's model."""
    model = agent.model
    assert model is not None, "the agent has been started"
    return model if isinstance(model, str) else f"{model.system}:{model.model_name}"
