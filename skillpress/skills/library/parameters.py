"""The section ``skills.library`` of params.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from skillpress.core.registry import RETRIEVALS, TEACHERS, lookup
from skillpress.core.sections import PositiveInt, Section, registered

if TYPE_CHECKING:
    from skillpress.core.interface import Ask
    from skillpress.skills.library.retrieval import Retrieval


class TeacherParameters(Section):
    """Who writes the library's skills."""

    name: Annotated[str, registered(TEACHERS)]
    url: Annotated[str, Field(min_length=1)]
    """Base of a chat-completions interface, as in http://127.0.0.1:8000/v1."""
    model: str
    """What the server calls the model; empty for one that offers a single model."""
    key_variable: str
    """Environment variable that holds the server's key; empty sends none."""
    max_new_tokens: PositiveInt
    """Tokens of an answer at most."""
    omit: list[str] = Field(default=[])
    """Parameters of the sampling that the server is not sent, such as ``seed``."""

    def make(self, seed: int, folder: Path) -> Ask:
        """The teacher, ready to be asked.

        Args:
            folder: where its answers are kept until the training has ended, and what they cost.

        Raises:
            ChatError: the address is none, or the key's variable is not set.
        """
        teacher: Ask = lookup(TEACHERS, self.name, "skills.library.teacher.name")(self, seed, folder)
        return teacher


class LibraryParameters(Section):
    """``skills.library``."""

    retrieval: Annotated[str, registered(RETRIEVALS)]
    """Which skills a prompt shows."""
    top_k: PositiveInt
    """How many, at most."""
    every: PositiveInt
    """Training steps from one evolution of the library to the next."""
    new: PositiveInt
    """Skills that one adds at most: so many general ones, and so many for each class of tasks that failed."""
    teacher: TeacherParameters | None
    """None takes phrases of the dictionary."""

    def make_retrieval(self) -> Retrieval:
        """What chooses the skills that a task is shown."""
        chosen: Retrieval = lookup(RETRIEVALS, self.retrieval, "skills.library.retrieval")
        return chosen
