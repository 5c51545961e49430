"""A fitted skill dictionary 𝒞: its phrases, how often each is used, and what it costs in bits.

The bits follow from the stored whole numbers (Eq. 2-3). The JSON file states the bits as well, for its
readers. A file whose bits do not follow from its phrases is refused as damaged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isclose
from pathlib import Path
from typing import Any

from skillpress.core.errors import StorageError
from skillpress.core.storage import read_json, read_schema, write_json, write_text
from skillpress.skills import description_length as mdl
from skillpress.skills.corpus import make_corpus
from skillpress.skills.lookup import PhraseTable, costs, make_table
from skillpress.skills.segmentation import segment, segmentation_cost

SCHEMA = "skillpress.dictionary/2"
BITS = ("dictionary_bits", "data_bits", "description_length")
STATED = ("search", "seed", "closure", "max_phrase_length", "sequences", *BITS, "lower_bound")
"""The numbers and names of a dictionary's file, in its order."""

Skills = tuple[str, ...]


@dataclass(frozen=True)
class SkillDictionary:
    """𝒞 with Σ ⊆ 𝒞, fitted to a corpus of successes.

    Raises:
        ValueError: the alphabet, the phrases or their counts do not make a dictionary.
    """

    alphabet: Skills
    """Σ; K = len(alphabet)."""
    max_phrase_length: int
    """L."""
    phrases: tuple[Skills, ...]
    """𝒞: the singletons in the alphabet's order, then the learned phrases as the search found them."""
    counts: tuple[int, ...]
    """How often each phrase is used in the minimal segmentation of the corpus."""
    sequences: int
    """|𝓑⁺|, sequences in the corpus."""
    search: str
    """The entry of ``SEARCHES`` that found it."""
    seed: int
    """The seed given to the search."""
    closure: str = "none"
    """The entry of ``CLOSURES`` that was applied to the search's result."""
    lower_bound: float | None = None
    """A bound in bits per sequence that no dictionary can go below; None if the search proves nothing."""

    def __post_init__(self) -> None:
        check_alphabet(self.alphabet, self.max_phrase_length)
        size = len(self.alphabet)
        if self.phrases[:size] != tuple((skill,) for skill in self.alphabet):
            raise ValueError("the first phrases must be the alphabet's singletons, in its order")
        if len(self._members) != len(self.phrases) or len(self.counts) != len(self.phrases):
            raise ValueError("phrases must be distinct, with one count each")
        for phrase in self.phrases[size:]:
            if not 2 <= len(phrase) <= self.max_phrase_length or not set(phrase) <= set(self.alphabet):
                raise ValueError(f"phrase {phrase!r} must hold 2 to {self.max_phrase_length} known skills")
        if self.sequences < 1 or min(self.counts) < 0:
            raise ValueError("a dictionary is fitted to at least one sequence; counts are not negative")

    @property
    def learned(self) -> tuple[Skills, ...]:
        """The phrases of two or more skills."""
        return self.phrases[len(self.alphabet) :]

    @property
    def learned_counts(self) -> dict[Skills, int]:
        """The phrases of two or more skills, each with its count."""
        return dict(zip(self.learned, self.counts[len(self.alphabet) :], strict=True))

    @property
    def segments(self) -> int:
        """Σ_i seg(s_i, 𝒞) over the corpus."""
        return sum(self.counts)

    @property
    def dictionary_bits(self) -> float:
        """L_skill_dict(𝒞), in bits (Eq. 2)."""
        skills = sum(map(len, self.phrases))
        return mdl.dictionary_bits(skills, len(self.phrases), len(self.alphabet), self.max_phrase_length)

    @property
    def data_bits(self) -> float:
        """Σ_i seg(s_i, 𝒞) log2 |𝒞|, in bits for the whole corpus."""
        return mdl.data_bits(self.segments, len(self.phrases))

    @property
    def description_length(self) -> float:
        """𝓛_BDL, in bits per sequence (Eq. 3)."""
        return (self.dictionary_bits + self.data_bits) / self.sequences

    def segment(self, skills: Sequence[str]) -> list[Skills]:
        """One minimal segmentation of a sequence of skills.

        Raises:
            ValueError: a skill is not in the alphabet.
        """
        return segment(skills, self._members, self.max_phrase_length)

    def cost(self, skills: Sequence[str]) -> int:
        """seg(s, 𝒞): phrases in a minimal segmentation; 0 for an empty sequence."""
        return segmentation_cost(skills, self._members, self.max_phrase_length)

    def costs(self, sequences: Sequence[Sequence[str]]) -> list[int]:
        """seg of many sequences at once, by table lookup. Equal sequences are looked up once, also in later
        calls."""
        wanted = [tuple(sequence) for sequence in sequences]
        new = [sequence for sequence in dict.fromkeys(wanted) if sequence not in self._known_costs]
        if new:
            found = costs(make_corpus(new, self.alphabet), self._table).tolist()
            self._known_costs.update(zip(new, found, strict=True))
        return [self._known_costs[sequence] for sequence in wanted]

    @cached_property
    def _known_costs(self) -> dict[Skills, int]:
        return {}

    @cached_property
    def _table(self) -> PhraseTable:
        position = {skill: number for number, skill in enumerate(self.alphabet)}
        phrases = [tuple(position[skill] for skill in phrase) for phrase in self.phrases]
        return make_table(phrases, len(self.alphabet), self.max_phrase_length)

    @cached_property
    def _members(self) -> frozenset[Skills]:
        return frozenset(self.phrases)


