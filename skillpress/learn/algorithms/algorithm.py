"""What an algorithm is: which rollouts teach, how good each step was, and what the optimizer minimises.

The rest of a training step (playing, shaping, minibatches, ranks) is the same for all algorithms; see
``training/step.py``. The contract is here and not in ``interface.py``, so that editing it reruns training but
not imitation. No algorithm imports torch: parameters are checked without it, and a loss only calls methods of
the tensors that it receives.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from skillpress.learn.algorithms.batch import Batch, Floats, Indices, SumOverRanks
from skillpress.learn.algorithms.importance_weights import TruncatedImportance
from skillpress.learn.algorithms.parameters import AlgorithmParameters, SelectionParameters
from skillpress.learn.algorithms.scored_tokens import ScoredTokens
from skillpress.learn.algorithms.token_weights import token_weights

if TYPE_CHECKING:
    import torch


class Selection(Protocol):
    """Which trajectories of a batch teach. Made from its own parameters."""

    Parameters: ClassVar[type[SelectionParameters]]

    def __call__(self, batch: Batch, seed: int) -> NDArray[np.bool_]:
        """[trajectories] True for those to keep; ``seed`` is for a selection that draws at random."""


class PolicyLoss(Protocol):
    """What an update minimises, as a sum over tokens that any split of the batch can add up."""

    @property
    def kl_coefficient(self) -> float:
        """Weight of the KL to the start policy; at 0 the learner keeps no reference policy."""

    def __call__(self, tokens: ScoredTokens) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """The loss of some response tokens, and metrics, which are weighted sums too."""


@dataclass(frozen=True)
class Algorithm(ABC):
    """A method of reinforcement learning; subclass it in its own file and name it in the registry."""

    Parameters: ClassVar[type[AlgorithmParameters]]
    """Its section of params.yaml."""

    parameters: AlgorithmParameters
    selection: Selection
    longest_response: int
    """The most tokens of a response (``sampling.max_new_tokens``)."""

    def select(self, batch: Batch, seed: int) -> NDArray[np.bool_]:
        """[trajectories] True for those that teach; the others count as if they had not been played."""
        return self.selection(batch, seed)

    @abstractmethod
    def advantages(self, batch: Batch, add: SumOverRanks) -> Floats:
        """How much better each step was than expected.

        Args:
            batch: the trajectories that ``select`` kept, shaped; this process's share.
            add: sums values over all processes, for statistics of the whole step.

        Returns:
            [steps], or [steps, longest response] for credit per token; the padding is ignored. A step with
            advantage 0 teaches nothing and is left out of the model's passes, unless ``teaches_everywhere``.
        """

    def value_targets(self, batch: Batch) -> Floats | None:
        """[steps] the values that ``batch.values`` should have had; None without a value head."""
        return None

    @property
    def teaches_everywhere(self) -> bool:
        """Whether every step without advantage teaches too. With a KL term over all steps it pulls towards
        the start policy; with a value head its state has a value to learn."""
        everywhere = bool(self.loss.kl_coefficient) and self.parameters.kl_share == 1
        return everywhere or self.parameters.needs_values

    def describe(self, batch: Batch, add: SumOverRanks) -> dict[str, float]:
        """Metrics of a batch that a reader of the training curve should know.

        All processes return the same names; ``add`` is the same as for ``advantages``.
        """
        return {}

    @property
    @abstractmethod
    def loss(self) -> PolicyLoss:
        """The loss that an update minimises."""

    @property
    def importance(self) -> TruncatedImportance | None:
        """Weights for an engine whose probabilities differ from the learner's; None treats them as equal."""
        return None

    @property
    def whole_trajectories(self) -> bool:
        """Whether the loss takes ratios over whole trajectories. If it does, a minibatch never splits one."""
        return False

    def token_weights(self, lengths: Indices, tokens: float, sequences: float) -> Floats:
        """[samples] the weight of each token of a sample in the step's loss. The weights of a step sum to 1,
        unless the algorithm divides by its own constant instead of the number of tokens.

        Args:
            lengths: [samples] response tokens of this process's samples.
            tokens: response tokens of the whole step.
            sequences: samples of the whole step.
        """
        return token_weights(lengths, "token_mean", tokens, sequences)
