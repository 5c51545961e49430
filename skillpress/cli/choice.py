"""``skillpress choice EXPERIMENT ...``: whether a segmentation cost can choose reuse on a benchmark.

    skillpress choice .
    skillpress choice workspaces/mine-seed0 workspaces/mine-seed1 workspaces/mine-seed2

Reads what an experiment's start policy won (``skillpress run --stages project_skills`` makes it), before
anything is trained, and tests the four conditions of docs/critical_experiment.md. Each figure has its number
of tasks and a 95% interval: over the tasks of one experiment, or over several, which are seeds of one
benchmark. ``rollouts.per_task`` should be 8 or so, as in training.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from skillpress.core.arguments import CommandParser
from skillpress.core.errors import ParamsError, StorageError
from skillpress.evaluation.analysis.choice import Choice, choice, read_wins
from skillpress.evaluation.analysis.reuse_conditions import (
    DIFFER,
    FEWEST,
    INDIFFERENT,
    LENGTH,
    Conditions,
    conditions,
)
from skillpress.experiment.params import Params, load_params
from skillpress.pipeline.files import SEQUENCES

SECTIONS = ("environment", "tasks", "policy", "imitation", "engine", "sampling", "rollouts", "skills")
"""Sections that make start policies, what they play and how that is judged."""


def choice_of(experiment: Path) -> Choice:
    """What a segmentation cost can choose from in the wins of an experiment's start policy.

    Raises:
        ParamsError: its parameters are missing or wrong.
        StorageError: its skill sequences are missing, damaged, or of another environment.
    """
    params = load_params(experiment / "params.yaml")
    wins = read_wins(experiment / SEQUENCES)
    alphabet = params.environment.make_projection().alphabet
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
        per_segment=_per_segment(params),
        seed=params.seed,
    )


def _per_segment(params: Params) -> float:
    return params.reward.shaping_weight / params.environment.max_steps / params.reward.success


def check_seeds_of_one_benchmark(experiments: Sequence[Path]) -> None:
    """Refuse experiments whose figures cannot be averaged: two of one seed, or of other parameters.

    Raises:
        ParamsError: the message names the experiment and what differs; or parameters are wrong.
    """
    known: dict[int, Path] = {}
    first = _of_the_benchmark(load_params(experiments[0] / "params.yaml"))
    for experiment in experiments:
        params = load_params(experiment / "params.yaml")
        if params.seed in known:
            raise ParamsError(
                f"{experiment}: has the seed of {known[params.seed]}, {params.seed}; name each start policy "
                "once, and start policies of different seeds"
            )
        known[params.seed] = experiment
        mine = _of_the_benchmark(params)
        if different := [name for name in mine if mine[name] != first[name]]:
            raise ParamsError(
                f"{experiment / 'params.yaml'}: {', '.join(different)} not as in "
                f"{experiments[0] / 'params.yaml'}; name seeds of one benchmark, or look at each separately"
            )


def _of_the_benchmark(params: Params) -> dict[str, object]:
    """What start policies of one benchmark have in common, by name."""
    return {
        **{name: getattr(params, name) for name in SECTIONS},
        "training.tasks_per_step": params.training.tasks_per_step,
        "reward.shaping_weight / reward.success": params.reward.shaping_weight / params.reward.success,
    }


def lines(found: Conditions) -> Iterator[str]:
    """The conditions, a line each, and the verdict."""
    policies = f"{found.policies} start polic{'y' if found.policies == 1 else 'ies'}"
    over = "tasks" if found.policies == 1 else "start policies"
    yield f"{found.tasks} tasks of {policies}, {found.won_twice} of them won twice or more"
    if found.ways is not None:
        ways = found.ways
        yield (
            f"{ways.several} of these in several ways, {ways.equal_length} in several ways of equal length, "
            f"{ways.differ} in ways of equal length and unequal cost"
        )
    yield f"figures with their 95% intervals over {over}; fewer than {FEWEST} tasks decide nothing"
    if found.differ is None or found.worth is None:
        yield "1 a choice: no task was won twice; raise rollouts.tasks or rollouts.per_task"
    else:
        yield f"1 a choice: {found.differ.in_words('.0%')} have wins of different cost (above {DIFFER:.0%})"
        yield (
            f"2 its worth: the penalty deviates in a task by {found.worth.in_words('.1%')} of a success "
            f"(above {INDIFFERENT:.0%})"
        )
    if found.length is not None and found.others is not None:
        yield (
            f"3 not length: correlation {found.length.in_words('+.2f')} with the length of a win "
            f"(below {LENGTH})"
        )
        yield f"4 reuse: correlation {found.others.in_words('+.2f')} with other tasks' phrases (above 0)"
    whose = "from this start policy, " if found.policies == 1 else ""
    yield f"{whose}a segmentation cost can choose reuse: {found.verdict}"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = CommandParser(description=__doc__)
    parser.add_argument("experiments", type=Path, nargs="+", metavar="EXPERIMENT", help="a run's folder")
    parser.add_run_code()
    chosen = parser.parse_args(arguments)
    check_seeds_of_one_benchmark(chosen.experiments)
    print("\n".join(lines(conditions([choice_of(folder) for folder in chosen.experiments]))))
    return 0
