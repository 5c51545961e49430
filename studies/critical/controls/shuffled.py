"""A corpus whose successes have lost their order: names keep their frequencies, phrases do not.

skills:
  corpus: studies.critical.controls.shuffled:Shuffled
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from skillpress.core.seeds import derive
from skillpress.skills.buffer import Success
from skillpress.skills.step_corpus import Algorithm1, StepCorpus


class Shuffled(Algorithm1):
    """𝓑⁺ ∪ 𝒢, the skills of each success in an order drawn for it. The buffer keeps them as they were."""

    def __init__(self, capacity: int, seed: int) -> None:
        """See :class:`Algorithm1`; the seed decides the orders."""
        super().__init__(capacity, seed)
        self._seed = seed

    def __call__(self, batch: Sequence[Success]) -> StepCorpus:
        """The successes in their order, each shuffled."""
        judged = super().__call__(batch).judged
        return StepCorpus([self._shuffled(number, each) for number, each in enumerate(judged)])

    def _shuffled(self, number: int, success: Success) -> Success:
        # Seeded by what is shuffled, so that a training that goes on from a checkpoint draws the same.
        random = Random(derive(self._seed, "shuffled", number, success.task, *success.skills))
        return replace(success, skills=tuple(random.sample(success.skills, len(success.skills))))
