"""Comparison of methods over seeds, from handwritten rollouts: seeds that share a game count it once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import stdev

import pytest
import yaml
from scipy.stats import binomtest, t

from skillpress.core.rollout_files import write_rollouts
from skillpress.core.trajectory import Step, Trajectory
from skillpress.experiment.params import load_params, read_yaml
from skillpress.pipeline.files import EVALUATION_ROLLOUTS
from skillpress.pipeline.finished.comparison import as_json, paired_tests, starts, table, text, verdict
from skillpress.pipeline.finished.run import FinishedRun
from skillpress.training.loop.keeping.selected_checkpoint import SelectedCheckpoint

STEP = Step((1,), (2,), (0.0,), "", "go", "", None, ())


def finished(folder: Path, repository: Path, method: str, seed: int, wins: Mapping[str, str]) -> FinishedRun:
    """``wins``: the trained policy's episodes of each task; the baselines lose them all."""
    (folder / EVALUATION_ROLLOUTS).parent.mkdir(parents=True)
    (folder / "params.yaml").write_text(
        yaml.safe_dump({**read_yaml(repository / "params.yaml"), "seed": seed})
    )
    write_rollouts(
        folder / EVALUATION_ROLLOUTS,
        [
            Trajectory(task, f"{policy}/run-{run}/{task}", 0, (STEP,), won, won, not won,
                       "won" if won else "timeout", 0, 0, policy=policy, run=run)
            for policy in ("explorer", "start", "trained")
            for task, digits in wins.items()
            for run, digit in enumerate(digits)
            for won in [policy == "trained" and digit == "1"]
        ],
    )  # fmt: skip
    return FinishedRun(
        folder=folder,
        params=load_params(folder / "params.yaml"),
        checkpoint=SelectedCheckpoint("last", 0, None),
        tasks=(),
        label=method,
    )


@pytest.fixture
def make(tmp_path: Path, repository: Path):
    def make(method: str, seed: int, **wins: str) -> FinishedRun:
        return finished(tmp_path / f"{method}-seed{seed}", repository, method, seed, wins)

    return make


def test_games_of_every_seed_count_once_in_the_interval_of_a_method(make) -> None:
    games = {f"game-{n}": "10" if n % 2 else "01" for n in range(20)}
    trained = table([make("grpo", seed, **games) for seed in range(3)])[-1]
    expected = binomtest(10, 20).proportion_ci(method="wilson")
    assert (trained.method, trained.seeds, trained.tasks) == ("grpo", 3, 20)
    assert (trained.low, trained.pass_at_1, trained.high) == pytest.approx((expected.low, 0.5, expected.high))


def test_tasks_of_one_seed_alone_count_each(make) -> None:
    runs = [
        make("grpo", seed, **{f"{seed}{n}": "1" if n < 5 + seed else "0" for n in range(20)})
        for seed in (0, 1)
    ]
    trained = table(runs)[-1]
    expected = binomtest(11, 40).proportion_ci(method="wilson")
    assert trained.tasks == 40
    assert (trained.low, trained.high) == pytest.approx((expected.low, expected.high))


def test_the_luck_of_training_has_an_interval_of_its_own(make) -> None:
    shares = {0: 5, 1: 8, 2: 9}
    runs = [
        make("grpo", seed, **{f"{seed}-{n}": "1" if n < wins else "0" for n in range(20)})
        for seed, wins in shares.items()
    ]
    trained = table(runs)[-1]
    rates = [wins / 20 for wins in shares.values()]
    mean, error = sum(rates) / 3, stdev(rates) / 3**0.5
    squared = t.ppf(0.975, 2) ** 2
    for end in (trained.trainings_low, trained.trainings_high):
        # the error that a share of ``end`` would have, given this one's (Wilson's form: few tasks)
        assert (end - mean) ** 2 == pytest.approx(squared * error**2 * end * (1 - end) / (mean * (1 - mean)))
    assert trained.trainings_low < mean < trained.trainings_high
    assert table(runs[:1])[-1].trainings_low is None


