"""The KL term estimated on a random share of the sequences, so that the reference scores only these.

The term (GRPO's beta D_KL(policy || reference), Shao et al. 2024, Eq. 3, with the estimator k3 of its Eq. 4)
is a sum over units u of sequences: R = sum_u R_u with R_u = sum of w_t k3_t over the response tokens of u. Of
a process's U units, m = ceil(share U) are drawn without replacement, every subset of m with the same
probability. Each unit is drawn with probability m / U, so

    R^ = U/m sum over drawn u of R_u
    E[R^] = U/m  sum over all u of (m / U) R_u = R

The draw depends on neither the policy nor the samples' values, so E and the gradient may be exchanged, and
E[grad R^] = grad R. The share adds variance, U^2 (1 - m/U) S^2 / m for a variance S^2 of R_u between units,
and no bias. Rewards, dictionary, advantages and the surrogate see all sequences as before. With a share of 1
nothing is drawn and nothing changes.

A unit is all sequences that begin with the same prompt, of one process: rollouts of a task begin alike and a
pass computes a shared prompt once, so a few of them would cost nearly as much as all. Steps whose prompts
extend one another are one sequence and are drawn together too.

Samples that are not drawn have no KL term. Those of them without an advantage teach nothing, so an update
leaves them out, which changes no gradient.
"""

from __future__ import annotations

import math

import numpy as np

from skillpress.core.chains import Pairs
from skillpress.training.algorithms.batch import Floats, Indices


def kl_factors(pairs: Pairs, share: float, random: np.random.Generator) -> Floats:
    """[pairs] U/m for the pairs of the drawn units, 0 for the others.

    Args:
        share: in (0, 1]; at least one unit is drawn if there is one.
    """
    unit = units(pairs)
    count = int(unit.max(initial=-1)) + 1
    drawn = math.ceil(round(share * count, 9))  # 0.07 x 100 is 7.000000000000001
    chosen = random.choice(count, drawn, replace=False) if drawn else np.zeros(0, np.int64)
    return factors_of(unit, chosen, count)


def factors_of(unit: Indices, chosen: Indices, count: int) -> Floats:
    """[pairs] ``count`` over the number of chosen units for the pairs of these units, 0 for the others.

    Args:
        unit: [pairs] the number of each pair's unit, in [0, count).
        chosen: the numbers of the drawn units.
    """
    return np.where(np.isin(unit, chosen), count / max(len(chosen), 1), 0.0)


def units(pairs: Pairs) -> Indices:
    """[pairs] the number of each pair's unit, from 0 in the order of the units' first pairs."""
    numbers: dict[tuple[int, ...], int] = {}
    found = np.zeros(len(pairs), np.int64)
    for chain in pairs.chains:
        # The later prompts of a chain extend its first, so the first identifies the unit.
        prompt, _ = pairs.rows[chain.start]
        found[chain.start : chain.stop] = numbers.setdefault(prompt, len(numbers))
    return found
