"""The runs that tables of a manifest need, and whether a run is one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillpress.core.errors import ParamsError
from skillpress.core.lab import found_here
from skillpress.evaluation.paper.manifest import Manifest, Scale
from skillpress.evaluation.paper.methods import ABSENT, flatten, in_words
from skillpress.experiment.params import Params, check_params
from skillpress.pipeline.finished.run import FinishedRun, RunsError
from skillpress.pipeline.reproduce.workspace import FOLDER, Variant
from skillpress.pipeline.settings import ROOT

Keys = dict[str, Any]


@dataclass(frozen=True)
class Machine:
    """What a user changes in a scale for a machine: overlays, assignments and other seeds."""

    overlays: tuple[str, ...] = ()
    assignments: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()


@dataclass(frozen=True)
class PaperRun:
    """A training of a table, with its evaluation."""

    benchmark: str
    method: str
    seed: int
    variant: Variant
    params: Params

    @property
    def folder(self) -> Path:
        """The folder where the run is reproduced."""
        return ROOT / FOLDER / self.variant.name


@dataclass(frozen=True)
class Planned:
    """The runs of one scale that tables need, benchmark by benchmark."""

    manifest: Manifest
    scale: str
    machine: Machine
    methods: Mapping[str, Sequence[str]]
    """The methods that run on each benchmark."""

    def common(self, benchmark: str) -> list[str]:
        """The overlays below every method's own."""
        return [*self.manifest.scales[self.scale].benchmarks[benchmark].overlays, *self.machine.overlays]

    def assignments(self, benchmark: str) -> list[str]:
        """The assignments over all overlays."""
        own = self.manifest.scales[self.scale].benchmarks[benchmark].assignments
        return [*own, *self.machine.assignments]

    def seeds(self, benchmark: str) -> list[int]:
        """The seeds of every method on a benchmark."""
        return [*(self.machine.seeds or self.manifest.scales[self.scale].benchmarks[benchmark].seeds)]

    def runs(self) -> list[PaperRun]:
        """All runs, checked against the manifest before any starts.

        Raises:
            ParamsError: an overlay or an assignment is wrong, or sets what the manifest does not name.
        """
        found = []
        for benchmark, methods in self.methods.items():
            for method in methods:
                overlays = (*self.common(benchmark), self.manifest.methods[method].overlay)
                files = tuple(map(found_here, overlays))
                for seed in self.seeds(benchmark):
                    variant = Variant(files, seed, tuple(self.assignments(benchmark)))
                    params = check_params(variant.values(ROOT), f"{method} on {benchmark}")
                    found.append(
                        PaperRun(
                            benchmark=benchmark, method=method, seed=seed, variant=variant, params=params
                        )
                    )
                for line in self.unnamed(benchmark, method, found[-1].params):
                    raise ParamsError(f"{method} on {benchmark}, scale {self.scale}: {line}")
        return found

    def unnamed(self, benchmark: str, method: str, params: Params) -> Iterator[str]:
        """The parameters of a run of this method that are not the manifest's, and may not differ."""
        expected, found = self.expected(benchmark, method), _keys(params)
        for key in dict.fromkeys((*expected, *found)):
            wanted, value = expected.get(key, ABSENT), found.get(key, ABSENT)
            if wanted != value and not self.manifest.free(key):
                yield (
                    f"{key} is {in_words(value)}, the manifest's runs have {in_words(wanted)}; only "
                    f"{', '.join(self.manifest.may_differ)} may differ"
                )

    def expected(self, benchmark: str, method: str) -> Keys:
        """The parameters of the scale with those that the method sets."""
        params = scaled_params(self.manifest.scales[self.scale], benchmark)
        return _keys(params) | self.manifest.methods[method].sets

    def check(self, run: FinishedRun) -> str:
        """The method of a finished run, whose parameters must all be those of one method.

        Raises:
            RunsError: they are not; the message has the nearest method's first difference.
        """
        if run.environment not in self.methods:
            raise RunsError(
                f"{run.folder}: plays {run.environment}; the table has runs of {', '.join(self.methods)}"
            )
        unlike = {
            method: list(self.unnamed(run.environment, method, run.params))
            for method in self.methods[run.environment]
        }
        nearest = min(unlike, key=lambda method: len(unlike[method]))
        for line in unlike[nearest]:
            raise RunsError(
                f"{run.folder}: is not a run of {run.environment} at scale {self.scale}; of {nearest}, the "
                f"nearest method, {line}"
            )
        return nearest


def scaled_params(scale: Scale, benchmark: str) -> Params:
    """The parameters of a benchmark's trainings at a scale, below the methods."""
    own = scale.benchmarks[benchmark]
    variant = Variant(tuple(map(found_here, own.overlays)), assignments=tuple(own.assignments))
    return check_params(variant.values(ROOT), benchmark)


def planned(
    manifest: Manifest, tables: Sequence[str], scale: str, machine: Machine, only: Sequence[str] = ()
) -> Planned:
    """The runs that these tables need, without duplicates.

    Args:
        only: benchmarks; all if empty.

    Raises:
        ParamsError: no table has one of them.
    """
    manifest.scale(scale)
    methods: dict[str, list[str]] = {}
    for table in tables:
        for benchmark in manifest.tables[table].rows:
            methods.setdefault(benchmark, []).extend(manifest.methods_of(table))
    for name in only:
        if name not in methods:
            raise ParamsError(f"--only: is {name!r}, and these tables have runs of {', '.join(methods)}")
    ordered = {
        benchmark: [method for method in manifest.methods if method in wanted]
        for benchmark, wanted in methods.items()
        if not only or benchmark in only
    }
    return Planned(manifest, scale, machine, ordered)


def _keys(params: Params) -> Keys:
    return dict(flatten(params.model_dump(mode="json")))
