"""Made-up experiments that look like real ones: policies of different skill on the same tasks."""

from __future__ import annotations

import math
import random

import polars as pl
import pytest

from skillpress.core.rollout_files import rollout_frame
from skillpress.core.trajectory import Step, Task, Trajectory
from skillpress.environments.countdown.skills import CountdownProjection
from skillpress.evaluation.analysis.failures import failure_figures, kinds_of_episodes
from skillpress.evaluation.analysis.mdl_report import phrase_table
from skillpress.evaluation.paper.countdown.behavior import countdown_behavior
from skillpress.evaluation.paper.countdown.tables import PANELS
from skillpress.evaluation.paper.layout import paper_tables
from skillpress.evaluation.paper.method_episodes import MethodEpisodes
from skillpress.evaluation.statistics import EvaluationSteps, compare, evaluate, evaluation_steps
from skillpress.reports.report.data import Curve, Example, ExampleStep, PolicyResult, ReportData, Scaling
from skillpress.skills.fit import fit

TASKS = [
    Task(f"task-{i:03d}", "countdown", i, {}, "test", ("many solutions", "few solutions")[i % 2])
    for i in range(120)
]
RUNS = 3


def episode(task: Task, run: int, skill: float, chance: random.Random) -> Trajectory:
    """One made-up episode: a larger ``skill`` in [0, 1] gives more and shorter successes."""
    won = chance.random() < 0.45 + 0.45 * skill - 0.12 * (task.stratum == "few solutions")
    length = min(30, 2 + int(chance.expovariate(1 / (12 * (1 - skill) + 1)))) if won else 30
    kinds = ["+", "-", "*", "/", "rollback", "reset"]
    weights = [4, 3.5, 0.4 + skill, 0.2 + 0.4 * skill, 2 * (1 - skill), 1.5 * (1 - skill)]
    actions = []
    for kind in chance.choices(kinds[:4], weights[:4], k=1) + chance.choices(kinds, weights, k=length - 1):
        a, b = sorted((chance.randint(1, 99), chance.randint(1, 99)), reverse=True)
        actions.append(kind if kind.startswith("r") else f"op({kind}, {a}, {b})")
    steps = tuple(
        Step((), (), (), "", action, "", "inexact" if chance.random() < 0.12 * (1 - skill) else None, ())
        for action in reversed(actions)
    )
    outcome = "won" if won else chance.choice(["timeout", "timeout", "stuck"])
    return Trajectory(
        task.task_id, f"run-{run}/{task.task_id}", 0, steps, won, won, not won, outcome, 0, 0, run=run
    )


def played(skill: float, seed: int = 0) -> EvaluationSteps:
    chance = random.Random(f"{skill} {seed}")
    frame = rollout_frame(episode(task, run, skill, chance) for run in range(RUNS) for task in TASKS)
    return evaluation_steps(frame, seed)


def result(method: str, skill: float, seed: int = 0, baseline: bool = False) -> PolicyResult:
    steps = played(skill, seed)
    summary = evaluate(steps, TASKS, runs=RUNS, votes=1, max_steps=30)
    own = countdown_behavior(steps)
    failures = failure_figures(kinds_of_episodes(steps))
    return PolicyResult(method, summary, seed, baseline, environment_behavior=own, failures=failures)


def play(skill: float, seed: int = 0) -> MethodEpisodes:
    return MethodEpisodes(played(skill, seed), {task.task_id: task for task in TASKS})


def curve(method: str, skill: float, seed: int = 0, steps: int = 120) -> Curve:
    chance = random.Random(f"{method} {seed}")
    rise = [1 - math.exp(-step / 40) for step in range(steps)]
    return Curve(
        method,
        pl.DataFrame(
            {
                "step": [float(step + 1) for step in range(steps)],
                "success": [0.7 + 0.2 * skill * r + chance.gauss(0, 0.03) for r in rise],
                "success_length": [8 - 4 * skill * r + chance.gauss(0, 0.5) for r in rise],
                "invalid": [0.08 - 0.06 * r + abs(chance.gauss(0, 0.01)) for r in rise],
                "entropy": [1.1 - 0.5 * r + chance.gauss(0, 0.02) for r in rise],
                "dictionary/segments": [6 - 3.4 * skill * r + chance.gauss(0, 0.3) for r in rise],
                "dictionary/description_length": [46 - 20 * skill * r + chance.gauss(0, 1.5) for r in rise],
            }
        ),
        seed,
    )


