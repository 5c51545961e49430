"""The receiving side of a weight update: vLLM servers load this module to fetch weights over HTTP.

Everything is staged first, in memory of its own, and compared with the served model and with its digests;
only then does vLLM's reload begin, in one go. So a transfer that is interrupted or damaged, or that brings
another model's weights, leaves the server sampling as before. (vLLM's own transfers put the model into reload
first; a failure then leaves it without weights.)

This module runs in vLLM's worker processes, in which skillpress need not be installed: it imports only torch,
safetensors, vLLM and the standard library. Importing it registers the transfer, which is then selected by
``--weight-transfer-config '{"backend": "parts"}'``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from vllm.distributed.weight_transfer import WeightTransferEngineFactory
from vllm.distributed.weight_transfer.base import (
    WeightTransferEngine,
    WeightTransferInitInfo,
    WeightTransferUpdateInfo,
)
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload

from skillpress.models.engines.launcher import end_with_launcher
from skillpress.models.engines.link import Link
from skillpress.models.engines.parts import TensorPlace, TransferManifest, fetch, fetch_manifest

BACKEND = "parts"


@dataclass
class TransferGroup(WeightTransferInitInfo):
    """The group that the learner makes with this server's workers; a port of 0 asks for none."""

    host: str = ""
    port: int = 0
    size: int = 0
    """Number of its processes, the learner included."""
    device: str = ""
    """The kind of device on which the learner has the weights: ``cpu`` or ``cuda``."""
    seconds: float = 0.0
    """Seconds to wait for the learner."""


@dataclass
class WeightsAt(WeightTransferUpdateInfo):
    """The address of one update."""

    url: str
    """URL at which every parameter of the model's checkpoint is offered (``parts.py``), including a tied
    head."""
    seconds: float
    """Seconds for which the side that offers the weights may be silent."""
    collective: bool = False
    """Whether only the manifest is fetched there, and the parts are broadcast in the group (``link.py``)."""


class PartsTransfer(WeightTransferEngine[TransferGroup, WeightsAt]):
    """Fetches, compares, then applies."""

    init_info_cls = TransferGroup
    update_info_cls = WeightsAt

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._staged: dict[str, torch.Tensor] = {}
        self._shapes = checkpoint_shapes(Path(self.model_config.model))
        self._link: Link | None = None

    def init_transfer_engine(self, init_info: TransferGroup) -> None:
        """Join the learner's group, if it makes one; ``ValueError`` if its weights are on another device."""
        if not init_info.port:
            return
        self.shutdown()
        if self.device.type != init_info.device:
            raise ValueError(
                f"the learner's weights are on a device of kind {init_info.device}, but this worker's on "
                f"{self.device.type}: no collective connects them"
            )
        parallel = self.parallel_config
        rank = 1 + parallel.data_parallel_index * parallel.world_size + parallel.rank
        self._link = Link.to(
            init_info.host,
            init_info.port,
            rank=rank,
            size=init_info.size,
            device=self.device,
            seconds=init_info.seconds,
        )

    def start_weight_update(self) -> None:
        """Clear the staged weights. The model is not touched before everything has arrived."""
        self._staged.clear()

    def update_weights(self, update_info: dict[str, Any]) -> None:
        """Fetch and compare. The base class would wait for an accelerator even if there is none."""
        self.receive_weights(self.parse_update_info(update_info))

    def receive_weights(self, update_info: WeightsAt) -> None:
        """Stage the weights; ``OSError`` if they cannot be fetched, ``ValueError`` for another model's."""

        def accept(manifest: TransferManifest) -> None:
            refuse_other_models(manifest.places, self._shapes)

        if not update_info.collective:
            self._staged = fetch(update_info.url, update_info.seconds, accept)
            return
        if self._link is None:
            raise ValueError("this worker does not belong to a group with the learner")
        manifest = fetch_manifest(update_info.url, update_info.seconds)
        accept(manifest)
        self._link.patience = update_info.seconds
        try:
            self._staged = self._link.receive(manifest)
        except (OSError, ValueError):
            self.shutdown()  # the learner then notices at once that this worker has left
            raise

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
        """Leave the group."""
        if self._link is not None:
            self._link.end()
            self._link = None


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


def refuse_other_models(offered: Mapping[str, TensorPlace], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise ``ValueError`` if a parameter of the checkpoint is missing or has another shape."""
    wrong = [name for name, shape in shapes.items() if name not in offered or offered[name].shape != shape]
    if wrong:
        raise ValueError(
            f"the weights are another model's: {wrong[:3]} of {len(wrong)} parameters are missing or "
            "differ in shape"
        )


WeightTransferEngineFactory.register_engine(BACKEND, PartsTransfer)
end_with_launcher()
