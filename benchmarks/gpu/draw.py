"""The draw of tokens by itself: as the local engine makes it, by its definition, and compiled.

    python -m benchmarks.gpu.draw [--sizes 128x151936 1024x49152] [--device cuda --dtype bfloat16]

Microseconds for one token of all rows, temperature 1; and how many tokens of the engine's and of the compiled
draw are the definition's. The engine draws by a kernel or loop (``gumbel_max.py``), the definition by arrays.
The compiled form is one function over logits and streams, which torch compiles to Triton on a GPU. It
prints JSON.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.ceilings import per_second
from benchmarks.device import add_options, device_name
from skillpress.core.engine import Sampling
from skillpress.models.engines.gumbel_max import by_definition, gumbel
from skillpress.models.engines.sampler import draw, drawn_from, streams_of

SAMPLING = Sampling(temperature=1.0)


def in_one(logits: torch.Tensor, streams: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The draw of all rows without parts."""
    logprobs = drawn_from(logits, SAMPLING)
    tokens = (logprobs + gumbel(streams, logits.shape[1])).argmax(dim=-1)
    return tokens, logprobs.gather(1, tokens[:, None]).squeeze(1)


def as_defined(logits: torch.Tensor, streams: NDArray[np.uint64]) -> torch.Tensor:
    """The tokens of the definition."""
    return by_definition(drawn_from(logits, SAMPLING), streams)


def measure(rows: int, vocabulary: int, device: torch.device, chosen: argparse.Namespace) -> dict[str, Any]:
    """Microseconds of all forms."""
    dtype: torch.dtype = getattr(torch, chosen.dtype)
    logits = torch.randn(rows, vocabulary, device=device, dtype=dtype)
    seeds = np.arange(rows, dtype=np.uint64)
    own = streams_of(seeds, 0)
    streams = torch.from_numpy(own.view(np.int64)).to(device)
    compiled = torch.compile(in_one, backend=chosen.backend)
    forms: dict[str, Callable[[], object]] = {
        "engine": partial(draw, logits, SAMPLING, seeds, 0),
        "definition": partial(as_defined, logits, own),
        "compiled": partial(compiled, logits, streams),
    }
    found: dict[str, Any] = {"rows": rows, "vocabulary": vocabulary}
    for name, form in forms.items():
        found[f"{name}_microseconds"] = round(1e6 / per_second(form, device, chosen.seconds), 1)
    expected = as_defined(logits, own)
    drawn = {"engine": draw(logits, SAMPLING, seeds, 0)[0], "compiled": compiled(logits, streams)[0]}
    return {**found, "same_tokens": {name: int((each == expected).sum()) for name, each in drawn.items()}}


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
        f"{each['rows']} x {each['vocabulary']}: {each['engine_microseconds']} us, by definition "
        f"{each['definition_microseconds']}, compiled {each['compiled_microseconds']}"
        for each in found
    )
    print(json.dumps({
        "summary": "; ".join(said),
        "sizes": found,
        "setting": {**vars(chosen), "device": device_name(device), "torch": torch.__version__},
    }, indent=2))  # fmt: skip


if __name__ == "__main__":
    main()
