"""How often does a trial of skills find a difference between an agent and itself?

    python -m benchmarks.trial_false_alarms [--draws 2000] [--result FILE]
    python -m benchmarks.trial_false_alarms --page    # the table of docs/trial.md from the record

Both arms of an A/A trial are the same agent, so each verdict is a false alarm. A result is the share of
trials with p of at most 5%, by the number of tasks and of rollouts k. ``trial`` is the exact sign-flip test
of ``skillpress trial``, ``means`` an unpaired z-test of the shares of won episodes. The agents:

- ``noisy``: each episode is won with its task's own chance, drawn from Beta(1/2, 1/2).
- ``deterministic``: temperature 0. An irrelevant change between the arms, such as a longer prompt, decides
  each task again with that chance, and all k rollouts of an arm then end alike.
- ``identical``: temperature 0 and equal prompts, so both arms end alike.
- ``countdown``: real episodes of the random explorer on Countdown. The k rollouts of both arms are drawn
  without replacement from ``--rollouts`` that were played of each of ``--tasks`` tasks.

``interval`` is the share of 95% intervals of the difference that exclude 0.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from docs.made import made_anew
from skillpress.cli.evaluations.evaluate import main as evaluate
from skillpress.core.distributions import normal_quantile
from skillpress.core.rollout_files import TAKEN, scan_rollouts
from skillpress.core.seeds import derive, generator
from skillpress.core.storage import read_json, write_json, write_text
from skillpress.evaluation.statistics.sign_flips import ERROR, paired_success, sign_flips

RESULT = Path(__file__).parent / "results" / "trial_false_alarms.json"
PAGE = Path(__file__).parents[1] / "docs" / "trial.md"
SHOWN = (5, 20, 100, 500)
"""Numbers of tasks in the page's table."""
TASKS = (5, 10, 20, 50, 100, 200, 500)
ROLLOUTS = (1, 2, 4, 8)
WITH_INTERVALS = 200
"""Trials of each case whose interval is computed, too; a bootstrap takes longer than the test."""
Wins = NDArray[np.int64]
Draw = Callable[[np.random.Generator, int, int], tuple[Wins, Wins]]
"""Draws the won episodes of each task under both arms, for a number of tasks and of rollouts."""


def noisy(rng: np.random.Generator, tasks: int, rollouts: int) -> tuple[Wins, Wins]:
    """Independent episodes with the task's chance."""
    chance = rng.beta(0.5, 0.5, tasks)
    return rng.binomial(rollouts, chance), rng.binomial(rollouts, chance)


def deterministic(rng: np.random.Generator, tasks: int, rollouts: int) -> tuple[Wins, Wins]:
    """Each arm's rollouts of a task end alike."""
    one, other = noisy(rng, tasks, 1)
    return one * rollouts, other * rollouts


def identical(rng: np.random.Generator, tasks: int, rollouts: int) -> tuple[Wins, Wins]:
    """Both arms end alike."""
    one, _ = deterministic(rng, tasks, rollouts)
    return one, one


def played(won: NDArray[np.bool_], rng: np.random.Generator, tasks: int, rollouts: int) -> tuple[Wins, Wins]:
    """Real episodes: some tasks, and of each as many rollouts for both arms.

    Args:
        won: [tasks, rollouts] of the episodes that were played.
    """
    rows = won[rng.permutation(len(won))[:tasks]]
    mixed = rng.permuted(rows, axis=1)[:, : 2 * rollouts].astype(np.int64)
    return mixed[:, :rollouts].sum(axis=1), mixed[:, rollouts:].sum(axis=1)


def means_differ(one: Wins, other: Wins, rollouts: int) -> bool:
    """Whether an unpaired z-test takes the shares of won episodes for different."""
    episodes = len(one) * rollouts
    shares = one.sum() / episodes, other.sum() / episodes
    pooled = (shares[0] + shares[1]) / 2
    error = sqrt(2 * pooled * (1 - pooled) / episodes)
    return bool(abs(shares[1] - shares[0]) > normal_quantile(1 - ERROR / 2) * error)


