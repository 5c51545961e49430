"""What a success costs: the penalties that are taken off the reward (Eq. 5-6).

A penalty is λ · [success] · c(s) / T, where c is what the method charges for a skill sequence s:
nothing, its length, or the segments it needs under the dictionary. A failure costs nothing, so the
signal never discourages finishing the task. By Proposition 1, ``round_length`` is ``segcost`` under
the dictionary of singletons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from skillpress.skills.dictionary import SkillDictionary


class Shaping(Protocol):
    """The penalty of each trajectory of a batch."""

    def __call__(
        self, won: Sequence[bool], sequences: Sequence[Sequence[str]], dictionary: SkillDictionary | None
    ) -> NDArray[np.float64]:
        """Penalties in units of reward, one per trajectory; subtract them from R.

        Args:
            won: one flag per trajectory.
            sequences: s = φ(τ), one per trajectory.
            dictionary: 𝒞 of this step; None when the batch holds no success.

        Raises:
            ValueError: the arguments differ in length, or a sequence is longer than T.
        """
        ...


@dataclass(frozen=True)
class NoShaping:
    """Plain rewards."""

    efficiency: float
    """λ, without effect here."""
    max_steps: int
    """T."""

    def __call__(
        self, won: Sequence[bool], sequences: Sequence[Sequence[str]], dictionary: SkillDictionary | None
    ) -> NDArray[np.float64]:
        """Zeros."""
        return _penalties(won, [0] * len(sequences), 0.0, self.max_steps)


@dataclass(frozen=True)
class RoundLength:
    """λ · [success] · |s| / T: every skill costs the same."""

    efficiency: float
    """λ."""
    max_steps: int
    """T."""

    def __call__(
        self, won: Sequence[bool], sequences: Sequence[Sequence[str]], dictionary: SkillDictionary | None
    ) -> NDArray[np.float64]:
        """See :class:`Shaping`; the dictionary is not looked at."""
        _check_lengths(sequences, self.max_steps)
        return _penalties(won, [len(s) for s in sequences], self.efficiency, self.max_steps)


@dataclass(frozen=True)
class SegmentationCost:
    """λ · [success] · seg(s, 𝒞) / T: a reusable phrase costs as much as a single skill (Eq. 6)."""

    efficiency: float
    """λ."""
    max_steps: int
    """T."""

    def __call__(
        self, won: Sequence[bool], sequences: Sequence[Sequence[str]], dictionary: SkillDictionary | None
    ) -> NDArray[np.float64]:
        """See :class:`Shaping`; without a dictionary there is no success and nothing to charge.

        Raises:
            ValueError: also when there is a success but no dictionary.
        """
        _check_lengths(sequences, self.max_steps)
        if dictionary is None:
            if any(won):
                raise ValueError("a batch with a success needs the dictionary that was fitted to it")
            return _penalties(won, [0] * len(sequences), self.efficiency, self.max_steps)
        return _penalties(won, dictionary.costs(sequences), self.efficiency, self.max_steps)


SHAPINGS: dict[str, type[NoShaping] | type[RoundLength] | type[SegmentationCost]] = {
    "none": NoShaping,
    "round_length": RoundLength,
    "segcost": SegmentationCost,
}
"""``reward.shaping`` in params.yaml to the class; each takes (efficiency λ, max_steps T)."""


def make_shaping(name: str, efficiency: float, max_steps: int) -> Shaping:
    """The shaping called ``name`` with λ = ``efficiency`` and T = ``max_steps``.

    Raises:
        ValueError: no shaping has this name.
    """
    if name not in SHAPINGS:
        raise ValueError(f"shaping {name!r} is unknown; allowed: {', '.join(SHAPINGS)}")
    return SHAPINGS[name](efficiency, max_steps)


def _check_lengths(sequences: Sequence[Sequence[str]], max_steps: int) -> None:
    longest = max(map(len, sequences), default=0)
    if longest > max_steps:
        raise ValueError(f"a sequence of {longest} skills is longer than the {max_steps} steps of an episode")


def _penalties(
    won: Sequence[bool], costs: Sequence[int], efficiency: float, max_steps: int
) -> NDArray[np.float64]:
    if len(won) != len(costs):
        raise ValueError(f"{len(won)} success flags for {len(costs)} sequences")
    return efficiency * np.asarray(won, dtype=np.float64) * np.asarray(costs, dtype=np.float64) / max_steps
