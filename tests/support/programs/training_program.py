"""Trains in a folder that holds an overlay, tasks and a policy: ``training_program.py FOLDER OUTPUT``.

With ``--smoke`` the overlay applies to the smoke experiment instead of the default one, and with
``--pause-after STEP`` the program waits there to be killed. It prints one line after each step, before the
checkpoint that follows the step.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import torch

from skillpress.core.resume import content_key
from skillpress.core.task_files import write_tasks
from skillpress.environments.section import SplitSizes
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import Params, load_params
from skillpress.experiment.training import TrainingJob, train
from skillpress.models.policy import save_policy
from skillpress.rollouts.workers.launched import launch_of_environment
from skillpress.training.imitation.dataset import tokenize
from skillpress.training.imitation.demonstrations import demonstrate
from skillpress.training.imitation.trainer import imitate
from skillpress.training.loop.describing.trained_episodes import TrainedEpisodes
from skillpress.training.loop.keeping.checkpoint import Checkpoints
from skillpress.training.loop.keeping.selected_checkpoint import select_checkpoint

ROOT = Path(__file__).parents[3]


def parameters(folder: Path, smoke: bool) -> Params:
    """The default or the smoke experiment, with the changes of the folder's ``overlay.yaml``."""
    small = [ROOT / "params" / "smoke.yaml"] if smoke else []
    return load_params(ROOT / "params.yaml", *small, folder / "overlay.yaml")


def prepare(folder: Path, overlay: str, demonstrations: int = 4000) -> None:
    """Write tasks, the parameters of a small training, and a policy that imitated ``demonstrations``
    demonstrations. A scratch policy sometimes wins after 4000."""
    (folder / "overlay.yaml").write_text(overlay)
    params = parameters(folder, smoke=True)
    experiment = Experiment(params)
    sizes = SplitSizes(64, 16, 1, params.tasks.unseen)
    made = list(params.environment.checked_tasks(sizes, params.seed))
    tasks = [task for task in made if task.split == "train"]
    write_tasks(folder / "train.parquet", tasks)
    write_tasks(folder / "validation.parquet", [task for task in made if task.split == "validation"])
    if params.tasks.unseen:
        write_tasks(folder / "unseen.parquet", [task for task in made if task.split == "unseen"])
    policy = experiment.starting_policy()
    if not demonstrations:
        save_policy(policy, folder / "start")
        return
    shown = demonstrate(
        tasks=tasks,
        count=demonstrations,
        section=params.environment,
        rendering=experiment.rendering,
        update_state=experiment.state_update,
        detour_rate=0.0,
        seed=0,
    )
    rows = tokenize([step for steps in shown for step in steps], experiment.prompter(policy), policy)
    limit = params.training.microbatch_tokens
    imitate(policy, rows, params.imitation, params.seed, token_limit=limit)
    save_policy(policy, folder / "start")


def job(folder: Path, output: str, smoke: bool = True) -> TrainingJob:
    """The training in this folder."""
    params = parameters(folder, smoke)
    inputs = [folder / name for name in ("train.parquet", "validation.parquet", "start")]
    beginning = folder / "start.json"
    inputs += [beginning] if beginning.exists() else []
    return TrainingJob(
        params=params,
        tasks=inputs[0],
        validation=inputs[1],
        unseen=folder / "unseen.parquet",
        start=inputs[2],
        beginning=beginning if beginning.exists() else None,
        output=folder / output,
        history=folder / f"dictionaries-{output}.json",
        library=folder / f"library-{output}.json",
        episodes=TrainedEpisodes(
            folder / f"training-{output}.parquet", folder / f"advantages-{output}.parquet"
        ),
        probes=folder / f"probes-{output}.parquet",
        checkpoints=Checkpoints(
            folder / f"checkpoints-{output}", content_key(params.model_dump(mode="json"), inputs)
        ),
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("output")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--pause-after", type=int)
    chosen = parser.parse_args()

    def report(step: int, metrics: dict[str, float]) -> None:
        if step:
            print(f"step {step} success {metrics['success']:.3f}", flush=True)
        if step == chosen.pause_after:
            time.sleep(600)

    training = job(chosen.folder, chosen.output, chosen.smoke)
    curve = train(training, report)
    launch = launch_of_environment()
    if launch is not None and launch.rank:
        sys.exit()
    training.checkpoints.clear()
    print("curve", *(int(row["step"]) for row in curve), flush=True)
    print("kept", select_checkpoint(training.params.training.keep, curve), flush=True)
