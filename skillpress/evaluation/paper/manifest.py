"""The manifest of a paper's tables: the trainings that each table needs, at which scale, and the keys that
may differ.

A table comes from runs, from the code alone (Table 3's mapping of actions to skills), or from a command.
``rows`` are keys of ``printed_figures.csv``, which has the printed figures. A run is a scale's overlays for a
benchmark, with a method's overlay on top, and a seed. It must have the parameters of the scale, those that
the method ``sets``, and no others, except for the keys of ``may_differ``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError, model_validator

from skillpress.core.errors import UserError, did_you_mean
from skillpress.core.sections import Positive, PositiveInt, Section, Seed
from skillpress.evaluation.paper.layout import printed_keys
from skillpress.experiment.params import read_yaml

PLACE = "studies/reuserl/tables.yaml"
"""ReuseRL's manifest in the lab."""


class ManifestError(UserError):
    """The manifest is wrong or lacks the requested entry; the message names the file and the entry."""


class TrainedMethod(Section):
    """A row of the tables that is trained."""

    overlay: str
    """Its overlay, above the benchmark's."""
    sets: dict[str, Any]
    """The values of the dotted keys that the method sets; it sets no others."""


class ScaledBenchmark(Section):
    """A benchmark at one scale."""

    overlays: list[str]
    """Overlays below every method's own; none means the default experiment."""
    assignments: list[str] = Field(default_factory=list)
    """Assignments over all overlays, such as ``training.steps=5``."""
    seeds: Annotated[list[Seed], Field(min_length=1)]
    """The seeds of every method's trainings."""
    minutes: Positive | None = None
    """Mean minutes of measured runs, two at once on two cores; None if no run was measured."""


class NodeOfScale(Section):
    """The machine that a scale's trainings need, and throughputs for an estimate of their hours."""

    devices: PositiveInt
    """GPUs of the machine."""
    device_memory: Positive
    """Memory of each GPU in GB."""
    sampling_rate: Positive
    """Tokens of prompts and responses that a GPU's engine handles in a second."""
    training_rate: Positive
    """Tokens that a GPU learns from in a second."""
    step_ms: Positive
    """Milliseconds of a step of the environment."""


class Scale(Section):
    """One size of all trainings."""

    words: str
    """The purpose of the scale."""
    node: NodeOfScale | None = None
    """The machine that the scale needs; None if any machine suffices."""
    benchmarks: dict[str, ScaledBenchmark]
    """The trainings of each environment."""


class MappedActions(Section):
    """A line of Table 3."""

    actions: Annotated[list[str], Field(min_length=1)]
    """Actions of the printed pattern."""
    skill: str
    """The skill that the paper prints for each."""
    after: list[str] = Field(default_factory=list)
    """Earlier actions in the episode."""


class Mapping3(Section):
    """A benchmark's part of Table 3."""

    alphabet: PositiveInt
    """The number of skills, as printed."""
    task: dict[str, Any] = Field(default_factory=dict)
    """The fields of the task that the projection reads."""
    lines: Annotated[list[MappedActions], Field(min_length=1)]
    """The printed patterns with their skills."""


class CommandFigure(Section):
    """A figure that a command writes."""

    label: str
    """The figure's label."""
    key: str
    """Its dotted key in the command's result."""
    printed: str
    """The paper's figure."""


class Made(Section):
    """A table or figure that a command makes, without a training."""

    run: Annotated[list[str], Field(min_length=1)]
    """A module of the repository and its arguments."""
    writes: str
    """The file that it writes, in the repository."""
    figures: list[CommandFigure] = Field(default_factory=list)
    """Figures of that file, which is JSON, beside the paper's."""


class PaperEntry(Section):
    """A table or figure of the paper."""

    words: str
    """What the table or figure shows."""
    rows: dict[str, list[str]] = Field(default_factory=dict)
    """The rows of each benchmark, for a table of runs."""
    methods: list[str] = Field(default_factory=list)
    """The trained methods whose runs it needs; empty means all."""
    mapping: dict[str, Mapping3] = Field(default_factory=dict)
    """The skills of actions for each benchmark, for a table computed only from code."""
    made: Made | None = None
    """The command that makes the table or figure, for all others."""

    @model_validator(mode="after")
    def _one_source(self) -> PaperEntry:
        if sum(map(bool, (self.rows, self.mapping, self.made))) != 1:
            raise ValueError("must have exactly one of rows, mapping and made")
        return self


class Manifest(Section):
    """All tables and figures of a paper."""

    methods: dict[str, TrainedMethod]
    """The paper's trained rows."""
    may_differ: dict[str, str]
    """Keys and sections that runs of a table may set as a machine needs them, and why."""
    scales: dict[str, Scale]
    """The sizes of trainings."""
    tables: dict[str, PaperEntry]
    """Every table and figure, by the name that the paper gives it."""

    def named(self, name: str) -> str:
        """The table that is meant by ``Table 4``, ``table 4`` or ``4``.

        Raises:
            ManifestError: there is none.
        """
        wanted = name.casefold().strip()
        for known in self.tables:
            if wanted in (known.casefold(), known.casefold().removeprefix("table ")):
                return known
        raise ManifestError(
            f"{name!r} is not a table of the manifest; its tables are {', '.join(self.tables)}"
            f"{did_you_mean(name, self.tables)}"
        )

    def scale(self, name: str) -> Scale:
        """The scale of this name. Raises ``ManifestError`` if it does not exist."""
        if name not in self.scales:
            raise ManifestError(f"--scale: no {name!r} in the manifest; there are {', '.join(self.scales)}")
        return self.scales[name]

    def methods_of(self, table: str) -> list[str]:
        """The trained methods that a table needs."""
        return self.tables[table].methods or list(self.methods)

    def free(self, key: str) -> bool:
        """Whether a dotted key, or a section around it, may differ."""
        parts = key.split(".")
        return any(".".join(parts[:depth]) in self.may_differ for depth in range(1, len(parts) + 1))


def number_of(table: str) -> int:
    """The number in a table's name. Raises ``ManifestError`` if it has none; tables of runs need one."""
    if found := re.fullmatch(r"Table ([0-9]+)", table):
        return int(found[1])
    raise ManifestError(f"tables.{table}: has rows of runs; name it as the paper does, such as Table 4")


def read_manifest(path: Path) -> Manifest:
    """The manifest of a file.

    Raises:
        ParamsError: the file is missing or not YAML.
        ManifestError: it does not follow the schema, or refers to something that does not exist.
    """
    try:
        manifest = Manifest.model_validate(read_yaml(path))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ManifestError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    for line in _mistakes(manifest):
        raise ManifestError(f"{path}: {line}")
    return manifest


def _mistakes(manifest: Manifest) -> Iterator[str]:
    benchmarks: Mapping[str, Any] = {
        name: 0 for scale in manifest.scales.values() for name in scale.benchmarks
    }
    for scale, entry in manifest.scales.items():
        for name in benchmarks:
            if name not in entry.benchmarks:
                yield f"scales.{scale}.benchmarks: lacks {name}, which other scales have"
    for table, shown in manifest.tables.items():
        for method in shown.methods:
            if method not in manifest.methods:
                yield f"tables.{table}.methods: no {method!r} in methods"
        for name, rows in shown.rows.items():
            printed = printed_keys(number_of(table), name)
            if name not in benchmarks or sorted(rows) != sorted(printed):
                yield (
                    f"tables.{table}.rows.{name}: is {', '.join(rows)}; printed_figures.csv has "
                    f"{', '.join(printed) or 'none of this table'}"
                )