def check_alphabet(alphabet: Sequence[str], max_phrase_length: int) -> None:
    """Refuse an alphabet or a length that cannot make a dictionary."""
    if not alphabet:
        raise ValueError("the alphabet is empty; it needs at least one skill")
    if len(set(alphabet)) != len(alphabet):
        raise ValueError(f"the alphabet names a skill twice: {', '.join(alphabet)}")
    if max_phrase_length < 1:
        raise ValueError(f"max_phrase_length is {max_phrase_length}; it must be at least 1")


def save_dictionary(path: str | Path, dictionary: SkillDictionary) -> None:
    """Write a dictionary as JSON, atomically."""
    stated = {name: getattr(dictionary, name) for name in STATED}
    counted = zip(dictionary.phrases, dictionary.counts, strict=True)
    phrases = [{"skills": list(phrase), "count": count} for phrase, count in counted]
    content = {"schema": SCHEMA, **stated, "alphabet": list(dictionary.alphabet), "phrases": phrases}
    write_json(path, content)


def load_dictionary(path: str | Path) -> SkillDictionary:
    """Read a dictionary.

    Raises:
        StorageError: the file is missing, damaged, or of another schema.
    """
    content = read_schema(path, SCHEMA, "fit it again")
    try:
        dictionary = _from_json(content)
        intact = isclose(dictionary.description_length, content["description_length"], rel_tol=1e-12)
    except (KeyError, TypeError, ValueError) as error:
        raise StorageError(f"{path}: damaged dictionary ({error}); fit it again") from error
    if not intact:
        raise StorageError(f"{path}: its bits do not follow from its phrases; fit it again")
    return dictionary


def save_fitted(path: str | Path, dictionary: SkillDictionary | None) -> None:
    """Write a fitted dictionary, or JSON's ``null`` if there was no success to fit one to."""
    if dictionary is None:
        write_text(path, "null\n")
    else:
        save_dictionary(path, dictionary)


def load_fitted(path: str | Path) -> SkillDictionary | None:
    """The dictionary that :func:`save_fitted` wrote.

    Raises:
        StorageError: it is missing or damaged.
    """
    return None if read_json(path) is None else load_dictionary(path)


def _from_json(content: dict[str, Any]) -> SkillDictionary:
    return SkillDictionary(
        alphabet=tuple(content["alphabet"]),
        phrases=tuple(tuple(phrase["skills"]) for phrase in content["phrases"]),
        counts=tuple(phrase["count"] for phrase in content["phrases"]),
        **{name: content[name] for name in STATED if name not in BITS},
    )
