"""The draw of tokens by itself, in three forms that give the same tokens.

    python -m benchmarks.gpu.draw [--sizes 128x151936 1024x49152] [--device cuda --dtype bfloat16]

    engine      as the local engine makes it: a kernel on a GPU, a loop on a CPU
    eager       by arrays of noise, operation by operation
    compiled    the same arrays in one function that torch compiles

Microseconds for one token of all rows, temperature 1, and how many tokens equal those of ``eager``. Prints
JSON.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from benchmarks.ceilings import per_second
from benchmarks.device import add_options, device_name
from skillpress.core.engine import Sampling
from skillpress.models.engines.gumbel_max import as_tensor, by_definition, first_of_race, gumbel
from skillpress.models.engines.sampler import drawn_from

SAMPLING = Sampling(temperature=1.0)


def in_one(logits: torch.Tensor, streams: torch.Tensor) -> torch.Tensor:
    """The draw of all rows without parts."""
    return (drawn_from(logits, SAMPLING) + gumbel(streams, logits.shape[1])).argmax(dim=-1)


def measure(rows: int, vocabulary: int, device: torch.device, chosen: argparse.Namespace) -> dict[str, Any]:
    """Microseconds of the forms."""
    dtype: torch.dtype = getattr(torch, chosen.dtype)
    logits = torch.randn(rows, vocabulary, device=device, dtype=dtype)
    streams = np.random.default_rng(0).integers(0, 2**64, rows, dtype=np.uint64)
    compiled = torch.compile(in_one, backend=chosen.backend)
    forms: dict[str, Callable[[], torch.Tensor]] = {
        "engine": lambda: first_of_race(drawn_from(logits, SAMPLING), streams),
        "eager": lambda: by_definition(drawn_from(logits, SAMPLING), streams),
        "compiled": partial(compiled, logits, as_tensor(streams, device)),
    }
    expected = forms["eager"]()
    found: dict[str, Any] = {"rows": rows, "vocabulary": vocabulary, "microseconds": {}, "same_tokens": {}}
    for name, form in forms.items():
        found["microseconds"][name] = round(1e6 / per_second(form, device, chosen.seconds), 1)
        found["same_tokens"][name] = int((form() == expected).sum())
    return found


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sizes", nargs="+", default=["128x151936", "1024x49152"], help="rows x vocabulary")
    parser.add_argument("--seconds", type=float, default=5.0, help="for each form and size")
    parser.add_argument("--backend", default="inductor", help="of torch.compile")
    add_options(parser)
    chosen = parser.parse_args()
    device = torch.device(chosen.device)
    sizes = [tuple(map(int, size.split("x"))) for size in chosen.sizes]
    found = [measure(rows, vocabulary, device, chosen) for rows, vocabulary in sizes]
    said = (
        f"{each['rows']} x {each['vocabulary']}: "
        + ", ".join(f"{name} {value} us" for name, value in each["microseconds"].items())
        for each in found
    )
    print(json.dumps({
        "summary": "; ".join(said),
        "sizes": found,
        "setting": {**vars(chosen), "device": device_name(device), "torch": torch.__version__},
    }, indent=2))  # fmt: skip


if __name__ == "__main__":
    main()
