"""What an algorithm is: which rollouts teach, how good each step was, and what the optimizer minimises.

An algorithm is its section of params.yaml: the fields are its keys, the methods are the method. The rest of a
training step (playing, shaping, minibatches, ranks) is the same for all algorithms; see ``training/step.py``.
No algorithm imports torch: parameters are checked without it, and a loss only calls methods of the tensors
that it receives.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import SerializeAsAny

from skillpress.core.registry import SELECTIONS
from skillpress.core.sections import ByName, Mass, NonNegative, Section
from skillpress.training.algorithms.token_weights import token_weights

if TYPE_CHECKING:  # all stages check parameters; what they import here would be part of their cache keys
    import torch

    from skillpress.training.algorithms.batch import Batch, Flags, Floats, Indices, SumOverRanks
    from skillpress.training.algorithms.importance_weights import TruncatedImportance
    from skillpress.training.algorithms.scored_tokens import ScoredTokens


class Selection(Section):
    """The ``algorithm.select`` section: which trajectories of a batch teach. Subclass it in its own file."""

    name: str
    """``none``, ``varied_groups`` (DAPO; refills) or ``dynamic_sampling`` (L0; discard)."""

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
    """Whether the loss is correct only for the weights that sampled."""
    corrects_staleness: ClassVar[bool] = False
    """Whether the loss is correct for rollouts whose weights are some steps old (``training.replay``)."""
    needs_values: ClassVar[bool] = False
    """Whether a value head is trained with the policy; ``Batch.values`` has its values."""
    smallest_group: ClassVar[int] = 2
    """The fewest rollouts per task that it needs."""

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
        """What an update minimises, as a sum over tokens that any split of the batch can add up.

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
