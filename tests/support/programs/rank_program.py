"""Imitates and plays in a folder that ``training_program.prepare`` made: ``rank_program.py FOLDER OUTPUT``.

Prints a line for each report of a rank. With ``--cores 1`` it uses only one core. With ``--pause-at
imitation|episodes`` it waits to be killed at the first update or at the eighth episode.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from skillpress.core.resume import ResumeStore
from skillpress.core.storage import write_json
from skillpress.core.task_files import read_tasks
from skillpress.experiment.collection import CollectionJob, Play, play_episodes
from skillpress.experiment.imitation import ImitationJob, ImitationProgress, imitate_demonstrations
from skillpress.rollouts.collection import requests
from tests.support.programs.training_program import parameters

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("output")
    parser.add_argument("--cores", type=int)
    parser.add_argument("--pause-at", default="")
    chosen = parser.parse_args()
    if chosen.cores:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: chosen.cores])
    folder, output = chosen.folder, chosen.folder / chosen.output
    params = parameters(folder, smoke=True)
    episodes = 0

    def on_progress(rank: int, progress: ImitationProgress) -> None:
        kind = "demonstration" if progress.loss is None else "update"
        print(kind, rank, progress.done, flush=True)
        if chosen.pause_at == "imitation" and progress.done == 30 and kind == "update":
            time.sleep(600)

    def on_finished(count: int) -> None:
        global episodes
        episodes += count
        print("episodes", episodes, flush=True)
        if chosen.pause_at == "episodes" and episodes == 8:
            time.sleep(600)

    store = ResumeStore(output / "unfinished", "imitation")
    job = ImitationJob(params, folder / "train.parquet", output / "policy", store)
    write_json(output / "losses.json", imitate_demonstrations(job, on_progress).losses)
    tasks = read_tasks(folder / "train.parquet")[:16]
    wanted = {name: requests(tasks, 2, params.seed, name) for name in ("explorer", "base")}
    plays = [Play(None, wanted["explorer"]), Play(output / "policy", wanted["base"], version=1)]
    play = CollectionJob(params, "training", plays, ResumeStore(output / "unfinished", "episodes"))
    done = play_episodes(play, output / "played.parquet", on_finished)
    print("done", done.episodes, flush=True)
