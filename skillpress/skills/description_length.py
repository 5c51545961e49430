"""The two-part code of MDL: bits for the dictionary plus bits for the data given it (Eq. 2-3).

Both parts depend on four whole numbers only: the number of phrases in the dictionary (M = |𝒞|), the skills in
all phrases (Σ|p_j|), the number of phrases that the corpus is cut into (Σ seg), and the number of sequences
that share the dictionary. Searches that keep these numbers agree to the last bit.
"""

from __future__ import annotations

from math import log2

MINIMAL_GAIN = 1e-9
"""Bits per sequence that a phrase must save in a search, so that rounding alone never adds one."""


def dictionary_bits(skills: int, phrases: int, alphabet_size: int, max_phrase_length: int) -> float:
    """L_skill_dict(𝒞) = Σ_j (|p_j| log2 K + log2 L), in bits (Eq. 2).

    Args:
        skills: Σ_j |p_j|, the skills in all phrases, singletons included.
        phrases: M.
        alphabet_size: K, the size of the whole alphabet, including skills that do not occur.
        max_phrase_length: L.
    """
    return skills * log2(alphabet_size) + phrases * log2(max_phrase_length)


def data_bits(segments: int, phrases: int) -> float:
    """Σ_i seg(s_i, 𝒞) log2 |𝒞|, in bits: every phrase of the cut is an index into the dictionary."""
    return segments * log2(phrases)


def description_length(
    skills: int, phrases: int, segments: int, sequences: int, alphabet_size: int, max_phrase_length: int
) -> float:
    """𝓛_BDL, in bits per sequence (Eq. 3): both parts, shared by ``sequences`` sequences."""
    total = dictionary_bits(skills, phrases, alphabet_size, max_phrase_length) + data_bits(segments, phrases)
    return total / sequences