def alarms(draw: Draw, tasks: int, rollouts: int, draws: int, *place: str) -> dict[str, float]:
    """The shares of A/A trials with a false alarm."""
    rng = generator("trial false alarms", *place, tasks, rollouts)
    pairs = [draw(rng, tasks, rollouts) for _ in range(draws)]
    found = {
        "trial": np.mean([sign_flips(other - one) <= ERROR for one, other in pairs]),
        "means": np.mean([means_differ(one, other, rollouts) for one, other in pairs]),
    }
    ends = [paired_success(one, other, rollouts, derive("ends")) for one, other in pairs[:WITH_INTERVALS]]
    found["interval"] = np.mean([found.low > 0 or found.high < 0 for found in ends])
    return {name: round(float(share), 4) for name, share in found.items()}


def explored(tasks: int, rollouts: int) -> NDArray[np.bool_]:
    """[tasks, rollouts] whether the random explorer won, on test tasks of Countdown."""
    with TemporaryDirectory() as folder:
        options = ["--agent", "explorer", "--environment", "countdown", "--tasks", str(tasks)]
        evaluate([*options, "--votes", str(rollouts), "--output", f"{folder}/played"])
        rows = scan_rollouts(Path(folder, "played", "rollouts.parquet")).filter(TAKEN & (pl.col("step") == 0))
        won = rows.sort("task_id", "rollout_index").select("won").collect()["won"].to_numpy()
    return won.reshape(tasks, rollouts)


def cases(won: NDArray[np.bool_]) -> Iterator[tuple[str, Draw]]:
    """The agents."""
    yield "noisy", noisy
    yield "deterministic", deterministic
    yield "identical", identical
    yield "countdown", partial(played, won)


def measured(won: NDArray[np.bool_], draws: int) -> dict[str, Any]:
    """Agent to number of rollouts to number of tasks to shares."""
    return {
        agent: {
            str(rollouts): {
                str(tasks): alarms(draw, tasks, rollouts, draws, agent)
                for tasks in TASKS
                if agent != "countdown" or (tasks <= len(won) / 2 and 2 * rollouts <= won.shape[1])
            }
            for rollouts in ROLLOUTS
        }
        for agent, draw in cases(won)
    }


def table(found: dict[str, Any]) -> Iterator[str]:
    """The table of the page: the trial's false alarms, and those of the test of means behind them."""
    yield f"| agent | {' | '.join(f'{tasks} tasks' for tasks in SHOWN)} |"
    yield f"|---|{'---|' * len(SHOWN)}"
    for agent in ("noisy", "deterministic", "countdown"):
        for k in ("1", "8"):
            cells = [found[agent][k].get(str(tasks)) for tasks in SHOWN]
            told = [f"{each['trial']:.1%}/{each['means']:.1%}" if each else "–" for each in cells]
            yield f"| {agent}, k = {k} | {' | '.join(told)} |"


def page_of(record: dict[str, Any], text: str) -> str:
    """The page with the table of a record."""
    return made_anew(text, PAGE, {"false_alarms": lambda: table(record)})


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=2_000)
    parser.add_argument("--tasks", type=int, default=400)
    parser.add_argument("--rollouts", type=int, default=17)
    parser.add_argument("--result", type=Path, default=RESULT)
    parser.add_argument("--page", action="store_true")
    chosen = parser.parse_args(arguments)
    if chosen.page:
        write_text(PAGE, page_of(read_json(chosen.result), PAGE.read_text(encoding="utf-8")))
        return
    won = explored(chosen.tasks, chosen.rollouts)
    record = {
        "what": (__doc__ or "").splitlines()[0],
        "draws": chosen.draws,
        "played": {"tasks": chosen.tasks, "rollouts": chosen.rollouts, "won": round(float(won.mean()), 4)},
        **measured(won, chosen.draws),
    }
    write_json(chosen.result, record)


if __name__ == "__main__":
    main()
