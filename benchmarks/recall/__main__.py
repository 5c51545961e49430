"""Success in a corridor whose signs are needed at its end: with a window, a learned memory and a store.

    python -m benchmarks.recall [--seeds 0 1 2] [--steps 20] [--demonstrations 4000] [--folder FOLDER]

The world is ``world.py``, the experiment ``params.yaml``. In each way of remembering, a policy made from
scratch imitates demonstrations and is then trained by GRPO, with the same numbers of both. Every policy plays
each test task once: after imitation (``start``) and after training (``trained``). The oracle has no thoughts,
so imitation teaches the learned memory nothing about what to write; only training can.

``nearest`` says of the store alone, without any policy, how often the sign of the door is among the entries
that the last prompt shows. A finished policy in the folder is not trained again.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from benchmarks.lag import changed
from benchmarks.recall.measure import compare
from benchmarks.recall.world import WORDS
from skillpress.experiment.params import load_params

HERE = Path(__file__).parent


def main() -> None:
    """Print the result as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, help="training steps, in place of those of params.yaml")
    parser.add_argument("--demonstrations", type=int, help="in place of those of params.yaml")
    parser.add_argument("--folder", type=Path, help="keeps policies and results")
    chosen = parser.parse_args()
    params = load_params("params.yaml", HERE / "params.yaml")
    if chosen.steps is not None:
        params = changed(params, training={"steps": chosen.steps})
    if chosen.demonstrations is not None:
        params = changed(params, imitation={"demonstrations": chosen.demonstrations})
    with tempfile.TemporaryDirectory() as temporary:
        ways = compare(params, chosen.seeds, chosen.folder or Path(temporary))
    result = {
        "experiment": params.model_dump(mode="json", include={"environment", "tasks", "imitation"}),
        "training_steps": params.training.steps,
        "test_tasks": params.tasks.test,
        "by_chance": 1 / len(WORDS),
        "ways": ways,
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
