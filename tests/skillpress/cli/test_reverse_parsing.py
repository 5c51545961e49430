"""``skillpress reverse-parse``: thoughts that lead to known actions, and the policy that imitates them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import datasets
import polars as pl
import pytest
import yaml

from skillpress.cli import reverse_parsing
from skillpress.cli.command import main
from skillpress.core.resume import ResumeStore
from skillpress.core.rollout_files import read_rollouts
from skillpress.core.tables import scan_table
from skillpress.core.task_files import read_tasks, write_tasks
from skillpress.environments.section import SplitSizes
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.imitation import ImitationJob, imitate_demonstrations
from skillpress.experiment.params import check_params, merge, read_yaml
from skillpress.models.policy import load_policy, save_policy
from skillpress.training.imitation.thoughts import KIND, SCHEMA, read_thoughts
from skillpress.training.reverse_parsing.search import ReverseParser

ROOT = Path(__file__).parents[3]
COMPACT = {
    "processes": 1,
    "environment": {"max_numbers": 3, "max_steps": 6},
    "imitation": {"demonstrations": 4000, "epochs": 2},
}


def prepared(folder: Path, *overlays: dict[str, object]) -> Path:
    """An experiment's folder with its own params.yaml and training tasks."""
    values = read_yaml(ROOT / "params.yaml")
    for overlay in (read_yaml(ROOT / "params" / "smoke.yaml"), *overlays):
        values = merge(values, overlay)
    folder.mkdir(exist_ok=True)
    (folder / "params.yaml").write_text(yaml.safe_dump(values))
    params = check_params(values, "test")
    made = params.environment.checked_tasks(SplitSizes(16, 1, 1), params.seed)
    write_tasks(folder / "train.parquet", [task for task in made if task.split == "train"])
    return folder


def imitating(folder: Path, **imitation: object) -> list[float]:
    """The losses of a policy that imitates in this folder, which becomes its models/policy."""
    values = merge(read_yaml(folder / "params.yaml"), {"imitation": imitation})
    job = ImitationJob(
        check_params(values, "test"),
        folder / "train.parquet",
        folder / "models" / "policy",
        ResumeStore(folder / "unfinished", "imitation"),
    )
    return imitate_demonstrations(job, lambda rank, progress: None).losses


