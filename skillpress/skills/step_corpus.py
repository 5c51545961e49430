"""Which successes a training step's dictionary is fitted to: the paper's three statements, each built.

- ``algorithm_1``, the default. Algorithm 1 appends the batch's successes to the FIFO buffer 𝒢 and then
  fits to 𝓑⁺ ∪ 𝒢. A success that is in both is one success, so the corpus is the newest ``capacity``
  successes, and the whole batch where it alone holds more: max(capacity, batch) sequences at most.
- ``buffer_and_batch``. Section 3.7: a cluster 𝒯 of "the current successful batch and an optional global
  successful buffer", the buffer read as that of *earlier* batches: capacity + batch at most.
- ``batch_accepts``. Section 3.7 ranks candidates by their frequency in the cluster 𝒯, but accepts them by
  "the batch objective" on 𝒯_b. The other two read 𝒯_b as the cluster of batch b, so that both are the
  same corpus. Here it is the batch alone: the buffer helps to rank merges and never to accept one.

Until a buffer is full, and without one, the first two are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skillpress.skills.buffer import Skills, SuccessBuffer


@dataclass(frozen=True)
class StepCorpus:
    """What one step's dictionary is fitted to; every list is oldest first."""

    judged: list[Skills]
    """𝓛_BDL is computed on these."""
    ranked_with: Sequence[Skills] = ()
    """More sequences whose pairs count where merges are ranked, and nowhere else."""


def algorithm_1(buffer: SuccessBuffer, batch: Sequence[Skills]) -> StepCorpus:
    """𝓑⁺ ∪ 𝒢 once the batch is in the buffer. ``buffer`` is as it was before the batch."""
    room = max(0, buffer.capacity - len(batch))
    earlier = buffer.sequences
    return StepCorpus([*earlier[max(0, len(earlier) - room) :], *batch])


def buffer_and_batch(buffer: SuccessBuffer, batch: Sequence[Skills]) -> StepCorpus:
    """All that earlier batches left in the buffer, and the batch."""
    return StepCorpus([*buffer.sequences, *batch])


def batch_accepts(buffer: SuccessBuffer, batch: Sequence[Skills]) -> StepCorpus:
    """The batch judges; Algorithm 1's cluster ranks."""
    cluster = algorithm_1(buffer, batch).judged
    return StepCorpus([*batch], cluster[: len(cluster) - len(batch)])
