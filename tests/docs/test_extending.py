"""The examples of docs/extending.md, run unchanged from the page."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
import yaml
from mlflow import MlflowClient

from skillpress.cli.init import TEMPLATE
from skillpress.core.errors import TaskError
from skillpress.core.interface import AgentState
from skillpress.core.trajectory import Task
from skillpress.environments.section import EnvironmentSection, SplitSizes
from skillpress.experiment.params import merge, read_yaml
from skillpress.pipeline import inputs
from skillpress.pipeline.graph import FINGERPRINTS
from skillpress.pipeline.stage import run_stage
from skillpress.pipeline.tracking.runs import create_database

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "extending.md"
STAGES = {
    "prepare_tasks", "prepare_policy", "collect_rollouts", "project_skills", "fit_dictionary",
    "train_policy", "play_floors", "evaluate_policy", "report",
}  # fmt: skip
Lab = Callable[[str], Path]
BLOCK = re.compile(r"^```(python|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(heading: str) -> list[str]:
    """The code of one section of the page."""
    section = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return [code for _, code in BLOCK.findall(section)]


def path_of(block: str) -> Path | None:
    """The file that a block names."""
    named = re.match(r"# ((?:my_lab|params)/\S+)\n", block)
    return Path(named[1]) if named else None


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Lab]:
    """A lab's folder with params.yaml, the graph, and the files of one section of the page."""
    for file in ("params.yaml", "dvc.yaml"):
        shutil.copy(ROOT / file, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])

    def written(heading: str) -> Path:
        for block in blocks(heading):
            path = path_of(block)
            assert path is not None, "what the page shows is files of one's own"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block)
        return tmp_path

    yield written
    for name in [name for name in sys.modules if name.partition(".")[0] == "my_lab"]:
        del sys.modules[name]


def lay_over(overlay: str) -> None:
    """Lay an overlay over params.yaml."""
    values = merge(read_yaml("params.yaml"), read_yaml(f"params/{overlay}.yaml"))
    Path("params.yaml").write_text(yaml.safe_dump(values))


def pinned() -> dict[str, dict]:
    """Stage to its fingerprint, as the first stage writes it."""
    assert inputs.main() == 0
    return {path.stem: json.loads(path.read_text()) for path in FINGERPRINTS.iterdir()}


def test_the_algorithm_and_the_environment_are_those_of_a_new_lab() -> None:
    shown = [block for heading in ("An algorithm", "An environment") for block in blocks(heading)]
    assert len(shown) == 4
    for block in shown:
        first, _, content = block.partition("\n")
        assert content == (TEMPLATE / first.removeprefix("# ")).read_text(), first


@pytest.mark.parametrize(
    ("heading", "overlay", "file", "stages"),
    [
        ("An algorithm", "my_algorithm", "my_lab/batch_baseline.py", {"train_policy"}),
        (
            "An engine",
            "even",
            "my_lab/even.py",
            {"collect_rollouts", "train_policy", "play_floors", "evaluate_policy"},
        ),
        ("An environment", "my_lab", "my_lab/number_line.py", STAGES),
    ],
)
def test_an_edit_of_the_file_reruns_the_stages_that_use_it(
    heading: str, overlay: str, file: str, stages: set[str], lab: Lab
) -> None:
    lab(heading)
    lay_over(overlay)
    before = pinned()
    assert {stage for stage, found in before.items() if file in found["code"]} == stages
    with Path(file).open("a") as edited:
        edited.write("MORE = 1\n")
    after = pinned()
    assert {stage for stage in after if after[stage] != before[stage]} == stages


