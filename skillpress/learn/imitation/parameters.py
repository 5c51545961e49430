"""The ``imitation`` section of params.yaml."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from skillpress.core.sections import Fraction, NonNegativeInt, Positive, PositiveInt, Section


class ImitationParameters(Section):
    """How long and from what the policy learns before any reward."""

    demonstrations: NonNegativeInt
    thoughts: Annotated[str, Field(min_length=1)] | None
    detour_rate: Fraction
    batch_size: PositiveInt
    optimizer: Literal["adamw", "muon"] = "adamw"
    """What moves the weights; Muon needs fewer updates (``imitation/optimizers.py``)."""
    learning_rate: Positive
    warmup_updates: NonNegativeInt = 50
    """Updates in which the learning rate rises, in a line; never more than a tenth of all of them."""
    epochs: PositiveInt
