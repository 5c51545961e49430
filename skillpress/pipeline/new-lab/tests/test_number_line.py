"""The environment follows its rules, and its demonstrations win."""

from my_lab.number_line import BUNDLE, NAME, Demonstrator, NumberLine, NumberLineParameters, make_tasks

from skillpress.core import Task
from skillpress.environments.bundle import SplitSizes

PARAMETERS = NumberLineParameters(name=NAME, max_steps=12, farthest=24)
SIZES = SplitSizes(12, 4, 8)


def tasks() -> list[Task]:
    return list(make_tasks(PARAMETERS, SIZES, 0))


def test_whoever_reaches_the_goal_has_won_and_whoever_goes_below_0_has_lost() -> None:
    environment = NumberLine(PARAMETERS)
    task = next(task for task in tasks() if task.spec["goal"] == 10)
    environment.reset(task)
    assert not environment.step("leap")[3].won
    assert environment.step("forward")[3].won
    environment.reset(task)
    assert environment.step("back")[3].lost == "fell"


def test_a_task_and_its_actions_give_the_same_episode_again() -> None:
    one, other = NumberLine(PARAMETERS), NumberLine(PARAMETERS)
    for task in tasks():
        assert one.reset(task) == other.reset(task)
        assert one.step("leap") == other.step("leap")


def test_every_demonstration_wins_with_detours_and_without() -> None:
    environment, demonstrate = NumberLine(PARAMETERS), Demonstrator()
    for task in tasks():
        for detours in (0.0, 1.0):
            environment.reset(task)
            ends = [environment.step(move) for move in demonstrate(task, detours, seed=0)]
            assert ends[-1][3].won, task


def test_tasks_are_the_same_again_and_no_goal_is_in_two_splits() -> None:
    assert tasks() == tasks()
    BUNDLE.check_tasks(tasks())
    assert len({task.spec["goal"] for task in tasks()}) == 24
