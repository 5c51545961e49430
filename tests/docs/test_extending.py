"""The examples of docs/extending.md, run unchanged from the page."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import yaml

from skillpress.core import registry
from skillpress.core.errors import TaskError
from skillpress.core.interface import AgentState
from skillpress.core.trajectory import Task
from skillpress.environments.bundle import SplitSizes

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "extending.md"
BLOCK = re.compile(r"^```(python|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(heading: str) -> list[str]:
    """The code of one section of the page."""
    section = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return [code for _, code in BLOCK.findall(section)]


def path_of(block: str) -> Path | None:
    """The file that a block names."""
    named = re.match(r"# ((?:skillpress|params)/\S+)\n", block)
    return Path(named[1]) if named else None


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator:
    """Put a section's files into the package, as far as imports can tell, and its lines into the registry."""
    imported: list[str] = []

    def install(heading: str, table: str) -> Path:
        for block in blocks(heading):
            path = path_of(block)
            if path is None:
                for name, where in eval(f"{{{block}}}", {}).items():
                    monkeypatch.setitem(getattr(registry, table), name, where)
                continue
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(block)
            if path.suffix == ".py":
                room = next(folder for folder in path.parents if (ROOT / folder).is_dir())
                package = importlib.import_module(".".join(room.parts))
                monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path / room)])
                imported.append(".".join(path.with_suffix("").parts).removesuffix(".__init__"))
        return tmp_path

    yield install
    for name in imported:
        sys.modules.pop(name, None)


def test_the_algorithm_trains_a_policy_end_to_end(install) -> None:
    from skillpress.experiment.experiment import Experiment
    from skillpress.experiment.training import train
    from skillpress.learn.algorithms.batch import one_process
    from tests.support.programs.training_program import job, prepare

    folder = install("An algorithm", "ALGORITHMS")
    overlay = yaml.safe_load((folder / "params" / "batch_baseline.yaml").read_text())
    overlay["training"] |= {"steps": 1, "learning_rate": 0.01}
    overlay |= {"environment": {"max_steps": 8, "max_numbers": 3}, "imitation": {"epochs": 2}}
    prepare(folder, yaml.safe_dump(overlay))
    (row,) = train(job(folder, "trained"))
    assert 0 < row["taught"] <= 1 and np.isfinite(row["loss"])

    from tests.support.learn.batches import of_returns

    method = Experiment(job(folder, "trained").params).algorithm
    played = of_returns([10.0, 0.0], [0, 1], [1, 3])
    found = method.advantages(played, one_process)
    np.testing.assert_allclose(found, 0.5 * np.array([7.5, -2.5, -2.5, -2.5]))  # neither was won


def test_the_engine_samples_for_an_agent_evenly_and_by_seed(install) -> None:
    folder = install("An engine", "ENGINES")
    from skillpress.experiment.experiment import Experiment
    from skillpress.experiment.params import load_params
    from skillpress.play.rollout import requests

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


def test_the_environment_is_learned_by_imitation_and_played(install, tmp_path: Path) -> None:
    folder = install("An environment", "ENVIRONMENTS")
    from skillpress.environments import bundle
    from skillpress.experiment.experiment import Experiment
    from skillpress.experiment.training import train
    from tests.support.programs.training_program import job, prepare

    overlay = yaml.safe_load((folder / "params" / "number_line.yaml").read_text())
    overlay |= {"imitation": {"epochs": 4}, "training": {"steps": 2, "learning_rate": 0.001}}
    found = bundle("number_line")
    section = found.parameters.model_validate({**overlay["environment"], "farthest": 90})
    tasks = list(found.make_tasks(section, SplitSizes(12, 4, 8), 0))
    found.check_tasks(tasks)
    environment = found.make(section)
    for task in tasks[:12]:
        observation, info = environment.reset(task)
        moves = found.oracle(section)(task, 1.0, 0)
        if len(moves) <= section.max_steps:
            for move in moves:
                observation, terminated, truncated, info = environment.step(move)
            assert info.won and terminated and not truncated, observation
    with pytest.raises(TaskError, match="farthest is too small"):
        list(found.make_tasks(section, SplitSizes(90, 4, 8), 0))

    overlay["environment"]["farthest"] = 90  # the program makes 64 + 16 + 1 tasks
    overlay["environment"]["max_steps"] = 40
    prepare(tmp_path, yaml.safe_dump(overlay))
    curve = train(job(tmp_path, "trained"))
    assert curve[-1]["success"] > 0.5, "imitation of the demonstrator wins most walks"
    text = Experiment(job(tmp_path, "trained").params).bundle.renderings["text"](section, 2)
    state = AgentState(tasks[0], *environment.reset(tasks[0]), notes="1. Action: leap")
    assert f"reach {tasks[0].spec['goal']}" in text.prompt(state) and "1. Action: leap" in text.prompt(state)