STRAIGHT = ("OP_Add-small-small", "OP_Sub-large-near_target", "OP_Div-near_target-small")
CORPUS = [STRAIGHT] * 14 + [("Reset", *STRAIGHT[:2])] * 9 + [("Rollback", "OP_Mul-small-small")] * 6
DICTIONARY = fit(CORPUS, CountdownProjection.alphabet, 4)
HISTORY = {
    step: fit([*CORPUS[step:], *[STRAIGHT[1:]] * step], CountdownProjection.alphabet, 4).learned_counts
    for step in range(1, 21)
}
SCALING = Scaling(
    pl.DataFrame(
        {
            "sequences": [1000, 10_000, 100_000],
            "fit_s": [0.002, 0.02, 0.2],
            "hf_bpe_s": [0.003, 0.03, 0.3],
            "fit_memory_mib": [1.0, 4.0, 21.0],
        }
    ),
    "a laptop, 2 cores",
    "2026-11-21",
)


def examples() -> list[Example]:
    before = [
        ExampleStep("op(+, 17, 8)", ("OP_Add-small-small",)),
        ExampleStep("op(/, 80, 25)", ("OP_Div-small-small",), invalid=True),
        ExampleStep("hmm", (), invalid=True),
        ExampleStep("rollback", ("Rollback",)),
        ExampleStep("op(*, 17, 8)", ("OP_Mul-small-small",)),
        ExampleStep("reset", ("Reset",)),
        ExampleStep("op(+, 28, 80)", ("OP_Add-small-small",)),
        ExampleStep("op(-, 270, 8)", ("OP_Sub-large-near_target",)),
        ExampleStep("op(-, 130, 17)", ("OP_Sub-near_target-small",)),
    ]
    after = [
        ExampleStep("op(+, 80, 28)", ("OP_Add-small-small",)),
        ExampleStep("op(-, 270, 8)", ("OP_Sub-large-near_target",)),
        ExampleStep("op(/, 262, 2)", ("OP_Div-near_target-small",)),
    ]
    return [
        Example.of("Before training", "Reach 131 from 2, 8, 17, 28, 80", before, DICTIONARY),
        Example.of("After training", "Reach 131 from 2, 8, 17, 28, 80", after, DICTIONARY),
    ]


PARAMETERS = {
    "seed": 0,
    "environment": {"name": "countdown", "max_steps": 30},
    "training": {"steps": 150, "learning_rate": 0.0004, "minibatches": 4},
    "skills": {"max_phrase_length": 4, "buffer": 256, "search": "greedy"},
}
VERSIONS = {"skillpress": "0.1.0", "torch": "2.13.0", "git revision": "4815765", "Python": "3.11.2"}


@pytest.fixture(scope="session")
def experiment() -> ReportData:
    """One method, one seed, with both baselines."""
    return ReportData(
        title="Countdown-Stepwise, segmentation cost",
        policies=[
            result("random explorer", 0.0, baseline=True),
            result("imitation start", 0.5, baseline=True),
            result("segcost", 0.8),
        ],
        curves=[curve("segcost", 0.8)],
        comparisons={
            "imitation start against random explorer": compare(
                played(0.0), played(0.5), max_steps=30, seed=0
            ),
            "segcost against imitation start": compare(played(0.5), played(0.8), max_steps=30, seed=0),
        },
        dictionary=DICTIONARY,
        phrases=phrase_table(DICTIONARY, CORPUS),
        history=HISTORY,
        scaling=SCALING,
        examples=examples(),
        paper_tables=paper_tables(
            {"countdown": {"explorer": play(0.0), "vanilla": play(0.5), "segcost": play(0.8)}},
            {"countdown": PANELS},
        ),
        paper_notes=["Checkpoint: last."],
        parameters=PARAMETERS,
        versions=VERSIONS,
    )


@pytest.fixture(scope="session")
def ablation() -> ReportData:
    """Four methods, three seeds each, with both baselines."""
    methods = {"grpo": 0.62, "round length": 0.72, "segcost, no buffer": 0.76, "segcost": 0.82}
    return ReportData(
        title="Ablation: four rewards, three seeds",
        policies=[
            result("random explorer", 0.0, baseline=True),
            result("imitation start", 0.5, baseline=True),
            *(result(m, skill + 0.02 * seed, seed) for m, skill in methods.items() for seed in range(3)),
        ],
        curves=[curve(m, skill, seed) for m, skill in methods.items() for seed in range(3)],
        parameters=PARAMETERS,
        versions=VERSIONS,
    )
