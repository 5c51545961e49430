"""The runs that the plan asks for, in the order in which they should be made.

A run is a benchmark's overlays, a method's overlays on top, and a seed. All methods of the first seed come
before any of the second, so that an interrupted study is balanced. Two methods of one benchmark with equal
parameters would be one run under two names, which is refused. A run that is missing starts when it need not
wait for another (:class:`Queue`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

from skillpress.core.moved import as_recorded
from skillpress.evaluation.study.plan import Plan, PlanError
from skillpress.experiment.params import check_params, merge, read_yaml
from skillpress.pipeline.graph import GRAPH, read_stage
from skillpress.pipeline.reproduce.workspace import Variant
from skillpress.pipeline.study.facts import check_facts

OVERLAYS = "params"
DEFAULTS = "params.yaml"
START_STAGES = ("prepare_tasks", "prepare_policy", "play_floors")
"""The stages before training. Runs that agree in what these read share their results, by DVC's cache."""


@dataclass(frozen=True)
class PlannedRun:
    """One run of the plan."""

    benchmark: str
    method: str
    seed: int
    variant: Variant
    params: Mapping[str, Any]
    """The resolved parameters: every one that this version knows, including the seed."""
    start: str = ""
    """The parameters that the stages before training read, the same for all runs that share a start."""
    facts: tuple[str, ...] = ()
    """The facts at the end of won episodes that the benchmark's outcomes are about."""

    @property
    def name(self) -> str:
        """Name such as ``countdown-grpo-seed10``."""
        return f"{self.benchmark}-{self.method}-seed{self.seed}"


def planned_runs(plan: Plan, methods: Mapping[str, list[str]], root: Path) -> list[PlannedRun]:
    """The runs of these methods, seed by seed.

    Args:
        methods: benchmark to methods, as ``Plan.chosen`` gives them.
        root: the repository; its params/ has the overlays.

    Raises:
        ParamsError: an overlay is missing or wrong.
        PlanError: two methods have the same parameters on one benchmark.
        FactError: an outcome is about a fact that the environment does not state.
    """
    defaults = read_yaml(root / DEFAULTS)
    before = {key for name in START_STAGES for key in read_stage(name, root / GRAPH).parameters}
    found: list[tuple[int, PlannedRun]] = []
    for benchmark, names in methods.items():
        entry = plan.benchmarks[benchmark]
        known: dict[str, str] = {}
        for method in names:
            layers = (*entry.base, *plan.methods[method].overlays)
            overlays = tuple(root / OVERLAYS / f"{name}.yaml" for name in layers)
            params = resolved(Variant(overlays).values(root), defaults)
            same = json.dumps({**params, "seed": 0}, sort_keys=True)
            if same in known:
                raise PlanError(f"{benchmark}: {known[same]} and {method} have the same parameters")
            known[same] = method
            check_facts(params["environment"]["name"], entry.measures)
            for place, seed in enumerate(entry.seeds):
                run = PlannedRun(
                    benchmark=benchmark,
                    method=method,
                    seed=seed,
                    variant=Variant(overlays, seed),
                    params={**params, "seed": seed},
                    start=_start({**params, "seed": seed}, before),
                    facts=tuple(entry.measures),
                )
                found.append((place, run))
    return [run for _, run in sorted(found, key=lambda item: item[0])]


def resolved(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters with every key that this version knows; ``defaults`` are the values of params.yaml.

    A run that was recorded before a key existed gets that key's default, or what ``moved.BEFORE`` says that
    it did. So the run still counts.

    Raises:
        ParamsError: the parameters are wrong for this version.
    """
    source = "parameters of a run"
    given = as_recorded(values, source)
    return check_params(merge(defaults, given), source).model_dump(mode="json")


class Queue:
    """The missing runs, in the order of the plan; next is the earliest that need not wait for another.

    Runs of one seed whose parameters agree in all that the stages before training read share their tasks and
    their imitation start: those of one benchmark, and those of benchmarks that differ in training alone. The
    first of them starts alone; the others wait for it, and then find the shared results in DVC's cache.
    Meanwhile the first run with another start begins, so that no core is idle.
    """

    def __init__(self, runs: Iterable[PlannedRun]) -> None:
        self.waiting = list(runs)
        self._led: set[str] = set()
        self._shared: set[str] = set()

    def next(self) -> PlannedRun | None:
        """Take the next run; None while all remaining runs wait for one that is not done."""
        for place, run in enumerate(self.waiting):
            if run.start in self._shared or run.start not in self._led:
                self._led.add(run.start)
                return self.waiting.pop(place)
        return None

    def done(self, run: PlannedRun) -> None:
        """Record that the run has ended, successfully or not; runs that waited for it may start."""
        self._shared.add(run.start)


def _start(params: Mapping[str, Any], keys: Iterable[str]) -> str:
    read = {key: reduce(getitem, key.split("."), params) for key in keys}
    return json.dumps(read, sort_keys=True)
