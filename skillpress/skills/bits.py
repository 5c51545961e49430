"""A cost in bits in place of a number of phrases (``reward.shaping: bits``).

``segcost`` charges every phrase alike, as Eq. 3 does: an index into 𝒞 takes log2 |𝒞| bits. A code that gives
short indices to the phrases in use is shorter. With n_p the uses of phrase p in the corpus of the dictionary
(``SkillDictionary.counts``), the index of p takes

    bits(p) = log2 (N / (n_p + 1)),    N = Σ_p (n_p + 1)

One is added to every count, because an unused phrase must have an index too. A success then costs

    c(s) = min Σ_j bits(p_j) / log2 K    over the ways to cut s into phrases p_1, ..., p_m of 𝒞.

log2 K bits name one of the K skills of the alphabet, so the unit is a skill. Under the dictionary of
singletons, all used equally often, c(s) = |s|: ``bits`` is then ``round_length``. A skill or a phrase that is
rare in the corpus costs more than one skill, so a success may pay more than λ. If K is 1, nothing has
to be named: the only skill costs 0.

The cut is the cheapest in bits, found by dynamic programming. It may have more phrases than seg(s, 𝒞): two
common phrases can take fewer bits than a rare one that covers both. n_p counts the uses in the cut of fewest
phrases, with which the dictionary was fitted; it is not counted again in the cheapest cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import fsum, inf, log2

import numpy as np

from skillpress.skills.dictionary import SkillDictionary, Skills
from skillpress.skills.shaping import Floats, PhraseShaping, Played


class Bits(PhraseShaping):
    """λ · [success] · c(s) / T, with c(s) in bits divided by those of a skill."""

    def costs(self, played: Played, dictionary: SkillDictionary) -> Floats:
        """[trajectories] c(s) of successes; 0 for failures, which pay nothing."""
        won = {tuple(s) for s, success in zip(played.sequences, played.won, strict=True) if success}
        cost = {sequence: fsum(price for _, price in self.priced(sequence, dictionary)) for sequence in won}
        return np.array([cost.get(tuple(sequence), 0.0) for sequence in played.sequences], np.float64)

    def priced(self, sequence: Sequence[str], dictionary: SkillDictionary) -> list[tuple[Skills, float]]:
        """The phrases of the cheapest cut and their bits, in units of log2 K."""
        bits = index_bits(dictionary)
        unit = log2(len(dictionary.alphabet)) or 1.0  # K = 1: every index has 0 bits, in any unit
        cut = cheapest_cut(sequence, bits, dictionary.max_phrase_length)
        return [(phrase, bits[phrase] / unit) for phrase in cut]


@lru_cache(maxsize=64)
def index_bits(dictionary: SkillDictionary) -> Mapping[Skills, float]:
    """Phrase to bits(p)."""
    total = dictionary.segments + len(dictionary.phrases)
    counted = zip(dictionary.phrases, dictionary.counts, strict=True)
    return {phrase: log2(total / (count + 1)) for phrase, count in counted}


def cheapest_cut(skills: Sequence[str], bits: Mapping[Skills, float], longest: int) -> list[Skills]:
    """The phrases that concatenate to ``skills`` and have the fewest bits in all.

    Let cost(i) be the fewest bits for s[i:]. Then cost(n) = 0 and cost(i) = min bits(p) + cost(i + |p|) over
    the phrases p that s[i:] starts with: n * L look-ups. Of equally cheap phrases the longest is taken.

    Args:
        bits: phrase to its bits, at least 0.
        longest: L, the length of the longest phrase.

    Raises:
        ValueError: a skill is not in the alphabet.
    """
    sequence = tuple(skills)
    cost, following = [inf] * len(sequence) + [0.0], [0] * len(sequence)
    for start in range(len(sequence) - 1, -1, -1):
        for end in range(min(start + longest, len(sequence)), start, -1):
            total = bits.get(sequence[start:end], inf) + cost[end]
            # Strictly less, and the longest phrase comes first: equal costs keep it.
            if total < cost[start]:
                cost[start], following[start] = total, end
    if cost[0] == inf:
        missing = sorted({repr(skill) for skill in sequence if (skill,) not in bits})
        raise ValueError(f"no phrases cover the sequence; skills without a phrase: {', '.join(missing)}")
    cut, start = [], 0
    while start < len(sequence):
        cut.append(sequence[start : following[start]])
        start = following[start]
    return cut
