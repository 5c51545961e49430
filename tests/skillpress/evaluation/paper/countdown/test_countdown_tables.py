"""Tables 2, 4 and 9 from a random explorer's real episodes, counted again from its actions."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from skillpress.core.rollout_files import rollout_frame
from skillpress.environments.countdown.parameters import CountdownParameters
from skillpress.environments.section import SplitSizes
from skillpress.evaluation.paper.countdown.behavior import countdown_behavior
from skillpress.evaluation.paper.countdown.tables import PANELS, table_4, table_9
from skillpress.evaluation.paper.method_episodes import MethodEpisodes
from skillpress.evaluation.statistics.behavior import general_behavior
from skillpress.evaluation.statistics.episodes import evaluation_steps


@pytest.fixture(scope="module")
def episodes(play):
    parameters = CountdownParameters(
        name="countdown", max_steps=30, min_numbers=3, max_numbers=4, min_target=10, max_target=999
    )
    chance = Random(0)
    made = parameters.make_tasks(SplitSizes(1, 1, 60), 0)
    tasks = [task for task in made if task.split == "test"]
    environment = parameters.make()

    def wander(number, info):
        return "", chance.choice([*info.admissible, "op(/, 1, 0)", "hello"])

    return tasks, [play(environment, task, wander) for task in tasks]


@pytest.fixture(scope="module")
def played(episodes) -> MethodEpisodes:
    tasks, trajectories = episodes
    return MethodEpisodes(
        evaluation_steps(rollout_frame(trajectories)), {task.task_id: task for task in tasks}, max_steps=30
    )


def test_table_4_counts_the_last_operation_of_each_success(played, episodes):
    last = Counter(t.actions[-1][3] for t in episodes[1] if t.won)
    assert sum(last.values()) > 5
    assert [figure.value for figure in table_4(played)] == [last[symbol] for symbol in "+-*/"]


def test_table_9_describes_successes_and_partitions_failures(played, episodes):
    won = [t for t in episodes[1] if t.won]
    found = {figure.key: figure for figure in table_9(played)}
    assert found["success_length"].value == pytest.approx(sum(len(t.steps) for t in won) / len(won))
    resets = [sum(s.action == "reset" and s.invalid is None for s in t.steps) for t in won]
    assert found["resets_per_success"].value == pytest.approx(sum(resets) / len(won))
    assert found["zero_reset_share"].value == pytest.approx(resets.count(0) / len(won))
    lost = Counter("stuck" if len(t.steps) < 30 else "timeout" for t in episodes[1] if not t.won)
    assert found["failures_stuck"].value == pytest.approx(lost["stuck"] / lost.total())
    assert found["failures_stuck"].value + found["failures_timeout"].value == pytest.approx(1)
    assert found["failures_stuck"].episodes == lost.total()


def test_who_gets_stuck_at_the_last_step_took_all_steps_as_table_9_counts_it(played, episodes):
    """A timeout has length T there, a stuck episode is shorter (Table 9's row labels)."""
    steps = {len(t.steps) for t in episodes[1] if t.outcome == "stuck"}
    last = max(steps)
    early = sum(t.outcome == "stuck" and len(t.steps) < last for t in episodes[1])
    shorter = {figure.key: figure for figure in table_9(replace(played, max_steps=last))}
    stuck = shorter["failures_stuck"]
    assert stuck.value * stuck.episodes == pytest.approx(early) and len(steps) > 1
    assert shorter["failures_timeout"].value == pytest.approx(1 - stuck.value)


def test_every_figure_lies_in_its_interval(played):
    for panel in PANELS:
        for figure in panel.figures(played):
            assert figure.low <= figure.value <= figure.high


def test_the_rows_are_those_that_the_paper_printed(played, printed_rows):
    for panel in PANELS:
        keys = [figure.key for figure in panel.figures(played)]
        assert keys == printed_rows(panel.table, "countdown")


def test_a_figure_of_one_name_has_one_value_under_behaviour_and_in_the_tables(played, episodes):
    last = max(len(t.steps) for t in episodes[1] if t.outcome == "stuck")
    shorter = replace(played, max_steps=last)
    behavior = (*general_behavior(shorter.episodes), *countdown_behavior(shorter.steps).figures)
    named = {figure.label: figure.value for figure in behavior}
    in_tables = [figure for panel in PANELS for figure in panel.figures(shorter)]
    both = [figure for figure in in_tables if figure.label in named]
    assert len(both) > 8
    assert {figure.label: figure.value for figure in both} == {f.label: named[f.label] for f in both}
    assert named["Timeout, of failures"] != next(f for f in in_tables if f.key == "failures_timeout").value
