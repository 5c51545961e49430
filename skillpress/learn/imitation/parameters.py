"""The ``imitation`` section of params.yaml."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from skillpress.core.sections import Fraction, NonNegativeInt, Positive, PositiveInt, Section


class ImitationParameters(Section):
    """What the policy imitates before it sees any reward, and for how long."""

    demonstrations: NonNegativeInt
    thoughts: Annotated[str, Field(min_length=1)] | None
    detour_rate: Fraction
    batch_size: PositiveInt
    optimizer: Literal["adamw", "muon"] = "adamw"
    """The optimizer; Muon needs fewer updates than AdamW (``imitation/optimizers.py``)."""
    learning_rate: Positive
    warmup_updates: NonNegativeInt = 50
    """The learning rate rises linearly over this many updates, but over at most a tenth of all updates."""
    epochs: PositiveInt
