"""Seeds as tasks: a gymnasium environment has no other notion of a task.

Two splits never share a seed. What a seed determines depends on the environment: if it draws one of 40 secret
words, a test task has a secret that also occurs in training. The first task is used to test whether the same
seed starts the same episode, since replays and comparisons require that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import count, islice

from gymnasium.error import Error

from skillpress.core.errors import ParamsError, TaskError
from skillpress.core.seeds import derive
from skillpress.core.trajectory import Task
from skillpress.environments.gymnasium_text.environment import GymnasiumText
from skillpress.environments.gymnasium_text.foreign import make_foreign
from skillpress.environments.gymnasium_text.names import EPISODES, check_info_keys
from skillpress.environments.gymnasium_text.parameters import GymnasiumTextParameters
from skillpress.environments.section import SplitSizes
from skillpress.environments.splits import refuse_repetitions

ENVIRONMENT = "gymnasium_text"
_SEEDS = 2**31
"""Seeds are below this number, which every generator accepts."""


def make_tasks(parameters: GymnasiumTextParameters, sizes: SplitSizes, seed: int) -> Iterator[Task]:
    """Yield the tasks of all splits, one split after the other.

    Raises:
        ParamsError: the environment cannot be made or started, or never states what the section names.
        TaskError: it starts differently with the same seed.
    """
    environment = GymnasiumText(parameters)
    splits = ["train"] * sizes.train + ["validation"] * sizes.validation + ["test"] * sizes.test
    for number, (split, drawn) in enumerate(zip(splits, _seeds(seed), strict=False)):
        task = Task(
            task_id=f"{parameters.id}#{drawn}",
            environment=ENVIRONMENT,
            seed=drawn,
            spec={"id": parameters.id},
            split=split,
            stratum=parameters.id,
        )
        if not number:
            _try_twice(environment, task)
            with closing(make_foreign(parameters)) as fresh:
                check_info_keys(parameters, fresh, list(islice(_seeds(seed), EPISODES)))
        yield task


def _try_twice(environment: GymnasiumText, task: Task) -> None:
    try:
        same = environment.reset(task)[0] == environment.reset(task)[0]
    except Error as error:
        raise ParamsError(f"environment.id: {task.spec['id']} cannot be started: {error}") from error
    if not same:
        raise TaskError(
            f"environment.id: {task.spec['id']} says different things after two resets with seed "
            f"{task.seed}; episodes that cannot be replayed cannot be tasks"
        )


def _seeds(seed: int) -> Iterator[int]:
    """Yield different seeds without end."""
    seen: set[int] = set()
    for number in count():
        drawn = derive(seed, "gymnasium tasks", number) % _SEEDS
        if drawn not in seen:
            seen.add(drawn)
            yield drawn


def check_tasks(tasks: Sequence[Task]) -> None:
    """Refuse a task set that is not for gymnasium's environments, or repeats a seed."""
    refuse_repetitions(tasks, ENVIRONMENT, "seed", lambda task: str(task.seed))
