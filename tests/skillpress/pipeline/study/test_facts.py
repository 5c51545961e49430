"""Facts at the end of won episodes: found by playing the recorded actions again, kept beside the outcomes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from skillpress.core.trajectory import Task
from skillpress.environments.section import SplitSizes
from skillpress.environments.workshop.environment import Workshop
from skillpress.environments.workshop.oracle import routine, shortcut
from skillpress.environments.workshop.parameters import WorkshopParameters
from skillpress.environments.workshop.tasks import make_tasks
from skillpress.pipeline.study import store
from skillpress.pipeline.study.facts import FACT_SCHEMA, FactError, check_facts, played_again
from tests.support.pipeline.small_study import outcomes, recorded, tiny_runs


@pytest.fixture(scope="module")
def task() -> Task:
    return next(make_tasks(SECTION, SplitSizes(train=16, validation=0, test=0), 0))


SECTION = WorkshopParameters(
    name="workshop", max_steps=16, subgoals=2, orders=4, pieces=12,
    shortcut={"length": 4, "skills": "own", "order": "fixed", "share": 0.5}, synonyms=1,
)  # fmt: skip


def test_the_same_actions_give_the_facts_of_the_episodes_end(task: Task) -> None:
    environment = Workshop(SECTION)
    by_routine = played_again(environment, task, routine(task, 0, SECTION))
    by_shortcut = played_again(environment, task, shortcut(task, 0, SECTION))
    assert by_routine == {"by_routine": 1.0, "by_shortcut": 0.0}
    assert by_shortcut == {"by_routine": 0.0, "by_shortcut": 1.0}


def test_actions_that_do_not_win_again_are_refused(task: Task) -> None:
    with pytest.raises(FactError, match=f"task {task.task_id}: its recorded actions no longer win"):
        played_again(Workshop(SECTION), task, routine(task, 0, SECTION)[:-1])


def test_a_fact_that_the_environment_does_not_state_is_refused_with_those_that_it_states() -> None:
    check_facts("workshop", ["by_routine"])
    with pytest.raises(FactError, match="no fact 'by_luck' at the end; it states by_routine, by_shortcut"):
        check_facts("workshop", ["by_luck"])
    with pytest.raises(FactError, match="countdown states no fact 'by_routine' at the end; it states none"):
        check_facts("countdown", ["by_routine"])


def test_facts_are_kept_beside_the_outcomes_of_their_run(tmp_path: Path) -> None:
    first, second, third = tiny_runs(tmp_path / "plan")[:3]
    rows = [("a", "trained", "by_routine", [1.0, 0.0])]
    facts = pl.DataFrame(rows, FACT_SCHEMA, orient="row")
    store.add(tmp_path, recorded(first), outcomes([3, 2]), facts)
    assert store.read_record(tmp_path).facts.rows() == [(first.name, *rows[0])]
    store.add(tmp_path, recorded(second), outcomes([1, 0]))
    store.add(tmp_path, replace(recorded(third)), outcomes([1, 1]), facts)
    assert set(store.read_record(tmp_path).facts["id"]) == {first.name, third.name}


def test_a_record_without_facts_has_no_file_of_them(tmp_path: Path) -> None:
    store.add(tmp_path, recorded(tiny_runs(tmp_path / "plan")[0]), outcomes([3]), FACT_SCHEMA.to_frame())
    assert not (tmp_path / store.FACTS).exists()
    assert store.read_record(tmp_path).facts.is_empty()
