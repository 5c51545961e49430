"""Tables 1, 2, 6 and 7 from episodes of the official games, played by agents with known habits."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from skillpress.core.rollout_files import rollout_frame
from skillpress.core.trajectory import Task
from skillpress.environments.alfworld.games import describe
from skillpress.environments.alfworld.oracle import OmniscientOracle
from skillpress.environments.alfworld.tasks import make_tasks
from skillpress.environments.section import SplitSizes
from skillpress.evaluation.paper.alfworld.tables import PANELS, table_2, table_6, table_7
from skillpress.evaluation.paper.main_table import table_1
from skillpress.evaluation.paper.method_episodes import MethodEpisodes
from skillpress.evaluation.statistics.episodes import evaluation_steps

GAMES = 12
CLEAN, TWO = "ood/pick_clean_then_place_in_recep", "ood/pick_two_obj_and_place"


@pytest.fixture(scope="module")
def tasks(parameters) -> list[Task]:
    """One test game of each split and task type."""
    return [t for t in make_tasks(parameters, SplitSizes(1, 1, GAMES), 0) if t.split == "test"]


@pytest.fixture(scope="module")
def played(play, parameters, environment, tasks):
    """Habit to its play of every game. The straggler stops before the walkthrough's last three steps: before
    it cleans in some games, and after it took something in most."""
    oracle = OmniscientOracle(parameters)
    walkthroughs = {task.task_id: oracle(task, 0.0, 0) for task in tasks}

    def straight(task):
        return lambda number, info: ("", walkthroughs[task.task_id][number])

    def straggler(task):
        actions = walkthroughs[task.task_id][:-3]
        return lambda number, info: ("", actions[number] if number < len(actions) else "look")

    def walker(task):
        chance = Random(task.task_id)
        return lambda number, info: (
            "",
            chance.choice([a for a in info.admissible if a.startswith("go to ")]),
        )

    def by(habit) -> MethodEpisodes:
        episodes = [play(environment, task, habit(task)) for task in tasks]
        return MethodEpisodes(
            evaluation_steps(rollout_frame(episodes)), {task.task_id: task for task in tasks}
        )

    return {habit.__name__: by(habit) for habit in (straight, straggler, walker)}


def figures(rows):
    return {figure.key: figure for figure in rows}


def test_both_splits_are_columns_and_the_walkthrough_wins_them(played):
    iid, ood = table_1(played["straight"])
    assert (iid.key, iid.label, iid.value, iid.episodes) == ("iid", "IID (Pass@1)", 1, GAMES // 2)
    assert (ood.key, ood.label, ood.value, ood.episodes) == ("ood", "OOD (Pass@1)", 1, GAMES // 2)
    assert [figure.value for figure in table_1(played["walker"])] == [0, 0]


def test_table_6_describes_in_distribution_successes_alone(played, tasks):
    episodes = played["straight"].trajectories()
    iid = [t for t in episodes if describe_part(t.task_id) == "valid_seen"]
    assert len(iid) == GAMES // 2
    actions = [t.actions for t in iid]
    found = figures(table_6(played["straight"]))
    assert found["success_length"].value == pytest.approx(sum(map(len, actions)) / len(actions))
    repeated = sum(len(a) - len(set(a)) for a in actions)
    assert found["repetition_rate_success"].value == pytest.approx(repeated / sum(map(len, actions)))
    walks = [[a for a in of_episode if a.startswith("go to")] for of_episode in actions]
    assert found["redundant_visits"].value == pytest.approx(
        sum(len(w) - len(set(w)) for w in walks) / len(walks)
    )
    assert found["invalid_rate_success"].value == 0
    assert [f.value for f in table_2(played["straight"])] == [f.value for f in table_6(played["straight"])][
        :3
    ]
    assert {f.value for f in table_6(played["walker"])} == {None}


def describe_part(task_id: str) -> str:
    """``valid_seen`` or ``valid_unseen``."""
    return task_id.split("/")[0]


def test_who_only_walks_never_picked_a_target(played, tasks):
    ood = sum(task.stratum.startswith("ood/") for task in tasks)
    found = figures(table_7(played["walker"], "ood", "all"))
    assert (found["all_fails"].value, found["all_fails"].episodes) == (ood, ood)
    assert found["all_never_picked_target"].value == ood
    found = figures(table_7(played["walker"], CLEAN, "clean"))
    of_type = sum(task.stratum == CLEAN for task in tasks)
    assert (found["clean_fails"].value, found["clean_picked_no_transform"].value) == (of_type, 0)


def test_failures_are_labelled_by_what_the_engine_had_not_yet_answered(played, tasks):
    """A second count from the engine's own words, which say what was picked up and what was cleaned."""
    expected: Counter[str] = Counter()
    for episode in played["straggler"].trajectories():
        task = played["straggler"].tasks[episode.task_id]
        if episode.won or not task.stratum.startswith("ood/"):
            continue
        target = describe(task.spec["game"]).target_object.lower()
        said = " ".join(step.observation for step in episode.steps)
        picked, cleaned = f"You pick up the {target} " in said, f"You clean the {target} " in said
        expected["fails"] += 1
        expected["never_picked_target"] += not picked
        expected["no_clean"] += task.stratum == CLEAN and picked and not cleaned
    found = figures(table_7(played["straggler"], "ood", "all"))
    assert found["all_fails"].value == expected["fails"] > 0
    assert found["all_never_picked_target"].value == expected["never_picked_target"]
    found = figures(table_7(played["straggler"], CLEAN, "clean"))
    assert found["clean_picked_no_transform"].value == expected["no_clean"] > 0


def test_one_object_delivered_of_two_is_a_partial_delivery(play, parameters, environment, tasks):
    """All of a walkthrough except its last delivery."""
    (task,) = (task for task in tasks if task.stratum == TWO)
    actions = OmniscientOracle(parameters)(task, 0.0, 0)
    last = max(i for i, action in enumerate(actions) if action.startswith(("move", "put")))
    episode = play(environment, task, lambda n, info: ("", actions[n] if n < last else "look"))
    rows = table_7(
        MethodEpisodes(evaluation_steps(rollout_frame([episode])), {task.task_id: task}), TWO, "two"
    )
    assert {f.key: f.value for f in rows} == {
        "two_fails": 1, "two_never_picked_target": 0, "two_two_partial_deliver": 1,
    }  # fmt: skip


def test_no_success_is_labelled_a_failure(played):
    for stratum, part in (("ood", "all"), (CLEAN, "clean"), (TWO, "two")):
        assert {figure.value for figure in table_7(played["straight"], stratum, part)} == {0}


def test_the_rows_are_those_that_the_paper_printed(played, printed_rows):
    rows: dict[int, list[str]] = {}
    for panel in PANELS:
        rows.setdefault(panel.table, []).extend(f.key for f in panel.figures(played["straight"]))
    assert rows == {table: printed_rows(table, "alfworld") for table in rows}
