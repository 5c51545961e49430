"""One GRPO optimizer step against TRL's, on the same model, prompts, completions and tokens.

    python -m benchmarks.grpo_step [--model default|3m|smollm2] [--steps 6]
    python -m benchmarks.grpo_step --model smollm2 --device cuda --dtype bfloat16 --groups 16 --teraflops 700

Both sides sample completions of exactly 32 tokens after prompts of about 200 tokens, in groups of 8 that
share a prompt, and make one optimizer step on them: float32, one thread, no KL term, temperature 1, AdamW,
the same learning rate; 64 completions, or 8 with SmolLM2-135M. The reward is a number computed from a
completion's tokens, so that every group has advantages and no group is skipped. Ours samples with the local
engine and trains with DeepSpeed (ZeRO 1, one process); TRL's is ``GRPOTrainer`` with ``use_cpu=True`` and
otherwise its defaults. The two take turns, each in its own processes. Times are processor seconds, which
equal wall-clock seconds on a quiet machine and exclude waiting on a busy one. The results are the ratios of
their medians per step and per update (the step without sampling and rewards), the tokens per second of an
update (prompts counted once per completion on both sides), and the peak memory of each side's process, beside
the estimate of ``--dry-run`` for ours.

On a GPU, times are wall-clock seconds, and memory is that of tensors there. In bfloat16 both sides keep
float32 weights: ours in DeepSpeed's optimizer (``zero1_bf16``), TRL's in the model, which computes under
autocast. ``--teraflops`` is the ceiling that ``benchmarks.ceilings`` measured there; the result then has the
share of it that six operations per parameter and useful token of an update amount to, where a shared prompt
counts once.

``python -m benchmarks.grpo_step.episodes`` compares a whole training step over episodes of several steps.
``--sides`` measures some sides only, and the result then has no ratios; without TRL, name ``skillpress``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path

import torch

from benchmarks.device import add_options, most_held
from benchmarks.grpo_step.comparison import SIDES, TURNS, WARM_UP, Runs, compare
from benchmarks.grpo_step.setting import SETTINGS, Place


def main() -> None:
    """Print the comparison as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", choices=[*SETTINGS], default="default")
    parser.add_argument(
        "--steps", type=int, default=6, help=f"steps per process; the first {WARM_UP} warm up"
    )
    parser.add_argument("--sides", nargs="+", choices=[*SIDES], default=[*SIDES])
    parser.add_argument("--turns", type=int, default=TURNS, help="processes per side")
    parser.add_argument("--side", choices=[*SIDES], help="what each of the processes measures")
    parser.add_argument("--folder", type=Path, help="the model of a process")
    parser.add_argument(
        "--groups", type=int, help="groups of 8 completions, instead of the model's own number"
    )
    parser.add_argument("--teraflops", type=float, help="the device's, as benchmarks.ceilings measured it")
    add_options(parser)
    chosen = parser.parse_args()
    place = Place(torch.device(chosen.device), chosen.dtype)
    setting = SETTINGS[chosen.model]
    setting = replace(setting, groups=chosen.groups or setting.groups)
    os.environ["OMP_NUM_THREADS"] = "1"  # accelerate takes two threads by default
    if place.device.type == "cpu":
        os.environ["DS_ACCELERATOR"] = "cpu"  # DeepSpeed would say on stdout that it finds no GPU
    torch.set_num_threads(1)
    if chosen.side:
        timed = SIDES[chosen.side](setting, chosen.folder, chosen.steps, place)
        print(json.dumps({**asdict(timed), "peak_bytes": most_held(place.device)}))
        return
    runs = Runs(tuple(chosen.sides), chosen.steps, chosen.turns)
    names = (*(["trl"] if "trl" in chosen.sides else []), "transformers", "torch")
    print(json.dumps({
        **compare(chosen.model, setting, runs, place, chosen.teraflops),
        "versions": {name: version(name) for name in names},
        "machine": {"python": platform.python_version(), "load": os.getloadavg()[0]},
    }, indent=2))  # fmt: skip


if __name__ == "__main__":
    main()
