"""LoRA (Hu et al. 2021) trains low-rank changes of the linear layers; the weights stay as they are.

A layer of weight W [out, in] computes (W + alpha/r B A) x. A [r, in] starts at random and B [out, r] at
zero, so training starts at the start policy exactly. Gradients, moments and float32 masters are those of
A and B alone; and the start policy, which a KL term pulls towards, is the same model with its changes
switched off.

All linear layers are changed except the output embeddings. Many models share those with the input embeddings,
and if they had their own change, all logits would be in memory at once (``policy/token_scores.py``). Of the
embeddings only the rows of new tokens are trained, if there are such tokens (``policy/trained_rows.py``).

Engines and the saved policy receive W + alpha/r B A under the model's own names, computed from W every time,
so that no rounding accumulates. The package ``peft`` inserts the layers; the extra ``lora`` installs it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from skillpress.core.seeds import derive
from skillpress.core.storage import read_json, write_json
from skillpress.models.policy.nf4 import is_packed, pack_layers, unpacked
from skillpress.models.policy.policy import ADAPTER
from skillpress.models.policy.precision import round_at_random
from skillpress.models.policy.trained_rows import PARAMETER, TrainedRows

Whole = Callable[[torch.Tensor], torch.Tensor]
"""Returns the full current weight, even if each rank holds a part. All ranks call it in the same order."""

NAME = "default"
"""Name of the adapter within the model; it is in no file."""
START = "start"
"""Name of a frozen adapter: with it the model is the start policy."""

_PREFIX, _ROWS = "base_model.model.", "token_adapter.trainable_tokens_delta"
"""Parts of the names that ``peft`` gives to tensors in a file."""


@dataclass(frozen=True)
class SavedAdapter:
    """An adapter in the form that ``peft`` and vLLM load."""

    configuration: dict[str, Any]
    tensors: dict[str, torch.Tensor]

    @classmethod
    def beside(cls, model: Path) -> SavedAdapter | None:
        """The adapter in a model folder; None if it has none."""
        folder = model / ADAPTER
        if not folder.exists():
            return None
        tensors = load_file(folder / "adapter_model.safetensors")
        return cls(read_json(folder / "adapter_config.json"), tensors)

    def save(self, folder: Path) -> None:
        """Write adapter_config.json and adapter_model.safetensors."""
        folder.mkdir()
        write_json(folder / "adapter_config.json", self.configuration)
        save_file(self.tensors, folder / "adapter_model.safetensors", metadata={"format": "pt"})


class LoraAdapter:
    """The changes within a model; the model stays an object of its class."""

    def __init__(
        self,
        model: PreTrainedModel,
        rank: int,
        alpha: int,
        seed: int,
        rows: Sequence[int] = (),
        start: SavedAdapter | None = None,
        packed: bool = False,
    ) -> None:
        """Insert the changes; from now on only they have gradients.

        Args:
            seed: the seed of A, and of the rounding of bfloat16 weights.
            rows: tokens whose rows of the embeddings are trained too, such as those of ``domain_tokens``.
            start: the adapter to continue from, of the same rank; None starts without changes.
            packed: whether the model's weights, which were rounded to 4 bits, are held in 4 bits.
        """
        import peft
        from peft.tuners.lora import LoraLayer

        self._model, self._seed = model, seed
        self._configuration = peft.LoraConfig(
            task_type=peft.TaskType.CAUSAL_LM,
            base_model_name_or_path=model.name_or_path,
            r=rank,
            lora_alpha=alpha,
            target_modules="all-linear",
            fan_in_fan_out=any(isinstance(module, Conv1D) for module in model.modules()),
        )
        # ``peft`` draws A from the global generator, whose state must not change for other code.
        dtype = model.dtype
        with torch.random.fork_rng(devices=[]), _packed(model) if packed else nullcontext():
            torch.manual_seed(seed)
            for name in (NAME,) if start is None else (START, NAME):
                with warnings.catch_warnings():
                    warnings.filterwarnings("ignore", "Already found a `peft_config`")  # two are wanted
                    peft.inject_adapter_in_model(self._configuration, model, name)
        self._layers: dict[str, Any] = {
            name: module for name, module in model.named_modules() if isinstance(module, LoraLayer)
        }
        for layer in self._layers.values():
            layer.lora_A.to(dtype)  # beside packed weights, whose own type is uint8, it is float32
            layer.lora_B.to(dtype)
        self._goes_on = start is not None
        if start is not None:
            self._take(start)
        self._rows = TrainedRows(model, rows) if rows else None

    def _take(self, start: SavedAdapter) -> None:
        """Start with these changes, and keep a frozen copy of them. The tables keep that of the rows."""
        with torch.no_grad():
            for name, layer in self._layers.items():
                for factor, linears in (("lora_A", layer.lora_A), ("lora_B", layer.lora_B)):
                    for linear in (linears[START], linears[NAME]):
                        linear.weight.copy_(start.tensors[f"{_PREFIX}{name}.{factor}.weight"])
                    linears[START].weight.requires_grad_(False)
                    linears[NAME].weight.requires_grad_(True)
            for name, ids in (start.configuration.get("trainable_token_indices") or {}).items():
                table = self._model.get_submodule(name).weight
                assert isinstance(table, torch.Tensor)
                table[ids] = start.tensors[f"{_PREFIX}{name}.{_ROWS}"].to(table)
        self._use(NAME)

    def _use(self, name: str) -> None:
        for layer in self._layers.values():
            # ``set_adapter`` would also change which weights have gradients, which DeepSpeed has hooks on.
            layer._active_adapter = [name]

    @contextmanager
    def switched_off(self) -> Iterator[None]:
        """The model is the start policy within the block. Passes still visit the same modules, unless the
        adapter continues another one."""
        for layer in self._layers.values():
            layer.set_scale(NAME, 0.0)
        if self._goes_on:
            self._use(START)
        try:
            with nullcontext() if self._rows is None else self._rows.switched_off():
                yield
        finally:
            self._use(NAME)
            for layer in self._layers.values():
                layer.set_scale(NAME, 1.0)

    def merged(self, whole: Whole) -> dict[str, torch.Tensor]:
        """The model's weights with the changes added, under the names that they had before."""
        weights = {}
        tables = {} if self._rows is None else self._rows.merged(whole)
        for name, value in self._model.state_dict(keep_vars=True).items():
            layer, _, own = name.rpartition(".base_layer.")
            if layer and own == "weight":
                weights[f"{layer}.weight"] = self._changed(layer, whole)
            elif own.startswith("weight."):  # scales of packed weights
                continue
            elif layer:
                weights[f"{layer}.{own}"] = whole(value)
            elif name.rpartition(".")[2] != PARAMETER and name.rpartition(".lora_")[0] not in self._layers:
                # Tensors are keys by identity, so tied names find the same table.
                weights[name] = tables[value] if value in tables else whole(value)
        return weights

    def saved(self, whole: Whole) -> SavedAdapter:
        """Only the changes, which can be loaded over the weights into which they were inserted."""
        configuration: dict[str, Any] = self._configuration.to_dict()
        for key, value in configuration.items():
            if isinstance(value, set):  # a set's order differs from process to process
                configuration[key] = sorted(value)
        tensors = {}
        for name, layer in self._layers.items():
            for factor, linear in (("lora_A", layer.lora_A[NAME]), ("lora_B", layer.lora_B[NAME])):
                tensors[f"{_PREFIX}{name}.{factor}.weight"] = whole(linear.weight).contiguous()
        if self._rows is not None:
            ids = self._rows.ids.tolist()
            configuration["trainable_token_indices"] = dict.fromkeys(self._rows.tables, ids)
            for name, rows in self._rows.tables.items():
                tensors[f"{_PREFIX}{name}.{_ROWS}"] = whole(rows)
        return SavedAdapter({**configuration, "inference_mode": True}, tensors)

    def _changed(self, name: str, whole: Whole) -> torch.Tensor:
        """W + alpha/r B A of a layer in the type of W, computed in float32."""
        layer = self._layers[name]
        base = layer.get_base_layer()
        change = whole(layer.lora_B[NAME].weight).float() @ whole(layer.lora_A[NAME].weight).float()
        if isinstance(base, Conv1D):  # GPT-2 keeps W [in, out]
            change = change.T
        weight = unpacked(base.weight) if is_packed(base) else whole(base.weight)
        changed = torch.add(weight.float(), change, alpha=layer.scaling[NAME])
        if weight.dtype == torch.float32:
            return changed
        # In bfloat16 most changes are smaller than the last bit of W. Rounded to the nearest, the sum would
        # stay W for many steps and the engine would keep playing the start policy. The seed is the same at
        # every step, so small changes add up.
        return round_at_random(changed, derive(self._seed, "rounding", name))


@contextmanager
def _packed(model: PreTrainedModel) -> Iterator[None]:
    """Pack the model's layers. Within the block ``peft`` treats them as packed."""
    pack_layers(model)
    # ``peft`` reads this attribute of the model.
    setattr(model, "is_loaded_in_4bit", True)  # noqa: B010
    try:
        yield
    finally:
        delattr(model, "is_loaded_in_4bit")
