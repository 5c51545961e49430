"""Times training steps of SmolLM2 at any revision of this repository: ``training_side.py OVERLAY FOLDER``.

It is run by its path, with another revision's clone as PYTHONPATH and working directory. So it imports
nothing of today's repository, and names only what revisions since 4329270 have: ``benchmarks.lag`` of the
clone knows where that revision's parameters and jobs are. FOLDER has the tasks and the start policy.

Every second sample gets the advantage 1 and the others -1, since an untrained model wins nothing and a step
without advantages would learn from none of them. Everything else is the training itself. It prints processor
seconds of each step and of its parts, tokens, and the peak memory as JSON.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

SECONDS: dict[str, float] = defaultdict(float)
"""Processor seconds of each part within the current step."""
BEGAN: list[float] = []
"""When each step began: the first with the first part of it, the others when the last one was over."""
PARTS = {
    "rollout": ("GroupCollector", "__call__"),
    "comparison": ("MismatchCheck", "__call__"),
    "reference": ("Learner", "prepare"),
    "update": ("Learner", "update"),
}
"""Part of a step to the method of ``training_job`` that does it; a comparison without a pass is within an
update."""
EARLIER = {"prepare": "with_reference"}
"""Method to its name in earlier revisions."""
CHECK = ("Learner", "_compare")
"""Done once per process, before the first update, and not counted in any part."""


def timed(kind: type, method: str, part: str) -> None:
    """Make a method add its processor seconds to a part."""
    if not hasattr(kind, method):
        method = EARLIER[method]
    original = getattr(kind, method)

    def call(*arguments: Any, **named: Any) -> Any:
        started = time.process_time()
        if not BEGAN:
            BEGAN.append(started)
        try:
            return original(*arguments, **named)
        finally:
            SECONDS[part] += time.process_time() - started

    setattr(kind, method, call)


def alternating(algorithm: Any, batch: Any, add: Any) -> Any:
    """[steps] advantages 1 and -1 in turn."""
    return np.where(np.arange(int(batch.length.sum())) % 2 == 0, 1.0, -1.0)


def main() -> None:
    overlay, folder = Path(sys.argv[1]), Path(sys.argv[2])
    torch.set_num_threads(1)
    lag: Any = import_module("benchmarks.lag")
    job: Any = import_module("skillpress.experiment.training_job")
    ranks: Any = import_module("skillpress.experiment.training")
    for part, (kind, method) in {**PARTS, "check": CHECK}.items():
        timed(getattr(job, kind), method, part)
    params = lag.load_params(Path("params.yaml"), overlay)
    type(params.algorithm).advantages = alternating
    steps: list[dict[str, float]] = []

    def report(told: tuple[int, dict[str, float]]) -> None:
        now, (_, metrics) = time.process_time(), told
        check = SECONDS.pop("check", 0.0)
        SECONDS["update"] -= check
        steps.append({"step": now - BEGAN[-1] - check, **SECONDS, "tokens": metrics["tokens_trained"]})
        SECONDS.clear()
        BEGAN.append(time.process_time())
        print(json.dumps(steps[-1]), file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(dir=folder) as name:
        job.train_rank(lag.job_in(Path(name), params, folder), job.Ranks(), ranks.free_port(), report)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"steps": steps, "peak_bytes": peak, "load": os.getloadavg()[0]}))


if __name__ == "__main__":
    main()
