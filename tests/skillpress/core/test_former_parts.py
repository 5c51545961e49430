"""Parts in the form before 0.2, each as a lab had it, after `skillpress upgrade` has renamed its imports.

Environments of that form have a test beside them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from skillpress import train
from skillpress.core.errors import ParamsError
from skillpress.core.moved import tell, with_present_names

REFUSED = {
    "algorithm": """
from dataclasses import dataclass
from typing import ClassVar

from skillpress.learn.algorithms.algorithm import Algorithm
from skillpress.learn.algorithms.parameters import AlgorithmParameters
from skillpress.learn.algorithms.scored_tokens import ScoredTokens


@dataclass(frozen=True)
class Part(Algorithm):
    Parameters: ClassVar[type[AlgorithmParameters]] = AlgorithmParameters
    parameters: AlgorithmParameters
""",
    "algorithm of ours": """
from dataclasses import dataclass
from typing import ClassVar

from skillpress.learn.algorithms.algorithm import AlgorithmParameters
from skillpress.learn.algorithms.grpo import GRPO, GRPOParameters


@dataclass(frozen=True)
class Part(GRPO):
    Parameters: ClassVar[type[AlgorithmParameters]] = GRPOParameters
""",
    "selection": """
from dataclasses import dataclass
from typing import ClassVar

from skillpress.learn.algorithms.parameters import SelectionParameters


@dataclass(frozen=True)
class Part:
    Parameters: ClassVar[type[SelectionParameters]] = SelectionParameters
    parameters: SelectionParameters

    def __call__(self, batch, seed):
        return batch.won
""",
    "selection without a base": """
class Part:
    Parameters = object

    def __call__(self, batch, seed):
        return batch.won
""",
}
READ = """
from dataclasses import dataclass, replace

import numpy as np

from skillpress.doors import NameProjection
from skillpress.play.agents.state_updates import Window
from skillpress.skills.corpus import FoundPhrases
from skillpress.skills.grams import number_grams, phrases_of
from skillpress.skills.library.retrieval import overlap
from skillpress.skills.search.greedy import merge_pairs
from skillpress.skills.shaping import Shaping
from skillpress.skills.step_corpus import BufferAndBatch

called = set()


class Quadratic(Shaping):
    def __call__(self, played, dictionary):
        called.add("shaping")
        shares = np.asarray(played.steps, np.float64) / self.max_steps
        return self.efficiency * np.asarray(played.won, np.float64) * shares**2

    def of_steps(self, skills, dictionary):
        return np.full(len(skills), self.efficiency * len(skills) / self.max_steps**2)


def three(corpus, max_phrase_length, seed):
    called.add("search")
    grams = number_grams(corpus, max_phrase_length)
    return FoundPhrases(phrases_of(corpus, grams, merge_pairs(grams, False, 3)))


def suffixes(phrase):
    called.add("closure")
    return (phrase[start:] for start in range(len(phrase) - 2, -1, -1))


class Corpus(BufferAndBatch):
    def __call__(self, batch):
        called.add("corpus")
        return super().__call__(batch)


@dataclass(frozen=True)
class Silent(Window):
    def __call__(self, state, thought, action, observation, info):
        called.add("state update")
        return replace(super().__call__(state, thought, action, observation, info), notes="")


def nearest(skills, query, top_k):
    called.add("retrieval")
    return tuple(sorted(skills, key=lambda skill: (-overlap(skill, query), skill.text))[:top_k])
"""
SMALL = {
    "tasks": {"train": 64, "validation": 0, "test": 8},
    "imitation": {"demonstrations": 600, "batch_size": 32, "epochs": 1},
    "sampling": {"slots": 32},
    "rollouts": {"tasks": 16},
    "training": {"steps": 2, "tasks_per_step": 4, "rollouts_per_task": 4},
}


@pytest.fixture
def upgraded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Writes ``former_parts.py`` into the folder of a lab, with the names of today."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    def write(text: str) -> None:
        (tmp_path / "former_parts.py").write_text(with_present_names(text))

    yield write
    sys.modules.pop("former_parts", None)


@pytest.mark.parametrize("kind", REFUSED)
def test_a_part_that_was_beside_its_section_is_told_the_present_form(
    kind: str, upgraded: Callable[[str], None]
) -> None:
    upgraded(REFUSED[kind])
    name, base = "former_parts:Part", "Selection" if "selection" in kind else "Algorithm"
    part = {"select": {"name": name}} if base == "Selection" else {"name": name, "select": {"name": "none"}}
    with pytest.raises(ParamsError, match=rf"is its section now:\n    class Mine\({base}\):  # from") as said:
        train("countdown", algorithm=part, **SMALL)
    assert "learn" not in str(said.value), "upgrade leaves no former name"


def test_a_part_that_is_a_function_or_a_class_of_its_own_is_used_as_before(
    upgraded: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    tell.cache_clear()
    upgraded(READ)
    library = {"retrieval": "former_parts:nearest", "top_k": 2, "every": 1, "new": 1, "teacher": None}
    skills = {"search": "three", "closure": "suffixes", "corpus": "Corpus"}
    trained = train(
        "countdown",
        policy={"width": 32, "layers": 1, "state_update": "former_parts:Silent"},
        skills={"library": library} | {key: f"former_parts:{name}" for key, name in skills.items()},
        reward={"shaping": "former_parts:Quadratic", "efficiency": 5.0},
        **SMALL,
    )
    assert trained.steps["step"].to_list() == [1, 2]
    kinds = {"shaping", "search", "closure", "corpus", "state update", "retrieval"}
    assert sys.modules["former_parts"].called == kinds
    said = capsys.readouterr().err
    assert said.count("efficiency of a Shaping is called weight now; rename it") == 1
    assert "reward.efficiency: is now called reward.shaping_weight" in said
