"""``skillpress choice EXPERIMENT ...``: whether a segmentation cost can choose reuse on a benchmark.

    skillpress choice .
    skillpress choice workspaces/mine-seed0 workspaces/mine-seed1 workspaces/mine-seed2

Reads what an experiment's start policy won (``skillpress run --stages project_skills`` makes it), before
anything is trained, and tests the four conditions of docs/critical_experiment.md. Several experiments are
seeds of one benchmark; the intervals are over them. ``rollouts.per_task`` should be 8 or so, as in training.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from skillpress.core.arguments import Parser
from skillpress.core.errors import StorageError
from skillpress.environments import bundle
from skillpress.experiment.params import load_params
from skillpress.measure.analysis.choice import Choice, choice, read_wins
from skillpress.measure.analysis.reuse_conditions import (
    DIFFER,
    INDIFFERENT,
    LENGTH,
    Conditions,
    conditions,
)
from skillpress.pipeline.files import SEQUENCES


def choice_of(experiment: Path) -> Choice:
    """What the start policy of an experiment leaves to choose from.

    Raises:
        ParamsError: its parameters are missing or wrong.
        StorageError: its skill sequences are missing, damaged, or of another environment.
    """
    params = load_params(experiment / "params.yaml")
    wins = read_wins(experiment / SEQUENCES)
    alphabet = bundle(params.environment.name).projection_of(params.environment).alphabet
    if strange := {skill for won in wins.values() for win in won for skill in win} - set(alphabet):
        raise StorageError(
            f"{experiment / SEQUENCES}: has the skill {min(strange)!r}, which is not one of "
            f"{params.environment.name}, the environment of {experiment / 'params.yaml'}"
        )
    return choice(
        wins,
        alphabet,
        params.skills,
        tasks_per_batch=params.training.tasks_per_step,
        per_segment=params.reward.efficiency / params.environment.max_steps,
        seed=params.seed,
    )


def lines(found: Conditions) -> Iterator[str]:
    """The conditions, a line each, and the verdict."""
    tasks = f"{found.tasks} tasks of {found.policies} start polic{'y' if found.policies == 1 else 'ies'}"
    yield f"{tasks}, {found.won_twice} of them won twice or more"
    if found.differ is None or found.reward is None or found.length is None or found.others is None:
        yield "1 a choice: no; no task was won in two ways that need different numbers of segments"
    else:
        yield f"1 a choice: {found.differ:.0%} of these have wins of different cost (at least {DIFFER:.0%})"
        yield f"2 its worth: the penalty deviates by {found.reward:.2f} in a task (at least {INDIFFERENT})"
        yield f"3 not length: correlation {found.length.in_words()} with the length of a win (below {LENGTH})"
        yield f"4 reuse: correlation {found.others.in_words()} with other tasks' phrases (above 0)"
    if found.policies == 1 and not found.failed:
        yield "no condition fails for this start; three seeds and more have intervals"
    else:
        yield f"a segmentation cost can choose reuse: {found.verdict}"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = Parser(description=__doc__)
    parser.add_argument("experiments", type=Path, nargs="+", metavar="EXPERIMENT", help="a run's folder")
    chosen = parser.parse_args(arguments)
    print("\n".join(lines(conditions([choice_of(folder) for folder in chosen.experiments]))))
    return 0