def test_a_stage_of_an_experiment_with_it_runs_and_records_where_it_is_from(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # of the recorder, which runs in the lab's folder
    lab("An environment")
    lay_over("my_lab")
    create_database()
    around = {"environment.agent codex": "0.171.0"}
    monkeypatch.setattr(EnvironmentSection, "surroundings", lambda section: around)
    assert run_stage("prepare_tasks") == 0
    assert json.loads(Path("results/tasks.json").read_text())
    client = MlflowClient()
    (experiment,) = client.search_experiments(filter_string="name = 'skillpress'")
    query = "tags.`dvc.stage` = 'prepare_tasks' AND tags.`skillpress.part.environment.name` LIKE 'my_lab%'"
    run = client.search_runs([experiment.experiment_id], query)[0]
    assert run.data.tags["skillpress.part.environment.name"] == "my_lab.number_line:NumberLine (this folder)"
    assert run.data.tags["skillpress.version"] == version("skillpress")
    assert run.data.tags["skillpress.part.environment.agent codex"] == "0.171.0"


def test_the_algorithm_trains_a_policy_end_to_end(lab: Lab) -> None:
    from skillpress.experiment.training import train
    from skillpress.training.algorithms.batch import one_process
    from tests.support.programs.training_program import job, prepare

    folder = lab("An algorithm")
    overlay = yaml.safe_load((folder / "params" / "my_algorithm.yaml").read_text())
    overlay["training"] |= {"steps": 1, "learning_rate": 0.01}
    overlay |= {"environment": {"max_steps": 8, "max_numbers": 3}, "imitation": {"epochs": 2}}
    prepare(folder, yaml.safe_dump(overlay))
    (row,) = train(job(folder, "trained"))
    assert 0 < row["taught"] <= 1 and np.isfinite(row["loss"])

    from tests.support.training.batches import of_returns

    method = job(folder, "trained").params.algorithm
    played = of_returns([10.0, 0.0], [0, 1], [1, 3])
    found = method.advantages(played, one_process)
    np.testing.assert_allclose(found, 0.5 * np.array([7.5, -2.5, -2.5, -2.5]))  # neither was won


def test_the_engine_samples_for_an_agent_evenly_and_by_seed(lab: Lab) -> None:
    folder = lab("An engine")
    from skillpress.experiment.experiment import Experiment
    from skillpress.experiment.params import load_params
    from skillpress.rollouts.collection import requests

    experiment = Experiment(load_params(ROOT / "params.yaml", folder / "params" / "even.yaml"))
    policy = experiment.starting_policy()
    engine = experiment.engine(policy)
    drawn = engine.generate([(1, 2)] * 4000, experiment.training_sampling, range(4000))
    words = len(policy.stop_token_ids)
    counts = np.unique([completion.token_ids for completion in drawn], return_counts=True)[1]
    assert len(counts) == words and counts.max() < 4000 / words + 6 * (4000 / words) ** 0.5
    np.testing.assert_allclose([completion.logprobs[0] for completion in drawn], np.log(1 / words))

    task = Task("e3", "countdown", 0, {"target": 54, "numbers": [80, 2, 28, 1]})
    agent = experiment.agent(policy, engine, experiment.training_sampling)
    with experiment.collector(agent) as collector:
        first, again = (collector.collect(requests([task], 5, 0, "even")) for _ in range(2))
    assert first == again and all(step.response_ids for t in first for step in t.steps)


def test_the_environment_is_learned_by_imitation_and_played(lab: Lab, tmp_path: Path) -> None:
    folder = lab("An environment")
    from skillpress.environments import environment_class
    from skillpress.experiment.training import train
    from tests.support.programs.training_program import job, prepare

    overlay = yaml.safe_load((folder / "params" / "my_lab.yaml").read_text())
    overlay |= {"imitation": {"epochs": 4}, "training": {"steps": 2, "learning_rate": 0.001}}
    found = environment_class("my_lab.number_line:NumberLine")
    section = found.model_validate({**overlay["environment"], "farthest": 90})
    tasks = list(section.checked_tasks(SplitSizes(12, 4, 8), 0))
    section.check_tasks(tasks)
    environment = section.make()
    for task in tasks[:12]:
        observation, info = environment.reset(task)
        moves = section.make_oracle()(task, 1.0, 0)
        if len(moves) <= section.max_steps:
            for move in moves:
                observation, terminated, truncated, info = environment.step(move)
            assert info.won and terminated and not truncated, observation
    with pytest.raises(TaskError, match=r"tasks.validation is 4, and make_tasks made 0; tasks.test is 8"):
        list(section.checked_tasks(SplitSizes(90, 4, 8), 0))

    overlay["environment"]["farthest"] = 90  # the program makes 64 + 16 + 1 tasks
    overlay["environment"]["max_steps"] = 40
    prepare(tmp_path, yaml.safe_dump(overlay))
    curve = train(job(tmp_path, "trained"))
    assert curve[-1]["success"] > 0.5, "imitation of the demonstrator wins most walks"
    state = AgentState(tasks[0], *environment.reset(tasks[0]))
    assert section.rendering("compact", 2).prompt(state) == f"{tasks[0].spec['goal']} 0"


def test_the_smallest_environment_is_one_file_of_at_most_60_lines() -> None:
    assert len((TEMPLATE / "my_lab" / "number_line.py").read_text().splitlines()) <= 60
