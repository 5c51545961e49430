"""The bits of a success under a bigram model of its batch: a charge for what is hard to predict.

    reward:
      shaping: studies.critical.controls.bigram:BigramBits

With n(a, b) the transitions from skill a to skill b in the batch's successes, begin and end of a sequence
counted as skills, a success s of m skills costs

    c(s) = - sum of log2 n(s_i, s_i+1) / n(s_i)  over i = 0 ... m,  divided by log2 K.

The unit is a skill, as for ``bits``. The model sees the successes of this process and step, no buffer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from math import fsum, log2

import numpy as np

from skillpress.skills.dictionary import SkillDictionary
from skillpress.skills.shaping import Floats, Played, Shaping, StepSkills

EDGE = ""
"""The skill that begins and ends every sequence."""


class BigramBits(Shaping):
    """λ · [success] · c(s) / T, with c(s) the bits of s under the batch's bigrams, in units of log2 K."""

    def __call__(self, played: Played, dictionary: SkillDictionary | None) -> Floats:
        """See :class:`Shaping`; of the dictionary only K is read."""
        if dictionary is None:  # no success has a skill
            return np.zeros(len(played.won))
        won = np.array(played.won, np.bool_)
        chosen = [tuple(s) for s, success in zip(played.sequences, played.won, strict=True) if success]
        unit = log2(len(dictionary.alphabet)) or 1.0  # K = 1: every transition has 0 bits, in any unit
        costs = np.zeros(len(won))
        costs[won] = np.array(bits(chosen), np.float64) / unit
        return self.weight / self.max_steps * costs

    def of_steps(self, skills: StepSkills, dictionary: SkillDictionary | None) -> Floats:
        """Refused, since the model is that of a batch.

        Raises:
            ValueError: always.
        """
        raise ValueError(
            "reward.shaping_credit is step, must be trajectory with the bigram control: it charges by the "
            "transitions of a batch, which a single episode does not show"
        )


def bits(sequences: Iterable[Sequence[str]]) -> list[float]:
    """The bits of each sequence under the bigram model of all of them."""
    paths = [tuple(transitions(sequence)) for sequence in sequences]
    pairs = Counter(pair for path in paths for pair in path)
    starts = Counter(first for path in paths for first, _ in path)
    return [fsum(log2(starts[pair[0]] / pairs[pair]) for pair in path) for path in paths]


def transitions(sequence: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each skill with the next one, from the edge to the edge."""
    return pairwise((EDGE, *sequence, EDGE))
