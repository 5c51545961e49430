"""Linear layers by oneDNN compute what torch's compute."""

from itertools import product as combinations

import pytest
import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM

from skillpress.models.policy import linear_layers
from skillpress.models.policy.linear_layers import ROWS, Linear, gradient_of_weight, product, use_onednn


@pytest.fixture(autouse=True)
def any_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The products go through oneDNN on every processor, not only where it is faster."""
    if not torch.backends.mkldnn.is_available():
        pytest.skip("torch has no oneDNN here")
    monkeypatch.setattr(linear_layers, "mkl_is_slow", lambda: True)


@pytest.fixture
def products(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shapes of the first matrices that oneDNN multiplies."""
    made: list[tuple[int, ...]] = []
    inner = linear_layers._onednn

    def noted(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        made.append(tuple(rows.shape))
        return inner(rows, weight, bias)

    monkeypatch.setattr(linear_layers, "_onednn", noted)
    return made


def close(found: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("bias", "sizes"), combinations((True, False), ((8, 24), (24, 8))))
def test_the_result_and_every_gradient_are_those_of_torchs_layer(
    bias: bool, sizes: tuple[int, int], products: list[tuple[int, ...]]
) -> None:
    torch.manual_seed(0)
    theirs, ours = nn.Linear(*sizes, bias=bias), Linear(*sizes, bias=bias)
    ours.load_state_dict(theirs.state_dict())
    inputs = [torch.randn(2, ROWS, sizes[0]).requires_grad_() for _ in range(2)]
    inputs[1].data.copy_(inputs[0])
    slope = torch.randn(2, ROWS, sizes[1])
    for layer, rows in zip((theirs, ours), inputs, strict=True):
        layer(rows).backward(slope)
    close(ours(inputs[0]), theirs(inputs[0]))
    for one, other in zip((inputs[1], *ours.parameters()), (inputs[0], *theirs.parameters()), strict=True):
        assert one.grad is not None and other.grad is not None
        close(one.grad, other.grad)
    assert len(products) == 4, "forwards twice, and the gradients of the rows and of the weight"


def test_a_frozen_weight_gets_no_gradient_and_costs_no_product(products: list[tuple[int, ...]]) -> None:
    layer, rows = Linear(8, 8).requires_grad_(False), torch.randn(ROWS, 8, requires_grad=True)
    layer(rows).sum().backward()
    assert layer.weight.grad is None
    assert len(products) == 2


def test_few_rows_sampling_other_numbers_and_a_switched_off_onednn_stay_with_torch(
    products: list[tuple[int, ...]],
) -> None:
    layer = Linear(8, 8)
    layer(torch.randn(ROWS - 1, 8))
    with torch.inference_mode():
        layer(torch.randn(ROWS, 8))
    layer.bfloat16()(torch.randn(ROWS, 8, dtype=torch.bfloat16))
    layer.float()
    with torch.backends.mkldnn.flags(enabled=False):
        layer(torch.randn(ROWS, 8))
    assert not products


@pytest.mark.parametrize("columns", [3, 40])
def test_products_without_a_gradient_are_torchs(columns: int, products: list[tuple[int, ...]]) -> None:
    torch.manual_seed(0)
    rows, weight, slope = torch.randn(ROWS, 16), torch.randn(16, columns), torch.randn(ROWS, columns)
    close(product(rows, weight), rows @ weight)
    close(gradient_of_weight(slope, rows), slope.T @ rows)
    assert len(products) == 2


def test_a_models_layers_keep_their_names_and_weights() -> None:
    config = LlamaConfig(
        vocab_size=32, hidden_size=16, intermediate_size=32, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=2,
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval()
    before, ids = model.state_dict(), torch.arange(2 * ROWS).reshape(64, 32) % 32
    expected = model(ids).logits
    use_onednn(model)
    assert model.state_dict().keys() == before.keys()
    assert isinstance(model.lm_head, Linear)
    close(model(ids).logits, expected)


def test_models_of_other_processors_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_layers, "mkl_is_slow", lambda: False)
    model = nn.Sequential(nn.Linear(2, 2))
    use_onednn(model)  # type: ignore[arg-type]
    assert type(model[0]) is nn.Linear
