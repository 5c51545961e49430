"""What an algorithm is: which rollouts teach, how good each step was, and what the optimizer minimises.

An algorithm is its section of params.yaml: the fields are its keys, the methods are the method. The rest of a
training step (playing, shaping, minibatches, ranks) is the same for all algorithms; see ``training/step.py``.
No algorithm imports torch: parameters are checked without it, and a loss only calls methods of the tensors
that it receives.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from pydantic import SerializeAsAny

from skillpress.core.registry import SELECTIONS
from skillpress.core.sections import ByName, Mass, NonNegative, Section

if TYPE_CHECKING:  # all stages check parameters; what they import here would be part of their cache keys
    import torch

    from skillpress.training.algorithms.batch import Batch, Flags, Floats, Indices, SumOverRanks
    from skillpress.training.algorithms.importance_weights import TruncatedImportance


@dataclass(frozen=True)
class ScoredTokens:
    """The input of a loss: the response tokens of one pass through the model, whole responses only, response
    after response. A tensor whose shape is not given is [tokens]."""

    logprobs: torch.Tensor
    """log pi(v_t) in nats under the current weights; carries the gradient."""
    old_logprobs: torch.Tensor
    """Denominators of the ratios: the engine's log-probabilities, or the learner's before the step."""
    advantages: torch.Tensor
    weights: torch.Tensor
    """w_t, see :func:`token_weights`."""
    response: torch.Tensor
    """Number of each token's response, counted from 0 within this pass."""
    reference_logprobs: torch.Tensor | None = None
    """Log-probabilities of the start policy, NaN where ``kl_weights`` is 0; None if there is no KL term."""
    kl_weights: torch.Tensor | None = None
    """Weights of the KL term: w_t over the probability that the start policy scores the token, 0 where it is
    not scored. None if all tokens are scored: the weights are then w_t."""
    values: torch.Tensor | None = None
    """[responses] V of each response's state under the current weights, with gradient; None without head."""
    old_values: torch.Tensor | None = None
    """[responses] the values before the updates of the step; None without a head."""
    value_targets: torch.Tensor | None = None
    """[responses] the values that the states should have had; None without a head."""
    value_weights: torch.Tensor | None = None
    """[responses] weight of each in the values' loss of its update; a whole update's sum to 1 over all
    processes."""
    trajectory_sums: torch.Tensor | None = None
    """[tokens, 4] sums over each token's trajectory (``ratio_levels.py``); None if no loss needs them."""


Aggregation = Literal["token_mean", "sequence_mean"]
"""``token_mean`` gives every token the same weight; ``sequence_mean`` every sample, whatever its length."""


def token_weights(lengths: Indices, aggregation: Aggregation, tokens: float, sequences: float) -> Floats:
    """[samples] weight w of each token of a sample, such that the weights of a whole step sum to 1.

    They are set for the whole step, before it is split into minibatches, passes and processes and before
    samples without advantage are removed. So neither the split nor the removal changes the gradient.

    Args:
        lengths: [samples] response tokens per sample, at least 1 each.
        tokens: response tokens of the whole step, over all ranks, skipped samples included.
        sequences: samples of the whole step, likewise.
    """
    if not len(lengths):
        return np.zeros(0)
    if aggregation == "token_mean":
        return np.full(len(lengths), 1.0 / tokens)
    return 1.0 / (lengths.astype(np.float64) * sequences)


class Selection(Section):
    """The ``algorithm.select`` section: which trajectories of a batch teach. Subclass it in its own file."""

    name: str
    """``none``, ``varied_groups`` (DAPO; refills) or ``dynamic_sampling`` (L0; discard, refills)."""

    @property
    def most_refills(self) -> int:
        """The most times per step that groups that teach nothing are replaced by rollouts of other tasks."""
        return 0

    @abstractmethod
    def kept(self, batch: Batch, seed: int) -> Flags:
        """[trajectories] True for those to keep; ``seed`` is for a selection that draws at random."""


class Algorithm(Section):
    """The ``algorithm`` section: a method of reinforcement learning. Subclass it in its own file.

    An overlay that names another algorithm or another selection replaces that section whole.
    """

    one_update_per_step: ClassVar[bool] = False
    """Whether the loss is correct only under the weights that sampled the tokens."""
    corrects_staleness: ClassVar[bool] = False
    """Whether the loss is correct for rollouts whose weights are some steps old (``training.replay``)."""
    needs_values: ClassVar[bool] = False
    """Whether a value head is trained with the policy; ``Batch.values`` has its values."""
    smallest_group: ClassVar[int] = 2
    """The fewest rollouts per task that the algorithm needs."""

    name: str
    """An algorithm of docs/methods.md, each with its own keys, or ``module:Class``."""
    kl_coefficient: NonNegative
    """Weight of the KL to the start policy; at 0 no reference policy is needed."""
    kl_share: Mass = 1.0
    """Share of the sequences whose KL the start policy scores, another draw in every step. The term keeps its
    expectation (``training/kl_share.py``)."""
    select: Annotated[SerializeAsAny[Selection], ByName(SELECTIONS, "algorithm.select.name")]
    """Chooses the rollouts that teach; another name replaces this whole section."""

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

    @abstractmethod
    def loss(self, tokens: ScoredTokens) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """What an update minimises: a sum over tokens, the same for any split of the batch.

        Returns:
            The loss of some response tokens, and metrics, which are weighted sums too.
        """

    def value_targets(self, batch: Batch) -> Floats | None:
        """[steps] the values that ``batch.values`` should have had; None without a value head."""
        return None

    @property
    def head_rate(self) -> float:
        """Learning rate of the value head, as a multiple of the policy's; read only if there is a head."""
        return 1.0

    @property
    def teaches_everywhere(self) -> bool:
        """Whether every step without advantage teaches too. With a KL term over all steps it pulls towards
        the start policy; with a value head its state has a value to learn."""
        return (bool(self.kl_coefficient) and self.kl_share == 1) or self.needs_values

    def describe(self, batch: Batch, add: SumOverRanks) -> dict[str, float]:
        """Metrics of a batch that a reader of the training curve should know.

        All processes return the same names; ``add`` is the same as for ``advantages``.
        """
        return {}

    @property
    def importance_weights(self) -> TruncatedImportance | None:
        """Weights for an engine whose probabilities differ from the learner's; None treats them as equal."""
        return None

    @property
    def whole_trajectories(self) -> bool:
        """Whether the loss takes ratios over whole trajectories. If it does, a minibatch never splits one."""
        return False

    def token_weights(self, lengths: Indices, tokens: float, sequences: float, longest: int) -> Floats:
        """[samples] the weight of each token of a sample in the step's loss. The weights of a step sum to 1,
        unless the algorithm divides by its own constant instead of the number of tokens.

        Args:
            lengths: [samples] response tokens of this process's samples.
            tokens: response tokens of the whole step.
            sequences: samples of the whole step.
            longest: the most tokens of a response (``sampling.max_new_tokens``).
        """
        return token_weights(lengths, "token_mean", tokens, sequences)
