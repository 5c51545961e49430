"""Which successes a training step's dictionary is fitted to: each of the paper's three statements.

- ``algorithm_1``, the default. Algorithm 1 appends the batch's successes to the FIFO buffer 𝒢 and then fits
  to 𝓑⁺ ∪ 𝒢. A success that is in both counts once. So the corpus is the newest ``capacity`` successes, or the
  whole batch if that alone holds more: max(capacity, batch) sequences at most.
- ``buffer_and_batch``. Section 3.7: a cluster 𝒯 of "the current successful batch and an optional global
  successful buffer", reading the buffer as that of *earlier* batches: capacity + batch at most.
- ``batch_accepts``. Section 3.7 ranks candidates by their frequency in the cluster 𝒯, but accepts them by
  "the batch objective" on 𝒯_b. The other two read 𝒯_b as the cluster of batch b, so that both are the same
  corpus. Here 𝒯_b is the batch alone: the buffer helps to rank merges and never to accept one.

Until a buffer is full, and without a buffer, the first two are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skillpress.skills.buffer import Skills, SuccessBuffer


@dataclass(frozen=True)
class StepCorpus:
    """The sequences that one step's dictionary is fitted to; every list is oldest first."""

    judged: list[Skills]
    """The sequences on which 𝓛_BDL is computed."""
    ranked_with: Sequence[Skills] = ()
    """More sequences. Their pairs count where merges are ranked, and nowhere else."""


def algorithm_1(buffer: SuccessBuffer, batch: Sequence[Skills]) -> StepCorpus:
    """𝓑⁺ ∪ 𝒢 after the batch has entered the buffer. ``buffer`` is the state before the batch."""
    room = max(0, buffer.capacity - len(batch))
    earlier = buffer.sequences
    return StepCorpus([*earlier[max(0, len(earlier) - room) :], *batch])


def buffer_and_batch(buffer: SuccessBuffer, batch: Sequence[Skills]) -> StepCorpus:
    """The batch, and everything that earlier batches left in the buffer."""
    return StepCorpus([*buffer.sequences, *batch])


def batch_accepts(buffer: SuccessBuffer, batch: Sequence[Skills]) -> StepCorpus:
    """The batch decides which merges are accepted; Algorithm 1's cluster ranks them."""
    cluster = algorithm_1(buffer, batch).judged
    return StepCorpus([*batch], cluster[: len(cluster) - len(batch)])
