"""The other end of a weight update: what a vLLM server loads to fetch weights over HTTP.

Weights are staged first, the whole file, and compared with the model that is served; only then does
vLLM's reload begin, in one go. A transfer that breaks off, or brings another model's weights, therefore
leaves the server sampling as before. (vLLM's own transfers put the model into reload first; what fails
then leaves it without weights.)

This module runs in vLLM's worker processes, where skillpress need not be installed: it imports torch,
safetensors, vLLM and what the standard library suffices for. Importing it registers the transfer, which
``--weight-transfer-config '{"backend": "safetensors"}'`` then names.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

import torch
from safetensors import safe_open
from safetensors.torch import load
from vllm.distributed.weight_transfer import WeightTransferEngineFactory
from vllm.distributed.weight_transfer.base import (
    WeightTransferEngine,
    WeightTransferInitInfo,
    WeightTransferUpdateInfo,
)
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload

from skillpress.models.engines.launcher import end_with_launcher

BACKEND = "safetensors"


@dataclass
class NothingToAgreeOn(WeightTransferInitInfo):
    """Every update brings its own address."""


@dataclass
class WeightsAt(WeightTransferUpdateInfo):
    """One update."""

    url: str
    """A safetensors file with every parameter of the model's checkpoint, a tied head included."""
    seconds: float
    """How long the server that offers it may be silent."""


class SafetensorsTransfer(WeightTransferEngine[NothingToAgreeOn, WeightsAt]):
    """Fetches, compares, then applies."""

    init_info_cls = NothingToAgreeOn
    update_info_cls = WeightsAt

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._staged: dict[str, torch.Tensor] = {}
        self._shapes = checkpoint_shapes(Path(self.model_config.model))

    def init_transfer_engine(self, init_info: NothingToAgreeOn) -> None:
        """Nothing."""

    def start_weight_update(self) -> None:
        """Nothing is touched before all is here."""
        self._staged.clear()

    def update_weights(self, update_info: dict[str, Any]) -> None:
        """Fetch and compare; the base class would wait for an accelerator, also where there is none."""
        self.receive_weights(self.parse_update_info(update_info))

    def receive_weights(self, update_info: WeightsAt) -> None:
        """Stage the file.

        Raises:
            OSError: it cannot be fetched.
            ValueError: these are not weights of the model that is served.
        """
        opener = build_opener(ProxyHandler({}))
        with opener.open(update_info.url, timeout=update_info.seconds) as answer:
            staged = load(answer.read())
        refuse_other_models(staged, self._shapes)
        self._staged = staged

    def finish_weight_update(self) -> None:
        """Sample from what was staged."""
        if not self._staged:
            raise ValueError("no weights were staged")
        with torch.device(self.device):
            initialize_layerwise_reload(self.model)
            self.model.load_weights(iter(self._staged.items()))
            finalize_layerwise_reload(self.model, self.model_config)
        self._staged = {}

    def shutdown(self) -> None:
        """Nothing is held."""


class WorkerExtension:
    """vLLM mixes this into its worker; with it the transfer above is imported there."""

    model_config: Any
    """The worker's own."""

    def served_dtype(self) -> str:
        """What the model computes in, as ``policy.dtype`` names it; ``/collective_rpc`` asks for it."""
        return str(self.model_config.dtype).removeprefix("torch.")


def checkpoint_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """Parameter name to shape in a model folder; empty where the model is no local folder."""
    shapes: dict[str, tuple[int, ...]] = {}
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, framework="pt") as stored:
            shapes |= {name: tuple(stored.get_slice(name).get_shape()) for name in stored.keys()}  # noqa: SIM118
    return shapes


def refuse_other_models(staged: dict[str, torch.Tensor], shapes: dict[str, tuple[int, ...]]) -> None:
    """Compare with the checkpoint that the server started from.

    Raises:
        ValueError: a parameter is missing or of another shape.
    """
    wrong = [name for name, shape in shapes.items() if name not in staged or staged[name].shape != shape]
    if wrong:
        raise ValueError(
            f"these are weights of another model: {wrong[:3]} of {len(wrong)} parameters are missing or "
            "differ in shape"
        )


WeightTransferEngineFactory.register_engine(BACKEND, SafetensorsTransfer)
end_with_launcher()
