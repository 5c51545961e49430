"""The paper's ablation of its greedy search (section 6.1, appendix F.1), with our own seeds.

    python -m benchmarks.f1_ablation [--params benchmarks/f1_ablation.yaml] [--groups N] [--only-nats]

For each group of sequences it computes the greedy and refined dictionaries, the optimum that keeps all
singletons (*BF-all-singletons*) and the optimum that may drop them (*BF-original*). The paper enumerates.
Here both optima come from mixed-integer programs with a proof, so their times are not comparable with the
paper's.

**In nats and without the log2 L of Eq. 2** the paper's 7.24 and 7.25 are reproduced. On its uniform corpus
the singletons cost (5 / 10 + 4) ln 5 = 7.2425 on average, and a merge pays in about one group of a hundred.
``nats_without_lengths`` is that variant. Its greedy search is ``greedy_reference.py`` (the fast one always
stores the lengths), so it has no times.

Two of the paper's figures cannot be reproduced from its text:

- 7.01 and 66.34% for *BF-original*: in nats, giving up singletons gains 0.1%, in 4 of 205 groups.
- 285x contradicts its own times, 11.86 ms against 0.053 ms: that is 223x.

Three remarks help to read the others:

- "Around 200" groups: 24308.5 ms at 118.58 ms each, and 10.9 ms at 0.053 ms, give 205. 99.02% and 66.34% are
  203 and 136 of 205, so these are shares of groups with the same phrases, not shares of phrases.
- By Eq. 3 as printed, its corpus (5 skills, uniform lengths 2 to 6, uniform skills, 10 sequences) leaves
  nothing for greedy to merge, and the mean is 11.4 bits.
- *BF-original* lies outside the class of Eq. 4, which holds every singleton.

``routines`` is therefore a second corpus of the same size in which merging pays.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from functools import partial
from math import log, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from benchmarks.greedy_reference import greedy_reference
from skillpress.core.seeds import generator
from skillpress.core.storage import write_json
from skillpress.skills.corpus import Corpus, FoundPhrases, Phrase, count_numbers
from skillpress.skills.search.exact import (
    TIME_LIMIT,
    best_without_singletons,
    search_exactly,
    search_within,
    total_bits,
)
from skillpress.skills.search.greedy import search_greedily
from skillpress.skills.search.refined import search_refined

DEFAULT = Path(__file__).with_suffix(".yaml")
RESULT = Path(__file__).parent / "results" / "f1_ablation.json"
REPEATS = 20
"""Runs of the fast searches per group; the median counts."""

NO_LENGTHS = 1
"""L in the description length when phrases are stored without their lengths: log2 1 = 0."""

PAPER = {
    "greedy_mean_penalty": 7.25,
    "all_singletons_mean_penalty": 7.24,
    "original_mean_penalty": 7.01,
    "identical_with_all_singletons_percent": 99.02,
    "identical_with_original_percent": 66.34,
    "milliseconds": {"greedy": 0.053, "all_singletons": 11.86, "original": 118.58},
}
"""The figures of appendix F.1; it names no unit."""

Outcome = dict[str, tuple[float, frozenset[Phrase]]]
"""Search to (cost per sequence, phrases of two or more skills)."""


def make_group(kind: str, params: dict[str, Any], number: int) -> list[Phrase]:
    """The sequences of one group, each of ``min_length`` to ``max_length`` skills."""
    rng = generator(params["seed"], "f1", kind, number)
    lengths = rng.integers(params["min_length"], params["max_length"] + 1, params["sequences"])
    if kind == "uniform":
        return [tuple(rng.integers(0, params["alphabet"], length).tolist()) for length in lengths]
    routines = [rng.integers(0, params["alphabet"], rng.integers(2, 5)) for _ in range(params["routines"])]
    return [_run_through(routines, int(length), rng) for length in lengths]


def _run_through(routines: list[np.ndarray], length: int, rng: np.random.Generator) -> Phrase:
    skills: list[int] = []
    while len(skills) < length:
        skills += routines[rng.integers(len(routines))].tolist()
    return tuple(skills[:length])


def timed(search: Callable[[], FoundPhrases], repeats: int) -> tuple[FoundPhrases, float]:
    """The result and the median of its milliseconds."""
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        found = search()
        seconds.append(time.perf_counter() - started)
    return found, 1000 * statistics.median(seconds)


def compare(corpus: Corpus, longest: int) -> tuple[Outcome, dict[str, float]]:
    """Costs in bits by Eq. 3 as printed, and milliseconds per search."""
    runs: dict[str, tuple[Callable[[], FoundPhrases], int]] = {
        "greedy": (lambda: search_greedily(corpus, longest, 0), REPEATS),
        "refined": (lambda: search_refined(corpus, longest, 0), REPEATS),
        "all_singletons_optimum": (lambda: search_exactly(corpus, longest, 0), 1),
        "original_optimum": (lambda: best_without_singletons(corpus, longest), 1),
    }
    outcome, times = {}, {}
    for name, (search, repeats) in runs.items():
        found, times[name] = timed(search, repeats)
        bits = (
            total_bits(corpus, found.phrases, longest) / corpus.sequences
            if repeats > 1
            else found.lower_bound
        )
        assert bits is not None
        outcome[name] = (bits, learned(found.phrases))
    return outcome, times


def compare_in_nats(group: list[Phrase], alphabet_size: int, longest: int) -> Outcome:
    """Costs in nats by Eq. 3 without the log L of Eq. 2."""
    corpus = count_numbers(group, alphabet_size)
    nats = partial(total_bits, corpus, max_phrase_length=longest, coded_length=NO_LENGTHS)
    merged = greedy_reference(group, alphabet_size, longest, NO_LENGTHS)
    optimum = search_within(corpus, longest, TIME_LIMIT, NO_LENGTHS)
    original = best_without_singletons(corpus, longest, NO_LENGTHS)
    assert optimum.lower_bound is not None and original.lower_bound is not None
    return {
        "singletons": (nats([]) / len(group) * log(2), frozenset()),
        "greedy": (nats(merged) / len(group) * log(2), learned(merged)),
        "all_singletons_optimum": (optimum.lower_bound * log(2), learned(optimum.phrases)),
        "original_optimum": (original.lower_bound * log(2), learned(original.phrases)),
    }


def learned(phrases: list[Phrase]) -> frozenset[Phrase]:
    """The phrases of two or more skills."""
    return frozenset(phrase for phrase in phrases if len(phrase) > 1)


def tabulate(groups: list[Outcome], unit: str) -> dict[str, dict[str, float]]:
    """Per search: the mean cost, greedy's excess over it, and how often greedy finds the same phrases."""
    greedy = statistics.mean(group["greedy"][0] for group in groups)
    table = {}
    for name in groups[0]:
        mean = statistics.mean(group[name][0] for group in groups)
        same = statistics.mean(group[name][1] == group["greedy"][1] for group in groups)
        table[name] = {
            f"mean_{unit}": round(mean, 4),
            "greedy_above_percent": round(100 * (greedy / mean - 1), 3),
            "groups_with_greedys_phrases_percent": round(100 * same, 2),
        }
    return table


