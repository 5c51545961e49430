"""One seed's experiment, played in three ways: by the built-in agent, by the program, and by the built-in
agent with the program's draws. Tasks, start, rules for skills, reward and algorithm are the same."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.lag import changed
from skillpress.core.resume import ResumeStore
from skillpress.core.storage import write_text
from skillpress.core.task_files import write_tasks
from skillpress.environments.countdown.actions import action_words
from skillpress.environments.section import SplitSizes
from skillpress.experiment.imitation import ImitationJob, imitate_demonstrations
from skillpress.experiment.params import Params

BUILT_IN, PROGRAM, SAME_DRAWS = "built_in", "program", "built_in_same_draws"
ARMS = (BUILT_IN, PROGRAM, SAME_DRAWS)
SPLITS = ("train", "test")
HERE = "benchmarks.program_countdown"


def prepare(params: Params, folder: Path) -> None:
    """Make tasks and start of one seed.

    Args:
        params: an experiment with Countdown as it is built in.
        folder: gets ``built_in/`` and ``program/`` with ``train.parquet`` and ``test.parquet``,
            ``tasks.jsonl`` and ``start/``.
    """
    if (folder / "start").is_dir():
        return
    sizes = SplitSizes(params.tasks.train, 0, params.tasks.test)
    made = list(params.environment.checked_tasks(sizes, params.seed))
    lines = [json.dumps({"id": task.task_id, "split": task.split, **task.spec}) for task in made]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tasks.jsonl").write_text("".join(f"{line}\n" for line in lines))
    section = arm(params, folder, PROGRAM).environment
    read = list(section.checked_tasks(sizes, params.seed))
    for name, tasks in ((BUILT_IN, made), (PROGRAM, read)):
        for split in SPLITS:
            write_tasks(folder / name / f"{split}.parquet", [task for task in tasks if task.split == split])
    store = ResumeStore(folder, "unfinished")
    job = ImitationJob(params, folder / BUILT_IN / "train.parquet", output=folder / "start", store=store)
    imitate_demonstrations(job, lambda rank, progress: None)


def tasks_of(folder: Path, name: str, split: str) -> Path:
    """The file of an arm's tasks."""
    return folder / (PROGRAM if name == PROGRAM else BUILT_IN) / f"{split}.parquet"


def arm(params: Params, folder: Path, name: str) -> Params:
    """The experiment of one arm, which starts from the folder's ``start``."""
    penalty = params.reward.invalid_penalty
    reward: dict[str, Any] = {"invalid_penalty": penalty}
    if name == PROGRAM:  # what a game refuses, only the program and its verifier know
        refused = {"weight": -penalty, "credit": "trajectory"}
        reward = {"invalid_penalty": 0.0, "measures": {"refused": refused}}
    return changed(
        params,
        environment=_section(params, folder, name),
        policy={"model": str(folder / "start"), "rendering": "requests"},
        imitation={"demonstrations": 0},
        reward=reward,
    )


def _rules(folder: Path, words: Sequence[str]) -> Path:
    """The file of a table that names each word by itself."""
    path = folder / "rules.yaml"
    if not path.is_file():
        write_text(path, json.dumps({"rules": [[word, word] for word in words]}))
    return path


def _section(params: Params, folder: Path, name: str) -> dict[str, Any]:
    game = params.environment.model_dump(mode="json")
    words = {"verbs": list(action_words(game["max_numbers"]))}
    if name != PROGRAM:
        draws = "program" if name == SAME_DRAWS else "own"
        return {**game, "name": f"{HERE}.built_in:BuiltInParameters", "skills": words, "draws": draws}
    return {
        "name": "program",
        "run": f"{HERE}.agent:play",
        "tasks": str(folder / "tasks.jsonl"),
        "verify": f"{HERE}.verifier:verify",
        "calls": "words",
        "rules": str(_rules(folder, words["verbs"])),
        "max_calls": game["max_steps"],
        "seconds": 3600.0,
        "isolation": "none",
    }
