"""The ``skills`` section of params.yaml, and the parts of this folder that go by a name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from skillpress.core.registry import CLOSURES, CORPORA, SEARCHES, lookup
from skillpress.core.sections import NonNegativeInt, Section, registered
from skillpress.skills.library.parameters import LibraryParameters

if TYPE_CHECKING:
    from skillpress.skills.closure import Closure
    from skillpress.skills.search import Search
    from skillpress.skills.step_corpus import SuccessCorpus


class SkillParameters(Section):
    """The corpus of a dictionary, how it is fitted, and the library of skills in words if there is one."""

    max_phrase_length: Annotated[int, Field(ge=1, le=16)]
    buffer: NonNegativeInt
    corpus: Annotated[str, registered(CORPORA)]
    search: Annotated[str, registered(SEARCHES)]
    closure: Annotated[str, registered(CLOSURES)]
    library: LibraryParameters | None

    def make_corpus(self, seed: int) -> SuccessCorpus:
        """Make what gives the corpus of every training step's dictionary.

        Args:
            seed: the experiment's.
        """
        make: Callable[[int, int], SuccessCorpus] = lookup(CORPORA, self.corpus, "skills.corpus")
        return make(self.buffer, seed)


def search_called(name: str) -> Search:
    """The search with this name in ``skills.search``."""
    found: Search = lookup(SEARCHES, name, "skills.search")
    return found


def closure_called(name: str) -> Closure:
    """The closure with this name in ``skills.closure``."""
    found: Closure = lookup(CLOSURES, name, "skills.closure")
    return found