@pytest.fixture(scope="module")
def compact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment with a small policy that imitated 4000 demonstrations."""
    folder = prepared(tmp_path_factory.mktemp("compact") / "experiment", COMPACT)
    imitating(folder)
    return folder


def parse(folder: Path, output: Path, *options: str, model: str | None = None) -> int:
    words = ["--environment", "countdown", "--tasks", "6", "--samples", "8", "--seed", "3", "--untold"]
    place = ["--model", model or str(folder / "models" / "policy"), "--output", str(output)]
    return main(["reverse-parse", *place, *words, *options])


def rows(output: Path) -> pl.DataFrame:
    return scan_table(output / reverse_parsing.THOUGHTS, KIND, SCHEMA).collect()


def test_what_is_kept_leads_to_the_action_once_and_the_likeliest_stands_first(
    compact: Path, tmp_path: Path
) -> None:
    assert parse(compact, tmp_path / "found") == 0
    found = rows(tmp_path / "found")
    # The parser `plain` reads the whole response as the action: only A* itself leads to A*, once per state.
    assert found.height > 0 and found["response"].to_list() == found["action"].to_list()
    assert set(found["rank"]) == {0} and set(found["thought"]) == {""}
    assert found.select("task_id", "step").is_duplicated().sum() == 0
    assert (found["logprob"] < 0).all() and set(found["tokens"]) == {1}
    summary = json.loads((tmp_path / "found" / reverse_parsing.SUMMARY).read_text())
    assert summary["kept"] == found.height <= summary["led"] < summary["sampled"] == 8 * summary["states"]
    shared = datasets.load_from_disk(str(tmp_path / "found" / reverse_parsing.DATASET))
    assert shared["prompt"] == found["prompt"].to_list()
    assert shared["completion"] == found["response"].to_list()


def test_an_interruption_costs_no_thought_and_changes_none(
    compact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reverse_parsing, "TASKS_AT_ONCE", 2)
    assert parse(compact, tmp_path / "whole") == 0
    searched: list[int] = []
    search = ReverseParser.__call__

    def until_killed(self: ReverseParser, targets: Sequence[object]) -> object:
        if len(searched) == 1:
            raise KeyboardInterrupt
        searched.append(len(targets))
        return search(self, targets)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(ReverseParser, "__call__", until_killed)
        assert parse(compact, tmp_path / "cut") == 130
    assert not (tmp_path / "cut").exists()
    searched.clear()

    def counted(self: ReverseParser, targets: Sequence[object]) -> object:
        searched.append(len(targets))
        return search(self, targets)  # type: ignore[arg-type]

    monkeypatch.setattr(ReverseParser, "__call__", counted)
    assert parse(compact, tmp_path / "cut") == 0
    assert len(searched) == 2, "two of six tasks were done"
    assert rows(tmp_path / "cut").equals(rows(tmp_path / "whole"))
    assert not list((tmp_path / "cut.unfinished").glob("*"))


def test_successes_of_a_rollout_file_say_what_is_right(compact: Path, tmp_path: Path) -> None:
    played = tmp_path / "played"
    play = ["--environment", "countdown", "--tasks", "24", "--votes", "5", "--output", str(played)]
    assert main(["evaluate", "--model", str(compact / "models" / "policy"), *play]) == 0
    episodes = read_rollouts(played / "rollouts.parquet")
    tasks = [replace(task, split="train") for task in read_tasks(played / "tasks.parquet")]
    write_tasks(tmp_path / "train.parquet", tasks)
    won = {episode.task_id for episode in episodes if episode.won}
    shortest = {name: min(len(e.steps) for e in episodes if e.won and e.task_id == name) for name in won}
    files = ["--tasks-file", str(tmp_path / "train.parquet"), "--rollouts", str(played / "rollouts.parquet")]
    assert parse(compact, tmp_path / "found", *files) == 0
    found = rows(tmp_path / "found")
    assert len(set(found["task_id"])) > 0 and set(found["task_id"]) <= won
    assert all(step < shortest[name] for name, step in found.select("task_id", "step").iter_rows())


def test_imitation_learns_from_thoughts_alone_and_beside_the_oracle(compact: Path, tmp_path: Path) -> None:
    assert parse(compact, tmp_path / "found") == 0
    file = str(tmp_path / "found" / reverse_parsing.THOUGHTS)
    few = {"batch_size": 4, "epochs": 30}
    alone = prepared(tmp_path / "alone", COMPACT)
    losses = imitating(alone, demonstrations=0, thoughts=file, **few)
    assert losses[-1] < 0.5 * losses[0]
    pairs = read_thoughts(file, "countdown", "compact")
    assert len(losses) == 30 * -(-len(pairs) // 4)
    beside = prepared(tmp_path / "beside", COMPACT)
    samples = len(imitating(beside, demonstrations=3, **few | {"batch_size": 1, "epochs": 1}))
    both = imitating(
        prepared(tmp_path / "both", COMPACT), demonstrations=3, thoughts=file, batch_size=1, epochs=1
    )
    assert len(both) == samples + len(pairs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "--untold: is needed with policy.rendering 'compact'"),
        (("--untold", "--answer", "completed"), "--answer: must be sampled with policy.rendering 'compact'"),
        (("--untold", "--samples", "0"), "--samples: is 0; must be from 1 to"),
        (("--untold", "--rollouts", "x.parquet"), "--tasks-file: is missing"),
        (("--untold", "--set", "policy.state_update=concatenate"), "is 'concatenate', whose prompts contain"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_loaded(
    options: Sequence[str], message: str, compact: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--model", str(compact / "models" / "policy"), "--environment", "countdown", *options]
    assert main(["reverse-parse", *words, "--output", str(tmp_path / "found")]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


SMOLLM2 = {
    "processes": 1,
    "environment": {"max_steps": 4, "max_numbers": 3},
    "policy": {"model": "smollm2-135m", "rendering": "text", "history": 1},
    "sampling": {"max_new_tokens": 40, "slots": 8},
    "imitation": {"demonstrations": 0, "batch_size": 4, "epochs": 2, "learning_rate": 0.0001},
}


@pytest.mark.thorough
def test_a_real_language_model_thinks_towards_the_oracles_actions_and_learns_its_thoughts(
    tmp_path: Path,
) -> None:
    folder = prepared(tmp_path / "experiment", SMOLLM2)
    start = Experiment(check_params(read_yaml(folder / "params.yaml"), "test")).starting_policy()
    save_policy(start, folder / "models" / "policy")
    words = ["--environment", "countdown", "--tasks", "1", "--samples", "4", "--answer", "completed"]
    place = ["--model", str(folder / "models" / "policy"), "--output", str(tmp_path / "found")]
    assert main(["reverse-parse", *place, *words]) == 0
    found = rows(tmp_path / "found")
    assert found.height >= 2 and found["thought"].n_unique() > 1
    for row in found.iter_rows(named=True):
        answer = f"<think>{row['thought']}</think><action>{row['action']}</action>"
        assert row["response"] == answer and row["thought"].strip()
        assert "right action here" not in row["prompt"]
    best = found.sort("step", "rank")
    assert best.equals(found) and all(
        part["logprob"].is_sorted(descending=True) for part in found.partition_by("step")
    )
    # A thought may be as long as a sampled response, and the completed answer follows it.
    longer = merge(read_yaml(folder / "params.yaml"), {"sampling": {"max_new_tokens": 80}})
    (folder / "params.yaml").write_text(yaml.safe_dump(longer))
    losses = imitating(folder, thoughts=str(tmp_path / "found" / reverse_parsing.THOUGHTS),
                       **SMOLLM2["imitation"])  # type: ignore[arg-type]  # fmt: skip
    assert losses[-1] < losses[0]
    assert load_policy(folder / "models" / "policy").parameters == start.parameters
