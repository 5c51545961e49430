"""The figures in ``results/dictionary.json`` about a fitted dictionary, and the dictionary's corpus."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from sys import intern

import polars as pl

from skillpress.core.sequence_files import scan_sequences
from skillpress.evaluation.analysis.mdl_report import coverage, savings
from skillpress.skills.bounds import certifiable, certify
from skillpress.skills.dictionary import SkillDictionary
from skillpress.skills.exploitable import exploitable_rate


def read_corpus(path: Path) -> list[tuple[str, ...]]:
    """The skills of every success that has any; each name is one object, however often it is read."""
    successes = scan_sequences(path).filter(pl.col("won") & (pl.col("skills").list.len() > 0))
    return [tuple(map(intern, skills)) for (skills,) in successes.select("skills").collect().iter_rows()]


def description_lengths(dictionary: SkillDictionary, corpus: Sequence[Sequence[str]]) -> dict[str, float]:
    """The MDL report's figures; 𝓛_BDL in bits per sequence, its two parts in bits."""
    bits = savings(dictionary, corpus)
    shares = coverage(dictionary).iter_rows(named=True)
    return {
        "phrases": float(len(dictionary.phrases)),
        "segments_per_sequence": dictionary.segments / dictionary.sequences,
        "skills_per_sequence": sum(map(len, corpus)) / len(corpus),
        "dictionary_bits": dictionary.dictionary_bits,
        "data_bits": dictionary.data_bits,
        "description_length": bits.dictionary,
        "description_length_of_singletons": bits.singletons,
        "saved_share": bits.saved_share,
        "exploitable_rate": exploitable_rate(corpus, dictionary),
        **{f"coverage.length_{row['length']}": row["skill_share"] for row in shares},
    }


def generalisation_bounds(
    dictionary: SkillDictionary, corpus: Sequence[Sequence[str]], max_steps: int
) -> dict[str, float]:
    """The bounds of Theorem 3, Proposition 4 and their tighter forms, for the dictionary and for its
    singletons; empty if the corpus is not ``certifiable``."""
    if not certifiable(corpus, max_steps):
        return {}
    certificate = certify(dictionary, corpus, max_steps)
    found = {"learned": certificate.learned, "singletons": certificate.singletons}
    return {
        f"bounds.{bound.name}.{whose}_{unit}": value
        for whose, bounds in found.items()
        for bound in bounds
        for unit, value in (("loss", bound.loss), ("bits", bound.bits))
    }
