"""How the start and the trained model of every training win, from the record.

Two operations use up three numbers. So a win within two steps is a first try without a mistake, and one in
four steps or more comes after a try that failed: refused actions, or operations that were taken back.
"""

from __future__ import annotations

from collections.abc import Iterator

from docs.words import NONE, percent, table
from skillpress.pipeline.files import START, TRAINED
from skillpress.pipeline.study.record import RecordedRun
from studies.language_model.names import BENCHMARK, NAMES
from studies.study.results import Results

STEPS = {"two steps or one": (1, 2), "three": (3, 3), "four to six": (4, 6)}
"""A column of the table to the first and last step at which its wins end."""
REFUSED = "9/invalid_rate_success"


def behaviour(results: Results) -> Iterator[str]:
    """A row per training: shares of all episodes by when they were won, and refused actions of those won."""
    heads = (
        "start to trained, percent",
        *(f"won in {words}" for words in STEPS),
        "refused, of the actions in won episodes",
    )
    rows = [
        (
            f"`{method}`, seed {seed}",
            *(_won(results, run, *steps) for steps in STEPS.values()),
            " to ".join(_refused(run, policy) for policy in (START, TRAINED)),
        )
        for method in NAMES
        for seed, run in sorted(results.runs.get((BENCHMARK, method), {}).items())
    ]
    yield from table(heads, rows)


def _won(results: Results, run: RecordedRun, first: int, last: int) -> str:
    shares = []
    for policy in (START, TRAINED):
        steps = results.won_at(run, policy)["won_at"].explode()
        share = steps.is_between(first, last).mean()  # 0 is a loss
        assert share is None or isinstance(share, float)
        shares.append(percent(share))
    return " to ".join(shares)


def _refused(run: RecordedRun, policy: str) -> str:
    figure = run.behavior.get(policy, {}).get(REFUSED)
    return NONE if figure is None else percent(figure[0])
