"""Which successes share a dictionary: all of them, or those of a class of tasks (``skills.dictionaries``).

Under one dictionary for all, classes compete. A frequent class decides which merges come first, every phrase
of one class makes the index of all others longer, and a rare class may get no phrase. With ``per_class`` a
success is cut by the dictionary that was fitted to the successes of its own class, so only reuse within a
class makes it cheaper. A class without a success has no dictionary.

An entry of ``skills.dictionaries`` is a function from a task to the name of its dictionary. It does not
belong to the shaping: it decides what every shaping that reads a dictionary is given, under either credit,
and what describes the step. As a shaping it would need a copy for each of them, and the step would log a
dictionary by which no success pays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from skillpress.core.trajectory import Task
from skillpress.skills.buffer import Skills, Success
from skillpress.skills.dictionary import SkillDictionary
from skillpress.skills.fit import fit_as
from skillpress.skills.library.library import task_class
from skillpress.skills.step_corpus import StepCorpus

if TYPE_CHECKING:
    from skillpress.skills.parameters import SkillParameters

SHARED = ""
"""The name of a dictionary that all tasks share."""


def shared(task: Task) -> str:
    """One dictionary for all tasks."""
    return SHARED


def per_class(task: Task) -> str:
    """A dictionary for each class of tasks, named by the last part of their stratum."""
    return task_class(task)


def fit_each(
    section: SkillParameters, corpus: StepCorpus, alphabet: Sequence[str], seed: int
) -> dict[str, SkillDictionary]:
    """Name to dictionary, for every name that has a success in ``judged``; sorted by name.

    Each is fitted to the successes of its own name.

    Args:
        seed: for searches that draw at random.
    """
    judged, ranked_with = by_dictionary(corpus.judged), by_dictionary(corpus.ranked_with)
    return {
        name: fit_as(section, judged[name], alphabet, seed, ranked_with.get(name, ()))
        for name in sorted(judged)
    }


def by_dictionary(successes: Iterable[Success]) -> dict[str, list[Skills]]:
    """Name of a dictionary to the sequences that belong to it, in their order."""
    found: dict[str, list[Skills]] = {}
    for success in successes:
        found.setdefault(success.dictionary, []).append(success.skills)
    return found


def description_length(dictionaries: Mapping[str, SkillDictionary]) -> float:
    """𝓛_BDL of all dictionaries and their corpora together, in bits per success (Eq. 3)."""
    bits = sum(each.dictionary_bits + each.data_bits for each in dictionaries.values())
    return bits / sum(each.sequences for each in dictionaries.values())
