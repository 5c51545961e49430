"""The ``imitation`` section of params.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from skillpress.core.registry import EPISODES, lookup
from skillpress.core.sections import Fraction, NonNegativeInt, Positive, PositiveInt, Section
from skillpress.training.lora_parameters import ImitationLora

if TYPE_CHECKING:
    from skillpress.training.imitation.episodes import Gathered

WON, ALL = "won", "all"
"""The values of ``which`` that do not name a field of a log."""


class ImitationParameters(Section):
    """What the policy imitates before it sees any reward, and for how long."""

    demonstrations: NonNegativeInt
    """Oracle episodes to imitate; 0 starts from the unchanged model."""
    thoughts: Annotated[str, Field(min_length=1)] | None
    """File of ``skillpress reverse-parse`` to imitate, with demonstrations or alone."""
    episodes: list[Annotated[str, Field(min_length=1)]] = Field(default=[])
    """Files of recorded episodes to imitate: our own rollouts, or logs of any agent (docs/log_formats.md); in
    the working directory or the lab."""
    which: Annotated[str, Field(min_length=1)] = WON
    """The recorded episodes to imitate: ``won``, ``all``, or a condition on a field of foreign records, as in
    ``skillpress skills --success`` (``extra.reward>=1``)."""
    detour_rate: Fraction
    """Share of oracle steps that are mistakes, which it then corrects."""
    batch_size: PositiveInt
    """Samples (steps of demonstrations) per update."""
    optimizer: Literal["adamw", "muon"] = "adamw"
    """The optimizer; Muon needs fewer updates than AdamW (``imitation/optimizers.py``)."""
    learning_rate: Positive
    """Peak rate, reached to at least 0.9 (results/imitation.json); then linear to 0."""
    warmup_updates: NonNegativeInt = 50
    """The learning rate rises linearly over this many updates, but over at most a tenth of all updates."""
    epochs: PositiveInt
    """Passes over the demonstrations."""
    lora: ImitationLora | None = None
    """Null, or {rank, alpha, then}: imitate by low-rank changes of the weights (docs/lora.md)."""

    @property
    def wanted(self) -> bool:
        """Whether anything is imitated at all."""
        return bool(self.demonstrations or self.episodes or self.thoughts is not None)

    def gather(self, folder: Path) -> Gathered | None:
        """The recorded episodes; None if no file is named.

        Args:
            folder: where conversations of foreign logs are written.

        Raises:
            ParamsError: a file is missing or is not a log, or no episode was won; the message names the
            remedy.
            StorageError: a rollout file is damaged.
        """
        if not self.episodes:
            return None
        found: Gathered = lookup(EPISODES, "files", "imitation.episodes")(self.episodes, self.which, folder)
        return found
