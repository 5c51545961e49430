"""The ``algorithm`` section of params.yaml, as far as every algorithm has it.

An algorithm's file adds its own keys to these, as an environment's folder does for ``environment``; a
selection's file adds its own to ``algorithm.select``. An overlay that names another algorithm or another
selection replaces that section whole.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny, field_validator

from skillpress.core.registry import ALGORITHMS, SELECTIONS, Registry, lookup, named

_STRICT = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class SelectionParameters(BaseModel):
    """The ``algorithm.select`` section; a selection adds its own keys to these."""

    model_config = _STRICT

    name: str

    @property
    def most_refills(self) -> int:
        """How often per step groups that teach nothing are replaced by further tasks' rollouts."""
        return 0


class AlgorithmParameters(BaseModel):
    """The ``algorithm`` section; an algorithm adds its own keys to these."""

    model_config = _STRICT

    one_update_per_step: ClassVar[bool] = False
    """Whether the loss is right only for the weights that sampled."""
    corrects_staleness: ClassVar[bool] = False
    """Whether the loss is right for rollouts of weights some steps old (``training.replay``)."""
    needs_values: ClassVar[bool] = False
    """Whether a value head is trained beside the policy, whose values ``Batch.values`` shows."""
    smallest_group: ClassVar[int] = 2
    """Rollouts of a task that it needs at least."""

    name: str
    kl_coefficient: Annotated[float, Field(ge=0)]
    """Weight of the KL to the start policy; 0 needs no reference policy."""
    select: SerializeAsAny[SelectionParameters]

    @property
    def head_rate(self) -> float:
        """Learning rate of the value head, as a multiple of the policy's; read where there is a head."""
        return 1.0

    @field_validator("select", mode="before")
    @classmethod
    def _selection_by_name(cls, value: Any) -> SelectionParameters:
        if isinstance(value, SelectionParameters):
            return value
        made: SelectionParameters = _by_name(SELECTIONS, value, "algorithm.select.name")
        return made


def algorithm_parameters(value: Any) -> AlgorithmParameters:
    """The section as the algorithm that it names checks it.

    Raises:
        ValueError: no algorithm has this name, or a key is wrong (pydantic names it).
    """
    if isinstance(value, AlgorithmParameters):
        return value
    made: AlgorithmParameters = _by_name(ALGORITHMS, value, "algorithm.name")
    return made


def _by_name(registry: Registry, value: Any, parameter: str) -> Any:
    return lookup(registry, named(registry, value), parameter).Parameters.model_validate(value)