def test_methods_are_paired_by_seed_and_unfinished_seeds_left_out(make) -> None:
    base = [make("grpo", seed, a="1", b="0") for seed in (0, 1)]
    other = [make("segcost", seed, a="1", b="1") for seed in (1, 2)]
    tests = paired_tests([*base, *other])
    assert [name for name in tests if not name.endswith("random explorer")] == ["segcost against grpo"]
    found = tests["segcost against grpo"]
    assert (found.seeds, found.tasks, found.first_episodes) == (1, 2, 2)
    assert found.tests[-1].per_seed == (0.5,)
    assert found.tests[-1].mcnemar_p == 1 and found.tests[-1].trainings is None


def test_a_line_says_what_ran_whatever_its_overlay_is_called(make) -> None:
    *floors, row = table([make("grpo", seed, a="1", b="0") for seed in (0, 1)])
    assert [(one.method, one.ran) for one in floors] == [(one.method, one.method) for one in floors]
    assert (row.method, row.ran) == ("grpo", "SegCost (buffer)")
    assert [line.endswith("; it is SegCost (buffer)") for line in text([*floors, row], {})] == [
        False,
        False,
        True,
    ]


def test_the_baselines_of_one_method_are_not_called_those_of_methods_that_start_differently(make) -> None:
    one, same, other = (make(name, 0, a="1", b="0") for name in ("grpo", "segcost", "history"))
    policy = other.params.policy.model_copy(update={"history": 1})
    other = replace(other, params=other.params.model_copy(update={"policy": policy}))
    assert [row.method for row in table([one, same])][:2] == ["random explorer", "imitation start"]
    assert [row.method for row in table([one, same, other])][:2] == [
        "random explorer of grpo",
        "imitation start of grpo",
    ]
    groups = {run.label: [run] for run in (one, same, other)}
    assert starts(groups) == {"grpo": " of grpo", "segcost": " of grpo", "history": " of history"}


def test_every_seed_of_two_methods_is_in_their_test(make) -> None:
    base = [make("grpo", seed, a="00", b="00", c="11") for seed in range(3)]
    other = [make("segcost", seed, a="11", b="0" + "01"[seed % 2], c="11") for seed in range(3)]
    rows, tests = table([*base, *other]), paired_tests([*base, *other])
    found = tests["segcost against grpo"]
    assert (found.seeds, found.tasks) == (3, 3)
    assert found.tests[-1].per_seed == pytest.approx((1 / 3, 1 / 2, 1 / 3))
    assert found.tests[-1].mcnemar_p is None and found.tests[-1].trainings.seeds == 3
    assert as_json(rows, tests)["comparisons"]["segcost against grpo"]["tests"][-1]["trainings"]["seeds"] == 3
    last = list(text(rows, tests))[-1]
    assert last.startswith("segcost against grpo: +0.389; these policies [")
    assert last.endswith(", of signs 0.250 (3 seeds)") and "; other trainings [" in last


def test_each_method_is_tested_against_the_random_explorer_on_all_of_its_seeds(make) -> None:
    base = [make("grpo", seed, a="11", b="10") for seed in (0, 1)]
    other = [make("segcost", seed, a="10", b="00") for seed in (1, 2)]
    tests = paired_tests([*base, *other])
    floors = {name: test.tests[-1].difference for name, test in tests.items() if "explorer" in name}
    assert floors == {"grpo against random explorer": 0.75, "segcost against random explorer": 0.25}


def test_the_page_begins_with_levels_and_says_in_words_what_is_below_random(make) -> None:
    games = {f"game-{n}": "1" if n % 4 else "0" for n in range(40)}
    rows, tests = table(runs := [make("grpo", 0, **games)]), paired_tests(runs)
    said = verdict(rows, tests)
    assert said.startswith("Success on 40 held-out tasks: grpo 75.0% (")
    assert "1 seed; random explorer 0.0% (" in said and "below" not in said
    name = "grpo against random explorer"
    upside_down = {
        name: replace(
            tests[name], tests=(replace(tests[name].tests[-1], difference=-0.3, low=-0.4, high=-0.2),)
        )
    }
    assert "grpo is below the random explorer, by 30.0 points (20.0 to 40.0)." in verdict(rows, upside_down)
    assert list(text(rows, upside_down))[-1].endswith(": below it")
    assert next(text(rows, tests)).endswith("; 1 seed, 40 tasks")
