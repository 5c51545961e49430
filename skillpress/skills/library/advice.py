"""Retrieved skills in the words of a rendering: the knowledge that an agent gets at an episode's start
(``AgentState.knowledge``).

Text prompts show a line per skill. A policy trained from scratch has a word per atomic skill (Σ), a mark
before every phrase and a filler word. It can read phrases of the dictionary only, so a teacher's skills are
left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from skillpress.core.interface import ScratchVocabulary
from skillpress.core.seeds import derive
from skillpress.core.trajectory import Task
from skillpress.skills.library.library import Skill, task_class
from skillpress.skills.library.retrieval import FILLER, Query, Retrieval, words_of

HEADING = "Skills learned in earlier tasks:"
MARK = "<skill>"
LONGEST_PHRASE = 16
"""The most skills of a phrase: the upper limit of ``skills.max_phrase_length``."""


@dataclass(frozen=True)
class SkillAdvice:
    """Gives an agent its skills when an episode begins (``rollout.collector.Advise``)."""

    skills: Callable[[int], Sequence[Skill]]
    """Version of the playing weights to the library's skills at the time when these weights were made. So
    episodes that are played ahead (``training.lag``) show the same skills, however far training has come
    meanwhile."""
    retrieve: Retrieval
    top_k: int
    seed: int
    compact: bool
    """Whether the prompts come from a compact rendering."""

    def __call__(self, task: Task, observation: str, version: int) -> str:
        """The advice for a task; empty if the library has no skill for it."""
        query = Query(
            task_class=task_class(task),
            words=words_of(observation),
            seed=derive(self.seed, "library", version, task.task_id),
        )
        found = self.retrieve(self.skills(version), query, self.top_k)
        if self.compact:
            return " ".join(word for skill in found for word in (MARK, *map(label_word, skill.phrase)))
        return shown(found)


def shown(skills: Sequence[Skill]) -> str:
    """Skills above a prompt of text, a line each; empty without skills."""
    return "\n".join((HEADING, *(f"- {skill.text}" for skill in skills))) if skills else ""


def label_word(label: str) -> str:
    """An atomic skill's label as one word."""
    return "_".join(label.split())


def advice_words(alphabet: Iterable[str]) -> tuple[str, ...]:
    """Every word that advice in a compact rendering can use."""
    return (MARK, FILLER, *map(label_word, alphabet))


def with_advice_words(
    vocabulary: ScratchVocabulary, alphabet: Iterable[str], top_k: int
) -> ScratchVocabulary:
    """A vocabulary with the advice words after its own, and with room for the longest advice."""
    new = [word for word in dict.fromkeys(advice_words(alphabet)) if word not in vocabulary.words]
    longest = vocabulary.state_words + top_k * (1 + LONGEST_PHRASE)
    return replace(vocabulary, words=(*vocabulary.words, *new), state_words=longest)
