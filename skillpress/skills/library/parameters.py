"""The section ``skills.library`` of params.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from skillpress.core.registry import RETRIEVALS, TEACHERS, lookup
from skillpress.core.sections import PositiveInt, Section, registered
from skillpress.skills.library.files import SkillFolder, given_skills
from skillpress.skills.library.library import SkillLibrary, Version

if TYPE_CHECKING:
    from skillpress.core.interface import Ask
    from skillpress.skills.library.retrieval import Retrieval


class TeacherParameters(Section):
    """The model that writes the library's skills."""

    name: Annotated[str, registered(TEACHERS)]
    """The kind of teacher: ``server``."""
    url: Annotated[str, Field(min_length=1)]
    """Base of a chat-completions interface, such as http://127.0.0.1:8000/v1."""
    model: str
    """The server's name for the model; empty if the server offers a single model."""
    key_variable: str
    """Environment variable that holds the server's key; empty sends none."""
    max_new_tokens: PositiveInt
    """The most tokens of an answer."""
    omit: list[str] = Field(default=[])
    """Sampling parameters that are not sent to the server, such as ``seed``."""
    body: dict[str, Any] = Field(default={})
    """Further fields of every request, such as ``{reasoning_effort: low}``."""
    stream: bool = False
    """Whether answers are requested as streams, for servers that give no others."""

    def make(self, seed: int, folder: Path) -> Ask:
        """The teacher, ready for questions. The folder keeps its answers and their cost until training ends.

        Raises:
            ChatError: the address is not valid, or the key's variable is not set.
        """
        teacher: Ask = lookup(TEACHERS, self.name, "skills.library.teacher.name")(self, seed, folder)
        return teacher


class LibraryParameters(Section):
    """The section ``skills.library``."""

    retrieval: Annotated[str, registered(RETRIEVALS)]
    """Which skills a prompt shows."""
    top_k: PositiveInt
    """The most skills that a prompt shows."""
    every: PositiveInt
    """Number of training steps between evolutions of the library."""
    new: PositiveInt
    """The most skills that an evolution adds: this many general ones, and this many per class that failed."""
    teacher: TeacherParameters | None
    """The model that writes skills; null makes them from phrases of the dictionary."""
    folder: str | None = None
    """A folder of skills (``NAME/SKILL.md``) that the library begins with, for tasks of all classes, in the
    working directory or the lab; null begins without skills."""

    def beginning(self) -> SkillLibrary:
        """The library before training: the skills of ``folder``, without their evidence.

        Raises:
            ParamsError: a skill breaks a rule of the format.
        """
        rules = tuple(skill.as_rule for skill in self._given())
        return SkillLibrary((Version(0, (), rules),) if rules else ())

    def identity(self) -> dict[str, str]:
        """The name of each skill of ``folder`` with a hash of its files."""
        return {skill.name: skill.digest for skill in self._given()}

    def _given(self) -> tuple[SkillFolder, ...]:
        return given_skills(self.folder, "skills.library.folder")

    def make_retrieval(self) -> Retrieval:
        """The retrieval, which chooses the skills that a task's prompts show."""
        chosen: Retrieval = lookup(RETRIEVALS, self.retrieval, "skills.library.retrieval")
        return chosen
