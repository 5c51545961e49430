"""Environments in the form before 0.2, a bundle of callables, are still read."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from skillpress.core.registry import ENVIRONMENTS
from skillpress.core.sections import ByName
from skillpress.environments import EnvironmentSection, SplitSizes
from skillpress.environments.countdown.parameters import CountdownParameters
from skillpress.environments.section import environment_class
from skillpress.rollouts.agents.state_updates import Window
from skillpress.training.imitation.demonstrations import demonstrate

FORMER = """
from skillpress.environments import EnvironmentBundle, EnvironmentParameters
from skillpress.environments.countdown.environment import Countdown, explorer_actions
from skillpress.environments.countdown.oracle import CountdownOracle
from skillpress.environments.countdown.prompts import CompactRendering, vocabulary
from skillpress.environments.countdown.skills import CountdownProjection
from skillpress.environments.countdown.tasks import check_tasks, make_tasks


class OldParameters(EnvironmentParameters):
    data: str = ""
    min_numbers: int
    max_numbers: int
    min_target: int
    max_target: int
    min_solutions: int = 1
    unseen_numbers: int = 0

    @property
    def largest_pool(self) -> int:
        return self.max_numbers


BUNDLE = EnvironmentBundle(
    parameters=OldParameters,
    make=Countdown,
    make_tasks=make_tasks,
    check_tasks=check_tasks,
    projection=CountdownProjection(),
    renderings={"compact": lambda section, history: CompactRendering(section.largest_pool, history)},
    vocabulary=vocabulary,
    oracle=CountdownOracle,
    explorer_actions=explorer_actions,
    hosting="workers",
    data=lambda section: {"words": section.data},
)
"""
NAME = "former_lab.old:BUNDLE"
PUZZLES = {"max_steps": 30, "min_numbers": 3, "max_numbers": 4, "min_target": 10, "max_target": 999}
PRESENT = CountdownParameters(name="countdown", **PUZZLES)


@pytest.fixture
def former(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The folder of a lab with such an environment."""
    (tmp_path / "former_lab").mkdir()
    (tmp_path / "former_lab" / "old.py").write_text(FORMER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield pytest.importorskip("former_lab.old")
    for name in [name for name in sys.modules if name.partition(".")[0] == "former_lab"]:
        del sys.modules[name]


@pytest.fixture
def section(former: ModuleType) -> EnvironmentSection:
    return ByName(ENVIRONMENTS, "environment.name").read({"name": NAME, **PUZZLES})


def test_it_makes_what_the_present_form_makes(section: EnvironmentSection) -> None:
    sizes = SplitSizes(4, 1, 2)
    tasks = list(section.checked_tasks(sizes, 3))
    assert tasks == list(PRESENT.checked_tasks(sizes, 3))
    section.check_tasks(tasks)
    assert section.hosting == "workers" and section.has_oracle and not section.offers("make_shared")
    assert not section.offers("domain_words") and section.inputs() == {"words": ""}
    assert section.vocabulary(2) == PRESENT.vocabulary(2)
    assert section.make_projection().alphabet == PRESENT.make_projection().alphabet
    assert section.make_oracle()(tasks[0], 0.3, 1) == PRESENT.make_oracle()(tasks[0], 0.3, 1)
    here, there = section.make(), PRESENT.make()
    (seen, info), (expected, other) = here.reset(tasks[0]), there.reset(tasks[0])
    assert seen == expected and section.explorer_actions(info) == PRESENT.explorer_actions(other)
    assert list(section.renderings()) == ["compact"]


def test_its_section_can_be_sent_to_a_worker_that_plays_it(
    section: EnvironmentSection, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert dict(pickle.loads(pickle.dumps(section))) == dict(section)
    tasks = list(section.checked_tasks(SplitSizes(2, 0, 0), 0))
    words, update = section.rendering("compact", 2), Window(2)
    steps = list(demonstrate(tasks, 4, section, words, update, detour_rate=0.3, seed=0, processes=1))
    same = demonstrate(tasks, 4, PRESENT, words, update, detour_rate=0.3, seed=0)
    assert [[step.response for step in each] for each in steps] == [
        [step.response for step in each] for each in same
    ]


def test_whoever_names_it_reads_once_how_it_is_written_now(
    former: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    first = environment_class(NAME)
    said = capsys.readouterr().err
    assert said.startswith("former_lab.old: an EnvironmentBundle") and "class Old(Envi" in said
    assert said.endswith("params.yaml names the class: former_lab.old:Old\n")
    assert environment_class(NAME) is first and capsys.readouterr().err == ""
