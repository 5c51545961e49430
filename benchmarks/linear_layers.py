"""Linear layers of float32 on one core: torch's own, by MKL, and ours, by oneDNN where MKL lacks AVX-512.

    python -m benchmarks.linear_layers [--repeats 30]

The layers are those of the default policy, by the rows of its training. A run computes the layer and both of
its gradients. Both kinds take turns, and each figure is the median ratio of their times: below 1, ours is
faster. The largest difference of their results is relative to the largest result.
"""

from __future__ import annotations

import argparse
import json
import time
from statistics import median

import torch
from torch import nn

from benchmarks.machine import setting
from skillpress.models.policy.linear_layers import Linear, mkl_is_slow

SHAPES = ((2000, 64, 192), (20000, 64, 64), (20000, 64, 192), (20000, 192, 64), (10000, 64, 1030))
"""Rows, width of the input, width of the output."""


def gradients(layer: nn.Linear, rows: torch.Tensor, slope: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The layer's result and the gradients of its rows and its weight."""
    made = layer(rows)
    return (made.detach(), *torch.autograd.grad(made, (rows, layer.weight), slope))


def compare(shape: tuple[int, int, int], repeats: int) -> dict[str, object]:
    """Ratio of times and largest relative difference for one shape."""
    count, width, out = shape
    torch.manual_seed(0)
    rows, slope = torch.randn(count, width, requires_grad=True), torch.randn(count, out)
    theirs = nn.Linear(width, out, bias=False)
    ours = Linear(width, out, bias=False)
    ours.load_state_dict(theirs.state_dict())
    pairs = zip(gradients(theirs, rows, slope), gradients(ours, rows, slope), strict=True)
    difference = max(float((a - b).abs().max() / a.abs().max()) for a, b in pairs)
    ratios = []
    for _ in range(repeats):
        seconds = []
        for layer in (theirs, ours):
            started = time.process_time()
            gradients(layer, rows, slope)
            seconds.append(time.process_time() - started)
        ratios.append(seconds[1] / seconds[0])
    return {"shape": shape, "ratio": round(median(ratios), 2), "largest_difference": difference}


def main() -> None:
    """Print the comparison as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=30)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    made = [compare(shape, chosen.repeats) for shape in SHAPES]
    print(json.dumps({**setting(chosen), "onednn_is_used": mkl_is_slow(), "layers": made}, indent=1))


if __name__ == "__main__":
    main()
