"""Which successes a training step's dictionary is fitted to, and which it keeps for later steps.

An entry of ``skills.corpus`` is a class made from ``skills.buffer`` and the experiment's seed. It owns what
it keeps of earlier steps, whether that is a buffer or something else. Three classes read the paper's three
statements:

- ``algorithm_1``, the default. Algorithm 1 appends the batch's successes to the FIFO buffer 𝒢 and then fits
  to 𝓑⁺ ∪ 𝒢. A success that is in both counts once. So the corpus is the newest ``capacity`` successes, or the
  whole batch if that alone holds more: max(capacity, batch) sequences at most.
- ``buffer_and_batch``. Section 3.7: a cluster 𝒯 of "the current successful batch and an optional global
  successful buffer", reading the buffer as that of *earlier* batches: capacity + batch at most.
- ``batch_accepts``. Section 3.7 ranks candidates by their frequency in the cluster 𝒯, but accepts them by
  "the batch objective" on 𝒯_b. The other two read 𝒯_b as the cluster of batch b, so that both are the same
  corpus. Here 𝒯_b is the batch alone: the buffer helps to rank merges and never to accept one.

Until a buffer is full, and without a buffer, the first two are the same. Other files have further
corpora: ``each_task_once.py`` and ``decayed.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skillpress.skills.buffer import Success, SuccessBuffer


@dataclass(frozen=True)
class StepCorpus:
    """The successes that one step's dictionary is fitted to; every list is oldest first."""

    judged: list[Success]
    """The successes on which 𝓛_BDL is computed."""
    ranked_with: Sequence[Success] = ()
    """More successes. Their pairs count where merges are ranked, and nowhere else."""


class SuccessCorpus(ABC):
    """Makes the corpus of every step; its state is equal on all processes."""

    @abstractmethod
    def __init__(self, capacity: int, seed: int) -> None:
        """A corpus before the first step.

        Args:
            capacity: ``skills.buffer``.
            seed: the experiment's, for a corpus that draws.
        """

    @property
    @abstractmethod
    def earlier(self) -> list[Success]:
        """The successes of earlier steps that it keeps, oldest first."""

    @abstractmethod
    def __call__(self, batch: Sequence[Success]) -> StepCorpus:
        """The corpus of a step with these successes; it does not keep them."""

    @abstractmethod
    def push(self, batch: Sequence[Success]) -> None:
        """End a step that has these new successes; called once in every step, also in one without any."""

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """The state for a checkpoint, as JSON values."""

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state that ``state_dict`` returned.

        Raises:
            ValueError: the state is damaged, or a version without tasks wrote it.
        """


class BufferedCorpus(SuccessCorpus):
    """A corpus that keeps the buffer 𝒢 and nothing else."""

    def __init__(self, capacity: int, seed: int) -> None:
        """An empty buffer; nothing is drawn."""
        self._buffer = SuccessBuffer(capacity)

    @property
    def earlier(self) -> list[Success]:
        """The successes in the buffer."""
        return self._buffer.successes

    def push(self, batch: Sequence[Success]) -> None:
        """See :meth:`SuccessBuffer.push`."""
        self._buffer.push(batch)

    def state_dict(self) -> dict[str, Any]:
        """See :meth:`SuccessBuffer.state_dict`."""
        return self._buffer.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See :meth:`SuccessBuffer.load_state_dict`."""
        self._buffer.load_state_dict(state)


class Algorithm1(BufferedCorpus):
    """𝓑⁺ ∪ 𝒢 after the batch has entered the buffer."""

    def __call__(self, batch: Sequence[Success]) -> StepCorpus:
        """The newest successes, the batch among them."""
        room = max(0, self._buffer.capacity - len(batch))
        earlier = self._buffer.successes
        return StepCorpus([*earlier[max(0, len(earlier) - room) :], *batch])


class BufferAndBatch(BufferedCorpus):
    """The batch, and everything that earlier batches left in the buffer."""

    def __call__(self, batch: Sequence[Success]) -> StepCorpus:
        """The buffer before the batch enters it, then the batch."""
        return StepCorpus([*self._buffer.successes, *batch])


class BatchAccepts(Algorithm1):
    """The batch decides which merges are accepted; Algorithm 1's cluster ranks them."""

    def __call__(self, batch: Sequence[Success]) -> StepCorpus:
        """The batch, ranked with the rest of the cluster."""
        cluster = super().__call__(batch).judged
        return StepCorpus([*batch], cluster[: len(cluster) - len(batch)])
