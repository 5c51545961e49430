"""The cost of a success: the penalties subtracted from the reward (Eq. 5-6).

A penalty is λ · [success] · c(s) / T. The method decides what c charges for a skill sequence s: nothing, its
length, the segments it needs under the dictionary, their bits (``bits.py``), or the steps of the episode. A
failure costs nothing, so the signal never discourages finishing the task. By Proposition 1, ``round_length``
is ``segcost`` under the dictionary of singletons. ``constant`` is the control for all of them: it makes every
success worth less by the same amount.

Steps without a skill in the projection (a malformed answer, looking around) are not in s. So
``round_length``, ``segcost`` and ``bits`` do not charge them; ``rounds`` charges every step alike. A step
whose response makes several calls has several skills in s, so |s| and seg(s) may exceed T, and the penalty λ.

``reward.shaping_credit`` decides which steps pay. Eq. 6 subtracts the penalty from the trajectory's return,
so every step of it carries the whole sum. ``of_steps`` gives the part of the penalty that each step causes,
for methods in which a step carries its own part alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from skillpress.core.moved import tell
from skillpress.core.trajectory import Skills
from skillpress.skills.dictionary import SkillDictionary

Floats = NDArray[np.float64]

StepSkills = Sequence[Skills]
"""The skills of each step of an episode."""

CONSTANT_SHARE = 0.1
"""The part of λ that ``constant`` takes. It is the part that ``segcost`` takes in the default experiment once
the dictionary has settled: its successes then need 3 phrases (T is 30), and 4.1 at the first training
step."""


@dataclass(frozen=True)
class Played:
    """The facts that a shaping may charge for: the trajectories of a batch, one entry each."""

    won: Sequence[bool]
    sequences: Sequence[Sequence[str]]
    """s = φ(τ)."""
    steps: Sequence[int]
    """Steps taken, including those without a skill."""

    def __post_init__(self) -> None:
        if not len(self.won) == len(self.sequences) == len(self.steps):
            raise ValueError(
                f"{len(self.won)} success flags and {len(self.steps)} step counts for "
                f"{len(self.sequences)} sequences"
            )

    def only(self, rows: Sequence[int]) -> Played:
        """The trajectories at these places, in this order."""
        return Played(
            won=[self.won[row] for row in rows],
            sequences=[self.sequences[row] for row in rows],
            steps=[self.steps[row] for row in rows],
        )


@dataclass(frozen=True)
class Shaping(ABC):
    """The penalty of each trajectory of a batch."""

    weight: float
    """λ."""
    max_steps: int
    """T."""

    @property
    def efficiency(self) -> float:
        """The name of ``weight`` before 0.2, for shapings that still read it; remove it with the version."""
        tell("efficiency of a Shaping is called weight now; rename it, as only this version reads efficiency")
        return self.weight

    @abstractmethod
    def __call__(self, played: Played, dictionary: SkillDictionary | None) -> Floats:
        """Penalties in units of reward, one per trajectory, to subtract from R.

        Args:
            dictionary: 𝒞 of this step; None if no success of the batch has a skill.

        Raises:
            ValueError: an episode is longer than T.
        """

    @abstractmethod
    def of_steps(self, skills: StepSkills, dictionary: SkillDictionary | None) -> Floats:
        """[steps] the part of a success's penalty that each of its steps causes; the parts sum to it."""


class NoShaping(Shaping):
    """No penalty: the reward stays as it is."""

    def __call__(self, played: Played, dictionary: SkillDictionary | None) -> Floats:
        """Zeros."""
        return np.zeros(len(played.won))

    def of_steps(self, skills: StepSkills, dictionary: SkillDictionary | None) -> Floats:
        """Zeros."""
        return np.zeros(len(skills))


class Constant(Shaping):
    """λ · [success] · 1/10, c(s) = T/10: every success costs the same, whatever the policy did in it."""

    def __call__(self, played: Played, dictionary: SkillDictionary | None) -> Floats:
        """See :class:`Shaping`; only success matters."""
        return CONSTANT_SHARE * self.weight * np.asarray(played.won, dtype=np.float64)

    def of_steps(self, skills: StepSkills, dictionary: SkillDictionary | None) -> Floats:
        """The whole penalty at the last step, where the success occurs."""
        charges = np.zeros(len(skills))
        # A slice, which may be empty: ``[-1]`` fails without steps.
        charges[-1:] = CONSTANT_SHARE * self.weight
        return charges


