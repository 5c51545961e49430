"""The bits that a fitted dictionary saves, phrase by phrase, and its similarity to another one.

All results are Polars frames or plain records; figures are made from them elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from skillpress.core.errors import StorageError
from skillpress.core.storage import atomic_path
from skillpress.skills.corpus import Phrase, make_corpus
from skillpress.skills.description_length import data_bits, description_length, dictionary_bits
from skillpress.skills.dictionary import SkillDictionary, Skills
from skillpress.skills.lookup import make_table, uses

ARROW = " → "
"""The separator between the skills of a phrase in tables."""

PHRASE_COLUMNS = {"phrase": pl.String, "length": pl.Int64, "uses": pl.Int64, "bits_saved": pl.Float64}
"""The columns of :func:`phrase_table`."""


@dataclass(frozen=True)
class Savings:
    """Bits per sequence without and with the learned phrases (Eq. 3)."""

    singletons: float
    dictionary: float

    @property
    def saved_share(self) -> float:
        """The saved share of the singletons' bits; 0 if these need none."""
        return 1 - self.dictionary / self.singletons if self.singletons else 0.0


def savings(dictionary: SkillDictionary, corpus: Sequence[Sequence[str]]) -> Savings:
    """Bits before and after, on the dictionary's own corpus or on another one.

    Raises:
        ValueError: the corpus is empty or holds a skill that is not in the alphabet.
    """
    return Savings(
        _bits_with(dictionary, corpus, ()) / len(corpus),
        _bits_with(dictionary, corpus, dictionary.learned) / len(corpus),
    )


def parts(dictionary: SkillDictionary) -> pl.DataFrame:
    """``phrases``, ``dictionary_bits``, ``data_bits``: with the singletons alone, then with all phrases.

    In bits per sequence of the dictionary's own corpus, whose length follows from the uses of the phrases.
    """
    size = len(dictionary.alphabet)
    skills = sum(len(p) * n for p, n in zip(dictionary.phrases, dictionary.counts, strict=True))
    stored = dictionary_bits(size, size, size, dictionary.max_phrase_length)
    rows = [
        (size, stored, data_bits(skills, size)),
        (len(dictionary.phrases), dictionary.dictionary_bits, dictionary.data_bits),
    ]
    schema = {"phrases": pl.Int64, "dictionary_bits": pl.Float64, "data_bits": pl.Float64}
    table = pl.DataFrame(rows, schema=schema, orient="row")
    return table.with_columns(pl.exclude("phrases") / dictionary.sequences)


def phrase_table(dictionary: SkillDictionary, corpus: Sequence[Sequence[str]]) -> pl.DataFrame:
    """One row per phrase: ``phrase``, ``length``, ``uses``, ``bits_saved``; most bits first.

    ``bits_saved`` is how many more bits the whole corpus would need without the phrase, after a new cut. It
    may be negative, and is null for singletons, which every dictionary has.
    """
    whole = _bits_with(dictionary, corpus, dictionary.learned)
    counts = _uses_with(dictionary, corpus, dictionary.learned)
    saved: list[float | None] = [None] * len(dictionary.alphabet)
    for phrase in dictionary.learned:
        others = tuple(other for other in dictionary.learned if other != phrase)
        saved.append(_bits_with(dictionary, corpus, others) - whole)
    return pl.DataFrame(
        {
            "phrase": [ARROW.join(phrase) for phrase in dictionary.phrases],
            "length": [len(phrase) for phrase in dictionary.phrases],
            "uses": counts,
            "bits_saved": saved,
        },
        schema=PHRASE_COLUMNS,
    ).sort("bits_saved", "uses", descending=True, nulls_last=True, maintain_order=True)


def coverage(dictionary: SkillDictionary) -> pl.DataFrame:
    """``length``, ``segments``, ``skill_share``: the share of the corpus that each phrase length covers."""
    lengths = range(1, dictionary.max_phrase_length + 1)
    segments = [
        sum(
            n
            for phrase, n in zip(dictionary.phrases, dictionary.counts, strict=True)
            if len(phrase) == length
        )
        for length in lengths
    ]
    skills = sum(length * n for length, n in zip(lengths, segments, strict=True))
    shares = [length * n / skills if skills else 0.0 for length, n in zip(lengths, segments, strict=True)]
    return pl.DataFrame({"length": list(lengths), "segments": segments, "skill_share": shares})


@dataclass(frozen=True)
class Overlap:
    """The similarity of two dictionaries, from 0 (nothing shared) to 1 (the same)."""

    phrases: float
    """Jaccard index of the learned phrases."""
    uses: float
    """Σ min / Σ max of the learned phrases' shares of all learned uses."""


def overlap(one: Mapping[Skills, int], other: Mapping[Skills, int]) -> Overlap:
    """Compare learned phrases with their uses. Two dictionaries without learned phrases are the same."""
    mine, theirs = _use_shares(one), _use_shares(other)
    either = mine.keys() | theirs.keys()
    if not either:
        return Overlap(1.0, 1.0)
    least = sum(min(mine.get(p, 0.0), theirs.get(p, 0.0)) for p in either)
    most = sum(max(mine.get(p, 0.0), theirs.get(p, 0.0)) for p in either)
    return Overlap(len(mine.keys() & theirs.keys()) / len(either), least / most if most else 0.0)


def _use_shares(counts: Mapping[Skills, int]) -> dict[Skills, float]:
    total = sum(counts.values())
    return {phrase: count / total if total else 0.0 for phrase, count in counts.items()}


def _uses_with(
    dictionary: SkillDictionary, corpus: Sequence[Sequence[str]], learned: Sequence[Skills]
) -> list[int]:
    position = {skill: number for number, skill in enumerate(dictionary.alphabet)}
    phrases: list[Phrase] = [(number,) for number in range(len(position))]
    phrases += [tuple(position[skill] for skill in phrase) for phrase in learned]
    table = make_table(phrases, len(position), dictionary.max_phrase_length)
    return uses(make_corpus(corpus, dictionary.alphabet), table)


def _bits_with(
    dictionary: SkillDictionary, corpus: Sequence[Sequence[str]], learned: Sequence[Skills]
) -> float:
    """Bits in the whole corpus with these learned phrases instead of the dictionary's own."""
    alphabet = len(dictionary.alphabet)
    skills = alphabet + sum(map(len, learned))
    segments = sum(_uses_with(dictionary, corpus, learned))
    return description_length(
        skills,
        alphabet + len(learned),
        segments=segments,
        sequences=1,
        alphabet_size=alphabet,
        max_phrase_length=dictionary.max_phrase_length,
    )


def write_phrases(path: Path, dictionary: SkillDictionary | None, corpus: Sequence[Sequence[str]]) -> None:
    """Write :func:`phrase_table` as CSV; without a dictionary, write only its header."""
    table = phrase_table(dictionary, corpus) if dictionary else pl.DataFrame(schema=PHRASE_COLUMNS)
    with atomic_path(path) as temporary:
        table.write_csv(temporary)


def read_phrases(path: Path) -> pl.DataFrame:
    """The table that :func:`write_phrases` wrote.

    Raises:
        StorageError: it is missing or damaged.
    """
    try:
        return pl.read_csv(path, schema=PHRASE_COLUMNS)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise StorageError(f"{path}: cannot be read ({error}); run the stage that makes it") from error
