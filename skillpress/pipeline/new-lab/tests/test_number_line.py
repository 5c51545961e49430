"""The environment follows its rules, and its demonstrations win."""

from my_lab.number_line import NumberLine, demonstrate

from skillpress.core import Task
from skillpress.environments import SplitSizes

LINE = NumberLine(name="my_lab.number_line:NumberLine", max_steps=12, farthest=24)
SIZES = SplitSizes(12, 4, 8)


def tasks() -> list[Task]:
    return list(LINE.make_tasks(SIZES, 0))


def test_whoever_reaches_the_goal_has_won_and_whoever_goes_below_0_has_lost() -> None:
    walk = LINE.make()
    task = next(task for task in tasks() if task.spec["goal"] == 10)
    walk.reset(task)
    assert not walk.step("leap")[3].won
    assert walk.step("forward")[3].won
    walk.reset(task)
    assert walk.step("back")[3].lost == "fell"


def test_a_task_and_its_actions_give_the_same_episode_again() -> None:
    one, other = LINE.make(), LINE.make()
    for task in tasks():
        assert one.reset(task) == other.reset(task)
        assert one.step("leap") == other.step("leap")


def test_every_demonstration_wins_with_detours_and_without() -> None:
    walk = LINE.make()
    for task in tasks():
        for detours in (0.0, 1.0):
            walk.reset(task)
            ends = [walk.step(move) for move in demonstrate(task, detours, seed=0)]
            assert ends[-1][3].won, task


def test_tasks_are_the_same_again_and_no_goal_is_in_two_splits() -> None:
    assert tasks() == tasks()
    LINE.check_tasks(tasks())
    assert len({task.spec["goal"] for task in tasks()}) == 24
