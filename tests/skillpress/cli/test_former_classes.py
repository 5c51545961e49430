"""`skillpress upgrade` on algorithms and selections whose keys were a class beside them, as before 0.2."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from skillpress import train
from skillpress.cli.former_classes import with_present_classes
from skillpress.core.moved import with_present_names
from skillpress.core.yaml_files import read_yaml_file

FORMER = '''
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from skillpress.learn.algorithms.algorithm import Algorithm, PolicyLoss, Selection
from skillpress.learn.algorithms.clipped_surrogate import ClippedAlgorithm, ClippedParameters
from skillpress.learn.algorithms.kl import reference_kl as reference
from skillpress.learn.algorithms.parameters import AlgorithmParameters, SelectionParameters


class BaselineParameters(AlgorithmParameters):
    """``algorithm: {name: former_classes:Baseline, ...}``."""

    one_update_per_step: ClassVar[bool] = True
    smallest_group: ClassVar[int] = 1

    failure_weight: float
    """The factor for a failure's advantage."""


@dataclass(frozen=True)
class Baseline(Algorithm):
    """REINFORCE against the mean of the step."""

    Parameters: ClassVar[type[AlgorithmParameters]] = BaselineParameters

    parameters: BaselineParameters

    def advantages(self, batch, add):
        assert self.longest_response > 0
        total = add({"score": float(batch.scores.sum()), "steps": float(len(batch.scores))})
        weights = np.where(batch.won, 1.0, self.parameters.failure_weight)
        return weights[batch.trajectory] * (batch.scores - total["score"] / max(total["steps"], 1.0))

    @property
    def loss(self) -> PolicyLoss:
        return LogLikelihood(self.parameters.kl_coefficient)

    def token_weights(self, lengths, tokens, sequences):
        return np.full(len(lengths), 1.0 / (sequences * self.longest_response))


@dataclass(frozen=True)
class LogLikelihood:
    kl_coefficient: float

    def __call__(self, tokens):
        loss = -(tokens.weights * tokens.advantages * tokens.logprobs).sum()
        return loss, {"taught": (tokens.weights * (tokens.advantages != 0)).sum()}


@dataclass(frozen=True)
class Best:
    """Only wins teach."""

    Parameters = SelectionParameters
    parameters: SelectionParameters

    def __call__(self, batch, seed):
        assert self.parameters.name == "former_classes:Best"
        return batch.won
'''
PRESENT = """
from typing import ClassVar

import numpy as np

from skillpress.training.algorithms.algorithm import Algorithm, Selection


class Baseline(Algorithm):
    one_update_per_step: ClassVar[bool] = True
    smallest_group: ClassVar[int] = 1
    failure_weight: float

    def advantages(self, batch, add):
        total = add({"score": float(batch.scores.sum()), "steps": float(len(batch.scores))})
        weights = np.where(batch.won, 1.0, self.failure_weight)
        return weights[batch.trajectory] * (batch.scores - total["score"] / max(total["steps"], 1.0))

    def loss(self, tokens):
        loss = -(tokens.weights * tokens.advantages * tokens.logprobs).sum()
        return loss, {"taught": (tokens.weights * (tokens.advantages != 0)).sum()}

    def token_weights(self, lengths, tokens, sequences, longest):
        return np.full(len(lengths), 1.0 / (sequences * longest))


class Best(Selection):
    def kept(self, batch, seed):
        return batch.won
"""
OF_OURS = """
from dataclasses import dataclass
from typing import ClassVar

from skillpress.learn.algorithms.grpo import GRPO, GRPOParameters
from skillpress.learn.algorithms.parameters import AlgorithmParameters


@dataclass(frozen=True)
class Mine(GRPO):
    Parameters: ClassVar[type[AlgorithmParameters]] = GRPOParameters


@dataclass(frozen=True)
class Halved(Mine):
    def advantages(self, batch, add):
        return super().advantages(batch, add) / 2
"""
SMALL: dict[str, Any] = {
    "tasks": {"train": 64, "validation": 0, "test": 8},
    "imitation": {"demonstrations": 600, "batch_size": 32, "epochs": 1},
    "policy": {"width": 32, "layers": 1},
    "sampling": {"slots": 32},
    "rollouts": {"tasks": 16},
    "training": {"steps": 2, "tasks_per_step": 4, "rollouts_per_task": 4, "minibatches": 1},
}

ROOT = Path(__file__).parents[3]

Trained = Callable[[str, dict[str, object]], list[tuple[object, ...]]]


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trained]:
    """Trains with an algorithm of a module with this text; returns each step's metrics, without times."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    def run(text: str, algorithm: dict[str, object]) -> list[tuple[object, ...]]:
        sys.modules.pop("former_classes", None)
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        (tmp_path / "former_classes.py").write_text(text)
        monkeypatch.chdir(folder)
        steps = train("countdown", algorithm=algorithm, **SMALL).steps
        return steps.select("step", "success", "loss", "gradient_norm").rows()

    yield run
    sys.modules.pop("former_classes", None)


def upgraded(text: str) -> str:
    """The module as `skillpress upgrade` leaves it."""
    return with_present_classes(with_present_names(text))


def test_an_upgraded_algorithm_and_selection_train_as_those_written_by_hand(trained: Trained) -> None:
    keys = {
        "name": "former_classes:Baseline",
        "failure_weight": 0.5,
        "kl_coefficient": 0.0,
        "select": {"name": "former_classes:Best"},
    }
    assert trained(upgraded(FORMER), keys) == trained(PRESENT, keys)


def test_a_subclass_of_an_algorithm_of_ours_trains_after_the_upgrade(trained: Trained) -> None:
    of_params: dict[str, object] = read_yaml_file(ROOT / "params.yaml")["algorithm"]
    steps = trained(upgraded(OF_OURS), {**of_params, "name": "former_classes:Halved"})
    assert [step for step, *_ in steps] == [1, 2]


@pytest.mark.parametrize(
    "text",
    [
        PRESENT,
        "class Part:\n    Parameters = object\n\n    def __call__(self, batch):\n        return batch.won\n",
        "from dataclasses import dataclass\n\n\n@dataclass\nclass Point:\n    parameters: int\n",
        "print 'not Python 3'\n",
        "# bytes that are no text: \udcff\n",
        "",
    ],
    ids=["present", "keys of nothing", "another class", "no Python", "no text", "empty"],
)
def test_other_files_stay_as_they_are(text: str) -> None:
    assert with_present_classes(text) == text


def test_the_upgrade_of_an_upgraded_file_changes_nothing() -> None:
    once = upgraded(FORMER)
    assert upgraded(once) == once


def test_what_changes_is_the_form_alone() -> None:
    text = upgraded(FORMER)
    assert "class Baseline(BaselineParameters):\n" in text
    assert '"""REINFORCE against the mean of the step."""\n\n    def advantages' in text
    assert "import reference_kl as reference" in text, "names that have not changed keep their aliases"
    assert "@dataclass(frozen=True)\nclass LogLikelihood:" in text, "a class that is no part keeps its form"
    assert "self.parameters" not in text
