"""The receiving side of a weight update: vLLM servers load this module to fetch weights over HTTP.

The whole file is staged first and compared with the served model; only then does vLLM's reload begin, in one
go. So a transfer that is interrupted, or that brings another model's weights, leaves the server sampling as
before. (vLLM's own transfers put the model into reload first; a failure then leaves it without weights.)

This module runs in vLLM's worker processes, in which skillpress need not be installed: it imports only torch,
safetensors, vLLM and the standard library. Importing it registers the transfer, which is then selected by
``--weight-transfer-config '{"backend": "safetensors"}'``.
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
    """Empty: every update brings its own address."""


@dataclass
class WeightsAt(WeightTransferUpdateInfo):
    """The address of one update."""

    url: str
    """URL of a safetensors file with every parameter of the model's checkpoint, including a tied head."""
    seconds: float
    """How long the server that offers the file may be silent."""


class SafetensorsTransfer(WeightTransferEngine[NothingToAgreeOn, WeightsAt]):
    """Fetches, compares, then applies."""

    init_info_cls = NothingToAgreeOn
    update_info_cls = WeightsAt

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._staged: dict[str, torch.Tensor] = {}
        self._shapes = checkpoint_shapes(Path(self.model_config.model))

    def init_transfer_engine(self, init_info: NothingToAgreeOn) -> None:
        """Do nothing."""

    def start_weight_update(self) -> None:
        """Clear the staged weights. The model is not touched before the whole file has arrived."""
        self._staged.clear()

    def update_weights(self, update_info: dict[str, Any]) -> None:
        """Fetch and compare. The base class would wait for an accelerator even if there is none."""
        self.receive_weights(self.parse_update_info(update_info))

    def receive_weights(self, update_info: WeightsAt) -> None:
        """Stage the file; ``OSError`` if it cannot be fetched, ``ValueError`` for another model's."""
        opener = build_opener(ProxyHandler({}))
        with opener.open(update_info.url, timeout=update_info.seconds) as answer:
            staged = load(answer.read())
        refuse_other_models(staged, self._shapes)
        self._staged = staged

    def finish_weight_update(self) -> None:
        """Sample from the staged weights from now on."""
        if not self._staged:
            raise ValueError("no weights were staged")
        with torch.device(self.device):
            initialize_layerwise_reload(self.model)
            self.model.load_weights(iter(self._staged.items()))
            finalize_layerwise_reload(self.model, self.model_config)
        self._staged = {}

    def shutdown(self) -> None:
        """Do nothing: no resources are held."""


class WorkerExtension:
    """vLLM mixes this class into its worker, which thereby imports the transfer above."""

    model_config: Any
    """The worker's own configuration."""

    def served_dtype(self) -> str:
        """The model's type, named as in ``policy.dtype``; it is called through ``/collective_rpc``."""
        return str(self.model_config.dtype).removeprefix("torch.")


def checkpoint_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """Maps parameter names to shapes in a model folder; empty if the model is not a local folder."""
    shapes: dict[str, tuple[int, ...]] = {}
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, framework="pt") as stored:
            shapes |= {name: tuple(stored.get_slice(name).get_shape()) for name in stored.keys()}  # noqa: SIM118
    return shapes


def refuse_other_models(staged: dict[str, torch.Tensor], shapes: dict[str, tuple[int, ...]]) -> None:
    """Raise ``ValueError`` if a parameter of the checkpoint is missing or has another shape."""
    wrong = [name for name, shape in shapes.items() if name not in staged or staged[name].shape != shape]
    if wrong:
        raise ValueError(
            f"these are weights of another model: {wrong[:3]} of {len(wrong)} parameters are missing or "
            "differ in shape"
        )


WeightTransferEngineFactory.register_engine(BACKEND, SafetensorsTransfer)
end_with_launcher()
