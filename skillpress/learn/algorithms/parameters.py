"""The keys of params.yaml's ``algorithm`` section that all algorithms share.

An algorithm's file adds its own keys to these, as an environment's folder does for ``environment``; a
selection's file adds its own to ``algorithm.select``. An overlay that names another algorithm or another
selection replaces that section whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import SerializeAsAny

from skillpress.core.registry import ALGORITHMS, SELECTIONS, lookup
from skillpress.core.sections import ByName, Mass, NonNegative, Section

if TYPE_CHECKING:
    from skillpress.learn.algorithms.algorithm import Algorithm, Selection


class SelectionParameters(Section):
    """The ``algorithm.select`` section; a selection adds its own keys to these."""

    name: str

    @property
    def most_refills(self) -> int:
        """The most times per step that groups that teach nothing are replaced by rollouts of other tasks."""
        return 0

    def make(self) -> Selection:
        """The selection of the trajectories that teach."""
        made: Selection = lookup(SELECTIONS, self.name, "algorithm.select.name")(self)
        return made


class AlgorithmParameters(Section):
    """The ``algorithm`` section; an algorithm adds its own keys to these."""

    one_update_per_step: ClassVar[bool] = False
    """Whether the loss is correct only for the weights that sampled."""
    corrects_staleness: ClassVar[bool] = False
    """Whether the loss is correct for rollouts whose weights are some steps old (``training.replay``)."""
    needs_values: ClassVar[bool] = False
    """Whether a value head is trained with the policy; ``Batch.values`` has its values."""
    smallest_group: ClassVar[int] = 2
    """The fewest rollouts per task that it needs."""

    name: str
    kl_coefficient: NonNegative
    """Weight of the KL to the start policy; at 0 no reference policy is needed."""
    kl_share: Mass = 1.0
    """Share of the sequences whose KL the start policy scores, another draw in every step; the term keeps
    its expectation (``training/kl_share.py``). A loss of your own takes the term from ``kl.reference_kl``."""
    select: Annotated[SerializeAsAny[SelectionParameters], ByName(SELECTIONS, "algorithm.select.name")]

    @property
    def head_rate(self) -> float:
        """Learning rate of the value head, as a multiple of the policy's; read only if there is a head."""
        return 1.0

    def make(self, longest_response: int) -> Algorithm:
        """The algorithm with its selection."""
        made: Algorithm = lookup(ALGORITHMS, self.name, "algorithm.name")(
            self, self.select.make(), longest_response
        )
        return made
