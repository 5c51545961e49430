"""A device's ceilings: the rates of a matrix product and of a copy in its memory, to divide other figures by.

    python -m benchmarks.ceilings [--device cuda] [--dtype bfloat16] [--size 8192] [--gib 1]

The product multiplies two square matrices (2 n^3 operations); the copy reads and writes ``--gib`` GiB each.
Each runs a few times unmeasured, then as often as fits into ``--seconds``. The program waits only at the end,
as a device computes while its program continues.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import torch

from benchmarks.device import device_name, finish

WARM_UP = 3


def per_second(work: Callable[[], object], device: torch.device, seconds: float) -> float:
    """How often per second the device does the work."""
    for _ in range(WARM_UP):
        work()
    finish(device)
    begun = time.perf_counter()
    work()
    finish(device)
    times = max(1, int(seconds / (time.perf_counter() - begun)))
    begun = time.perf_counter()
    for _ in range(times):
        work()
    finish(device)
    return times / (time.perf_counter() - begun)


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="bfloat16")
    parser.add_argument("--size", type=int, default=8192, help="rows and columns of a matrix")
    parser.add_argument("--gib", type=float, default=1.0, help="what is copied")
    parser.add_argument("--seconds", type=float, default=5.0, help="for each of the two")
    chosen = parser.parse_args()
    device = torch.device(chosen.device)
    dtype: torch.dtype = getattr(torch, chosen.dtype)
    left, right = (torch.randn(chosen.size, chosen.size, device=device).to(dtype) for _ in range(2))
    product = torch.empty_like(left)
    source = torch.zeros(int(chosen.gib * 2**30), dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    products = per_second(lambda: torch.mm(left, right, out=product), device, chosen.seconds)
    copies = per_second(lambda: target.copy_(source), device, chosen.seconds)
    found = {
        "device": device_name(device),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "threads": torch.get_num_threads() if device.type == "cpu" else None,
        "dtype": chosen.dtype,
        "size": chosen.size,
        "teraflops": round(products * 2 * chosen.size**3 / 1e12, 3),
        "copied_gib": chosen.gib,
        "gigabytes_per_second": round(copies * 2 * source.numel() / 1e9, 1),
    }
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
