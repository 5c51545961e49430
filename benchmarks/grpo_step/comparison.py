"""Both sides in turn, each in its own processes, and the ratios of their medians.

The processes are separate because DeepSpeed's process group would make TRL's trainer a distributed one.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.device import device_name
from benchmarks.grpo_step.ours import estimated_bytes, time_ours
from benchmarks.grpo_step.setting import GROUP, RESPONSE, Place, Setting, Timed, make_policy, make_prompts
from skillpress.models.policy import Policy, save_policy


def _time_trl(setting: Setting, folder: Path, steps: int, place: Place) -> Timed:
    from benchmarks.grpo_step.trl_side import time_trl  # our side runs without TRL, too

    return time_trl(setting, folder, steps, place)


SIDES = {"skillpress": time_ours, "trl": _time_trl}
TURNS = 2
"""Processes per side."""
WARM_UP = 1
"""Steps of each process that do not count: the first step creates the optimizer's state."""


@dataclass(frozen=True)
class Runs:
    """How often each side runs."""

    sides: tuple[str, ...]
    steps: int
    """Steps per process."""
    turns: int
    """Processes per side."""


@dataclass
class Side:
    """The measurements of one side's processes; seconds are those of ``Place.now``."""

    step: list[float] = field(default_factory=list)
    update: list[float] = field(default_factory=list)
    peak_bytes: int = 0

    def take(self, found: dict[str, Any]) -> None:
        """Add the output of one process."""
        self.step += found["step"][WARM_UP:]
        self.update += found["update"][WARM_UP:]
        self.peak_bytes = max(self.peak_bytes, found["peak_bytes"])


def compare(
    model: str, setting: Setting, runs: Runs, place: Place, teraflops: float | None
) -> dict[str, Any]:
    """The comparison in its printed form.

    Args:
        model: the setting's name.
        teraflops: the device's ceiling; None leaves its share out.
    """
    policy = make_policy(setting)
    sides = _measure(policy, model, setting, runs, place)
    (prompt, *_) = policy.encode(make_prompts(setting, 1))
    tokens = setting.completions * (len(prompt) + RESPONSE)
    step = {name: statistics.median(side.step) for name, side in sides.items()}
    update = {name: statistics.median(side.update) for name, side in sides.items()}
    # A completion's last token is not read, and a shared prompt is useful once, however often it is computed.
    useful = setting.groups * len(prompt) + setting.completions * (RESPONSE - 1)
    work = 6 * policy.parameters * useful
    ceiling = None if teraflops is None else {name: work / update[name] / teraflops / 1e12 for name in sides}
    return {
        "model": model,
        "parameters": policy.parameters,
        "steps": min(len(side.step) for side in sides.values()),
        "seconds_per_step": step,
        "trl_over_skillpress": _ratio(step),
        "seconds_per_update": update,
        "update_tokens_per_second": {name: tokens / update[name] for name in sides},
        "trl_over_skillpress_update": _ratio(update),
        "update_share_of_ceiling": ceiling,
        "peak_bytes": {name: side.peak_bytes for name, side in sides.items()},
        "estimated_bytes": estimated_bytes(policy, setting, len(prompt), place),
        "setting": {
            "completions": setting.completions,
            "tokens": RESPONSE,
            "prompt": len(prompt),
            "group": GROUP,
            "device": device_name(place.device),
            "dtype": place.dtype,
            "threads": 1,
        },
    }


def _ratio(seconds: Mapping[str, float]) -> float | None:
    """TRL's seconds per second of ours; None if a side was not measured."""
    return seconds["trl"] / seconds["skillpress"] if seconds.keys() == SIDES.keys() else None


def _measure(policy: Policy, model: str, setting: Setting, runs: Runs, place: Place) -> dict[str, Side]:
    """Run the sides' processes in turn."""
    sides = {name: Side() for name in runs.sides}
    with tempfile.TemporaryDirectory() as folder:
        save_policy(policy, Path(folder) / "model")
        command = [sys.executable, "-m", "benchmarks.grpo_step", "--model", model]
        command += ["--steps", str(runs.steps)]
        command += ["--folder", str(Path(folder) / "model"), "--groups", str(setting.groups)]
        command += ["--device", str(place.device), "--dtype", place.dtype]
        for name in runs.sides * runs.turns:
            finished = subprocess.run(
                [*command, "--side", name], stdout=subprocess.PIPE, text=True, check=True, env=_seen(place)
            )
            sides[name].take(json.loads(finished.stdout.splitlines()[-1]))
    return sides


def _seen(place: Place) -> dict[str, str]:
    """The environment variables of a side: a process on a CPU must not see a GPU, which it would use
    otherwise."""
    return {**os.environ, **({"CUDA_VISIBLE_DEVICES": ""} if place.device.type == "cpu" else {})}