def merging_percent(groups: list[Outcome]) -> float:
    """Percentage of groups in which greedy accepts a merge."""
    return round(100 * statistics.mean(bool(group["greedy"][1]) for group in groups), 2)


def run(kind: str, params: dict[str, Any]) -> dict[str, Any]:
    """The table of one kind of corpus, with times."""
    groups, times = zip(
        *(
            compare(
                count_numbers(make_group(kind, params, number), params["alphabet"]),
                params["max_phrase_length"],
            )
            for number in range(params["groups"])
        ),
        strict=True,
    )
    table = tabulate(list(groups), "bits")
    mean_times = {name: statistics.mean(group[name] for group in times) for name in table}
    for name, row in table.items():
        row["milliseconds_per_group"] = round(mean_times[name], 4)
        row["greedy_faster_by"] = round(mean_times[name] / mean_times["greedy"], 1)
    return {"groups_where_greedy_merges_percent": merging_percent(list(groups)), "searches": table}


def run_in_nats(kind: str, params: dict[str, Any]) -> dict[str, Any]:
    """The table of one kind of corpus, and how far its mean may deviate by chance."""
    size, longest = params["alphabet"], params["max_phrase_length"]
    groups = [
        compare_in_nats(make_group(kind, params, number), size, longest) for number in range(params["groups"])
    ]
    deviation = statistics.stdev(group["greedy"][0] for group in groups)
    return {
        "corpus": kind,
        "groups_where_greedy_merges_percent": merging_percent(groups),
        "standard_error_of_greedys_mean": round(deviation / sqrt(len(groups)), 4),
        "expected_for_singletons": round(expected_for_singletons(params), 4),
        "searches": tabulate(groups, "nats"),
    }


def expected_for_singletons(params: dict[str, Any]) -> float:
    """K ln K for the dictionary, shared by n sequences, and ln K for each skill of a sequence."""
    mean_length = (params["min_length"] + params["max_length"]) / 2
    return float((params["alphabet"] / params["sequences"] + mean_length) * log(params["alphabet"]))


def main() -> None:
    """Run every table, print the result and write it down."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--params", type=Path, default=DEFAULT)
    parser.add_argument("--groups", type=int, help="instead of the params file's number")
    parser.add_argument("--only-nats", action="store_true", help="keep the other tables of the result file")
    arguments = parser.parse_args()
    params = yaml.safe_load(arguments.params.read_text(encoding="utf-8"))
    if arguments.groups:
        params["groups"] = arguments.groups
    compare(count_numbers([(0, 1)] * 9, 2), 2)  # compiles
    if arguments.only_nats:
        result = json.loads(RESULT.read_text(encoding="utf-8"))
        if result["params"] != params:
            parser.error(f"{RESULT} was made with other params; leave out --only-nats")
    else:
        machine = {"processor": platform.processor() or platform.machine(), "threads": 1}
        corpora = {kind: run(kind, params) for kind in params["corpora"]}
        result = {"params": params, "machine": machine, "corpora": corpora}
    result |= {"nats_without_lengths": run_in_nats("uniform", params), "paper": PAPER}
    write_json(RESULT, result)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
