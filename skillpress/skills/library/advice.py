"""Retrieved skills in the words that a rendering has: knowledge that an agent is given at an episode's start
(``AgentState.knowledge``).

Text prompts show a line per skill. A policy made from nothing has a word per atomic skill (Σ), a mark in
front of every phrase and a filler: it reads phrases of the dictionary and nothing else, so no teacher's.
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
"""``skills.max_phrase_length`` is not larger."""


@dataclass(frozen=True)
class SkillAdvice:
    """Tells an agent skills when an episode begins (``rollout.collector.Advise``)."""

    skills: Callable[[int], Sequence[Skill]]
    """Version of the weights that play to the library's skills: those known when they were made. So what is
    played ahead (``training.lag``) shows the same, however far training has come meanwhile."""
    retrieve: Retrieval
    top_k: int
    seed: int
    compact: bool
    """Whether the prompts are a compact rendering's."""

    def __call__(self, task: Task, observation: str, version: int) -> str:
        """The advice for a task; empty where the library has nothing for it."""
        query = Query(
            task_class=task_class(task),
            words=words_of(observation),
            seed=derive(self.seed, "library", version, task.task_id),
        )
        found = self.retrieve(self.skills(version), query, self.top_k)
        if self.compact:
            return " ".join(word for skill in found for word in (MARK, *map(label_word, skill.phrase)))
        return "\n".join((HEADING, *(f"- {skill.text}" for skill in found))) if found else ""


def label_word(label: str) -> str:
    """An atomic skill's label as one word."""
    return "_".join(label.split())


def advice_words(alphabet: Iterable[str]) -> tuple[str, ...]:
    """Every word of a compact rendering's advice."""
    return (MARK, FILLER, *map(label_word, alphabet))


def with_advice_words(
    vocabulary: ScratchVocabulary, alphabet: Iterable[str], top_k: int
) -> ScratchVocabulary:
    """A vocabulary, behind whose own words stand those of advice, with room for the longest.

    Args:
        alphabet: Σ.
        top_k: skills in an advice at most.
    """
    new = [word for word in dict.fromkeys(advice_words(alphabet)) if word not in vocabulary.words]
    longest = vocabulary.state_words + top_k * (1 + LONGEST_PHRASE)
    return replace(vocabulary, words=(*vocabulary.words, *new), state_words=longest)