class RoundLength(Shaping):
    """λ · [success] · |s| / T: every skill costs the same."""

    def __call__(self, played: Played, dictionary: SkillDictionary | None) -> Floats:
        """See :class:`Shaping`; the dictionary has no effect."""
        _check_lengths(played.steps, self.max_steps)
        lengths = [len(sequence) for sequence in played.sequences]
        return _penalties(played.won, lengths, self.weight, self.max_steps)

    def of_steps(self, skills: StepSkills, dictionary: SkillDictionary | None) -> Floats:
        """λ / T at every step for each of its skills."""
        return self.weight * np.array([len(each) for each in skills], np.float64) / self.max_steps


class Rounds(Shaping):
    """λ · [success] · steps / T: every step costs the same, with or without a skill."""

    def __call__(self, played: Played, dictionary: SkillDictionary | None) -> Floats:
        """See :class:`Shaping`; sequences and the dictionary have no effect."""
        _check_lengths(played.steps, self.max_steps)
        return _penalties(played.won, played.steps, self.weight, self.max_steps)

    def of_steps(self, skills: StepSkills, dictionary: SkillDictionary | None) -> Floats:
        """λ / T at every step."""
        return np.full(len(skills), self.weight / self.max_steps)


class PhraseShaping(Shaping):
    """λ · [success] · c(s) / T, where c(s) is the sum of the prices of phrases that s is cut into."""

    @abstractmethod
    def costs(self, played: Played, dictionary: SkillDictionary) -> Floats:
        """[trajectories] c(s) of successes; any number for failures."""

    @abstractmethod
    def priced(self, sequence: Sequence[str], dictionary: SkillDictionary) -> list[tuple[Skills, float]]:
        """The phrases that s is cut into, in order, each with its price."""

    def __call__(self, played: Played, dictionary: SkillDictionary | None) -> Floats:
        """See :class:`Shaping`; a success without skills needs no phrase and costs nothing.

        Raises:
            ValueError: also if a success has skills and there is no dictionary.
        """
        _check_lengths(played.steps, self.max_steps)
        if dictionary is None:
            if any(won and sequence for won, sequence in zip(played.won, played.sequences, strict=True)):
                raise ValueError("dictionary is None, but a batch with a success needs the one fitted to it")
            return np.zeros(len(played.won))
        return _penalties(played.won, self.costs(played, dictionary), self.weight, self.max_steps)

    def of_steps(self, skills: StepSkills, dictionary: SkillDictionary | None) -> Floats:
        """A phrase is paid for by the step that holds its first skill: step k pays

            c_k = (λ / T) · Σ {price of phrase j : b_j in step k},    b_j = the place in s of its first skill,

        over the phrases j of the cut of s. A phrase may go on through later steps, which pay nothing for it,
        and steps without a skill may lie between those of a phrase.

        Raises:
            ValueError: there are skills and no dictionary.
        """
        step_of = np.repeat(np.arange(len(skills)), np.array([len(each) for each in skills], np.int64))
        if not len(step_of):
            return np.zeros(len(skills))
        if dictionary is None:
            raise ValueError("dictionary is None, but a batch with a success needs the one fitted to it")
        priced = self.priced(list(chain.from_iterable(skills)), dictionary)
        starts = np.cumsum([0, *(len(phrase) for phrase, _ in priced[:-1])])
        begun = np.bincount(step_of[starts], [price for _, price in priced], minlength=len(skills))
        return self.weight / self.max_steps * begun.astype(np.float64)


class SegmentationCost(PhraseShaping):
    """λ · [success] · seg(s, 𝒞) / T: a reusable phrase costs as much as a single skill (Eq. 6)."""

    def costs(self, played: Played, dictionary: SkillDictionary) -> Floats:
        """[trajectories] seg(s, 𝒞)."""
        return np.array(dictionary.costs(played.sequences), np.float64)

    def priced(self, sequence: Sequence[str], dictionary: SkillDictionary) -> list[tuple[Skills, float]]:
        """The phrases of a minimal segmentation, 1 each."""
        return [(phrase, 1.0) for phrase in dictionary.segment(sequence)]


def _check_lengths(steps: Sequence[int], max_steps: int) -> None:
    longest = max(steps, default=0)
    if longest > max_steps:
        raise ValueError(f"an episode of {longest} steps is longer than the {max_steps} steps that T allows")


def _penalties(won: Sequence[bool], costs: Sequence[int] | Floats, weight: float, max_steps: int) -> Floats:
    return weight * np.asarray(won, dtype=np.float64) * np.asarray(costs, dtype=np.float64) / max_steps
