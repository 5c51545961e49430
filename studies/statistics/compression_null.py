"""Question 6 of the study with a known truth: no policy differs in anything that its gap depends on.

    python -m studies.statistics.compression_null [--repeats 40] [--result FILE]

It imitates cooking's probes: 5 seeds of 8 runs with 9 probes of 128 training and 128 unseen tasks, analysed
by the study's own code. Episodes are won by chance alone: 88.7% on training tasks and 34.8% on unseen ones,
as in the study. There are two truths, both without any relation between compression and the gap:

``alike``
    One policy plays every probe, with new tasks each time.
``seeds_differ``
    The runs of a seed share the tasks of their probes, and a seed's unseen tasks are easier or harder than
    another's (a deviation of 7 points, as observed). This is independent of what its training tasks need.

Each repeat gives four figures: the partial correlation of the certificate and the gap given only the length
of successes (the study's first analysis), given their number too (its present one), the same within seeds,
and whether the slope's test finds an effect.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from benchmarks.skill_corpora import COOKING, Sequences, cooking_like
from skillpress.core.seeds import generator
from skillpress.core.storage import write_json
from skillpress.experiment.params import load_params
from skillpress.skills.parameters import SkillParameters
from skillpress.training.loop.describing.probes import TRAIN, UNSEEN, ProbedEpisode, probe_rows
from studies.statistics.compression import gaps, partial_correlation, predict

RESULT = Path(__file__).with_suffix(".json")
SEEDS, RUNS, PROBES, TASKS = 5, 8, 9, 128
WON = {TRAIN: 0.887, UNSEEN: 0.348}
"""The share of tasks won, by split."""
BETWEEN_SEEDS = 0.07
"""The deviation of the unseen share between seeds."""
MAX_STEPS = 40
Truth = Literal["alike", "seeds_differ"]


@cache
def short_meals() -> Sequences:
    """Successes of about the length of cooking's in the study, 7 steps."""
    return [sequence for sequence in cooking_like(2_000, seed=0) if len(sequence) <= 9]


def null_probes(truth: Truth, seed: int, skills: SkillParameters, runs: int = RUNS) -> pl.DataFrame:
    """Probes of whole splits, in the form that :func:`studies.statistics.compression.gaps` reads."""
    pool, found = short_meals(), []
    for number in range(SEEDS):
        of_seed = generator(seed, truth, number)
        tasks = of_seed.integers(len(pool), size=TASKS)
        unseen = WON[UNSEEN] + of_seed.normal(0, BETWEEN_SEEDS)
        for run in range(runs):
            for step in range(PROBES):
                rng = generator(seed, truth, number, run, step)
                if truth == "alike":
                    tasks, unseen = rng.integers(len(pool), size=TASKS), WON[UNSEEN]
                won = rng.random((2, TASKS)) < [[WON[TRAIN]], [unseen]]
                episodes = [
                    ProbedEpisode(
                        split,
                        place,
                        stratum="",
                        won=bool(won[side, place]),
                        steps=len(pool[task]),
                        skills=pool[task],
                    )
                    for side, split in enumerate((TRAIN, UNSEEN))
                    for place, task in enumerate(tasks)
                ]
                rows = probe_rows(step, episodes, COOKING, skills, MAX_STEPS, seed)
                whole = [row for row in rows if "stratum" not in row]
                found += [{"run": f"{number}-{run}", "seed": number, **row} for row in whole]
    return pl.DataFrame(found, infer_schema_length=None)


def given_the_length_alone(rows: pl.DataFrame) -> float:
    """The partial correlation of the study's first analysis."""
    gap, measure, length = (rows[name].to_numpy() for name in ("gap", "certificate", "steps"))
    return partial_correlation(gap, measure, length)


def measured(truth: Truth, repeats: int, skills: SkillParameters) -> dict[str, Any]:
    """The findings of the analyses in data without an effect."""
    found: dict[str, list[float]] = {"length": [], "length_and_corpus": [], "within_seeds": [], "shown": []}
    for repeat in range(repeats):
        rows = gaps(null_probes(truth, repeat, skills))
        now = predict("null", "certificate", rows)
        assert now.partial is not None and now.within_seeds is not None and now.p is not None
        values = (given_the_length_alone(rows), now.partial, now.within_seeds, float(now.p < 0.05))
        for name, value in zip(found, values, strict=True):
            found[name].append(value)
    shown = found.pop("shown")
    return {
        "partial_correlation": {name: _summary(values) for name, values in found.items()},
        "slope_found_at_5_percent": float(np.mean(shown)),
    }


def _summary(values: Sequence[float]) -> dict[str, float]:
    low, high = np.quantile(values, [0.025, 0.975])
    return {"mean": float(np.mean(values)), "low": float(low), "high": float(high)}


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--result", type=Path, default=RESULT)
    chosen = parser.parse_args(arguments)
    skills = load_params().skills
    shape = {"seeds": SEEDS, "runs_of_a_seed": RUNS, "probes_of_a_run": PROBES, "tasks_of_a_probe": TASKS}
    truths: tuple[Truth, ...] = ("alike", "seeds_differ")
    found = {str(truth): measured(truth, chosen.repeats, skills) for truth in truths}
    write_json(chosen.result, {"what": __doc__.splitlines()[0], "repeats": chosen.repeats, **shape, **found})


if __name__ == "__main__":
    main()
