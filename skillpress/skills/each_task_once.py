"""A corpus in which a task cannot make a phrase by repetition (``skills.corpus: each_task_once``).

GRPO plays every task n times. A policy that has found a solution of its own to a task repeats it in most of
these episodes, and when the task comes again. All of them are in the corpus, where a phrase pays as soon as
it saves more bits than it takes. So the private solution of a single task becomes a phrase, although nothing
of it is used in another task. The paper's reuse is reuse across tasks.

Here every pair of a task and a skill sequence counts once among the successes of ``algorithm_1``. A sequence
that wins m tasks still counts m times. Different sequences that win one task count once each, so a phrase
that they share has as many uses as there are such sequences.
"""

from __future__ import annotations

from collections.abc import Sequence

from skillpress.skills.buffer import Success
from skillpress.skills.step_corpus import Algorithm1, StepCorpus


class EachTaskOnce(Algorithm1):
    """The distinct pairs (task, s) of 𝓑⁺ ∪ 𝒢. The buffer holds successes with their repetitions."""

    def __call__(self, batch: Sequence[Success]) -> StepCorpus:
        """Each pair where it first occurs."""
        return StepCorpus(list(dict.fromkeys(super().__call__(batch).judged)))
