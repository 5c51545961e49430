"""The ``skills`` section of params.yaml, and the parts of this folder that go by a name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from skillpress.core.registry import CLOSURES, CORPORA, DICTIONARIES, SEARCHES, lookup
from skillpress.core.sections import NonNegativeInt, Section, registered
from skillpress.skills.library.parameters import LibraryParameters

if TYPE_CHECKING:
    from skillpress.core.trajectory import Task
    from skillpress.skills.closure import Closure
    from skillpress.skills.search import Search
    from skillpress.skills.step_corpus import SuccessCorpus


class SkillParameters(Section):
    """The corpus of a dictionary, how it is fitted, and the library of skills in words if there is one."""

    max_phrase_length: Annotated[int, Field(ge=1, le=16)]
    """L, the most skills of a phrase."""
    buffer: NonNegativeInt
    """Success sequences kept between steps; 0 means no buffer."""
    corpus: Annotated[str, registered(CORPORA)]
    """Corpus: algorithm_1, buffer_and_batch, batch_accepts, each_task_once or decayed."""
    start: Literal["rollouts", "empty"] = "empty"
    """Successes that training begins with: ``rollouts``, the start policy's; or ``empty``, none. Algorithm 1
    has ``empty``."""
    search: Annotated[str, registered(SEARCHES)]
    """How phrases are chosen: greedy, refined ...; exact needs training.steps 0."""
    closure: Annotated[str, registered(CLOSURES)]
    """Phrases added after the search: none, prefixes or deletions."""
    library: LibraryParameters | None
    """Null, or {retrieval ...}: skills that prompts show, as in params/skillrl.yaml."""
    dictionaries: Annotated[str, registered(DICTIONARIES)] = "shared"
    """Which successes share a dictionary: `shared`, all of them; `per_class`, those of a class of tasks."""

    @model_validator(mode="after")
    def _a_corpus_that_decays_has_no_buffer(self) -> SkillParameters:
        if self.corpus == "decayed" and self.buffer:
            raise ValueError(
                f"buffer is {self.buffer}, must be 0 with corpus decayed, which keeps earlier successes by "
                "chance and no buffer"
            )
        return self

    @model_validator(mode="after")
    def _a_library_has_one_dictionary(self) -> SkillParameters:
        if self.dictionaries != "shared" and self.library is not None and self.library.teacher is None:
            raise ValueError(
                f"dictionaries is {self.dictionaries!r}, must be shared with a library without a teacher: "
                "its skills are the phrases of one dictionary"
            )
        return self

    def make_corpus(self, seed: int) -> SuccessCorpus:
        """Make the object that gives the corpus of every step's dictionary.

        Args:
            seed: the experiment's.
        """
        make: Callable[[int, int], SuccessCorpus] = lookup(CORPORA, self.corpus, "skills.corpus")
        return make(self.buffer, seed)

    def make_dictionaries(self) -> Callable[[Task], str]:
        """Make the function from a task to the name of its dictionary."""
        found: Callable[[Task], str] = lookup(DICTIONARIES, self.dictionaries, "skills.dictionaries")
        return found


def search_called(name: str) -> Search:
    """The search with this name in ``skills.search``."""
    found: Search = lookup(SEARCHES, name, "skills.search")
    return found


def closure_called(name: str) -> Closure:
    """The closure with this name in ``skills.closure``."""
    found: Closure = lookup(CLOSURES, name, "skills.closure")
    return found
