"""Weights of 4 bits: rounding is exact to pack, and a packed model is trained by LoRA as a rounded one is."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from skillpress.core.errors import PolicyError
from skillpress.models.policy.lora import LoraAdapter
from tests.support.models.families import family

pytest.importorskip("bitsandbytes", reason="pip install --no-deps bitsandbytes")

from skillpress.models.policy.nf4 import BLOCK, is_packed, pack_layers, round_to_nf4, unpacked

TOKENS = torch.tensor([[3, 14, 15, 9, 26, 5]])
NF4 = [
    -1.0, -0.6961928, -0.5250731, -0.3949175, -0.2844414, -0.1847734, -0.0910500, 0.0,
    0.0795803, 0.1609302, 0.2461123, 0.3379152, 0.4407098, 0.5626170, 0.7229568, 1.0,
]  # fmt: skip
"""The 16 values of the type, as printed in the paper's Appendix E."""


def model_of(dtype: torch.dtype = torch.float32) -> Any:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=60, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, eos_token_id=1,
    )  # fmt: skip
    return torch.nn.Module.to(LlamaForCausalLM(config), dtype).eval()


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = model(TOKENS).logits
    return found


def linear_weights(model: Any) -> dict[str, torch.Tensor]:
    return {name: weight for name, weight in model.state_dict().items() if "_proj" in name}


def test_weights_are_rounded_to_the_nearest_of_sixteen_multiples_of_their_blocks_largest() -> None:
    model, before = model_of(), model_of()
    round_to_nf4(model)
    levels = torch.tensor(NF4)
    for name, weight in linear_weights(before).items():
        blocks = weight.reshape(-1, BLOCK)
        scale = blocks.abs().amax(1, keepdim=True)
        nearest = levels[((blocks / scale)[..., None] - levels).abs().argmin(-1)] * scale
        torch.testing.assert_close(linear_weights(model)[name], nearest.view_as(weight), atol=1e-6, rtol=1e-5)
    others = before.state_dict().keys() - linear_weights(before).keys()
    assert all(torch.equal(before.state_dict()[name], model.state_dict()[name]) for name in others)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_packing_rounded_weights_loses_nothing_not_even_where_a_block_is_zero(dtype: torch.dtype) -> None:
    model = model_of(dtype)
    model.model.layers[0].self_attn.q_proj.weight.data[5] = 0
    round_to_nf4(model)
    packed = copy.deepcopy(model)
    pack_layers(packed)
    for name, weight in linear_weights(model).items():
        layer = packed.get_submodule(name.removesuffix(".weight"))
        assert is_packed(layer) and layer.weight.numel() * 2 == weight.numel(), "two weights a byte"
        assert torch.equal(unpacked(layer.weight), weight)
    atol = 1e-5 if dtype == torch.float32 else 0.05
    torch.testing.assert_close(logits(packed), logits(model), atol=atol, rtol=0.02)


def test_low_rank_changes_of_packed_weights_learn_as_those_of_rounded_ones() -> None:
    """The same gradients, and the same merged weights after a step."""
    gradients, merged = list[dict[str, torch.Tensor]](), list[dict[str, torch.Tensor]]()
    for packed in (False, True):
        model = model_of()
        round_to_nf4(model)
        adapter = LoraAdapter(model, 2, 8, seed=0, packed=packed)
        moved = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
        assert all("lora_" in name for name in moved) and len(moved) == 2 * 2 * 7
        logits(model)  # a pass without gradients must not repack the weights
        optimizer = torch.optim.SGD(moved.values(), lr=10.0)
        for _ in range(2):
            optimizer.zero_grad()
            torch.log_softmax(model(TOKENS).logits, -1)[0, :, 7].mean().neg().backward()
            optimizer.step()
        gradients.append({name: weight.grad for name, weight in moved.items() if weight.grad is not None})
        merged.append(adapter.merged(torch.Tensor.detach))
        plain = model_of()
        plain.load_state_dict(merged[-1])
        torch.testing.assert_close(logits(plain), logits(model), atol=1e-5, rtol=1e-4)
    assert any(float(gradient.abs().max()) > 1e-4 for gradient in gradients[0].values())
    for found in (gradients, merged):
        assert found[0].keys() == found[1].keys()
        for name, expected in found[0].items():
            torch.testing.assert_close(found[1][name], expected, atol=1e-6, rtol=1e-4)


def test_a_layer_whose_rows_do_not_fill_blocks_is_refused() -> None:
    with pytest.raises(PolicyError, match=r"policy\.quantised: is nf4, but model\.layers\.0.* rows of 16;"):
        round_to_nf4(family("Llama"))
