"""The parameters of low-rank changes, in imitation and in training."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import ClassVar, Literal

from skillpress.core.errors import UserError
from skillpress.core.sections import PositiveInt, Section


class LoraParameters(Section):
    """``training.lora``: the low-rank adapter that is trained in place of the whole policy."""

    where: ClassVar[str] = "training.lora"
    """The section's place in params.yaml."""

    rank: PositiveInt
    """Rank of the low-rank matrices."""
    alpha: PositiveInt
    """Scale of the adapter, which is multiplied by alpha / rank."""

    def libraries(self) -> dict[str, str]:
        """Name to version of the libraries that only experiments with LoRA use.

        Raises:
            UserError: ``peft`` is not installed.
        """
        try:
            return {"peft": version("peft")}
        except PackageNotFoundError:
            raise UserError(
                f"{self.where}: is set, but the package peft is not installed here; "
                f"pip install 'skillpress[lora]', or set {self.where} to null"
            ) from None


class ImitationLora(LoraParameters):
    """``imitation.lora``: the low-rank adapter that imitates in place of the whole policy."""

    where: ClassVar[str] = "imitation.lora"

    then: Literal["merge", "continue"]
    """Training starts from the merged weights (``merge``), or trains the same adapter on (``continue``)."""
