"""The data that a report shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from skillpress.core.trajectory import Skills
from skillpress.evaluation.analysis.mdl_report import PHRASE_COLUMNS
from skillpress.evaluation.paper.correspondence import Correspondence
from skillpress.evaluation.paper.figures import EnvironmentBehavior
from skillpress.evaluation.paper.layout import PaperTable
from skillpress.evaluation.statistics import BehaviorFigure, Comparison, EvaluationSummary
from skillpress.skills.dictionary import SkillDictionary
from skillpress.skills.history import History
from skillpress.skills.library.library import SkillLibrary


@dataclass(frozen=True)
class PolicyResult:
    """One evaluated policy."""

    method: str
    """Results with the same method are shown as one, with the range over their seeds."""
    summary: EvaluationSummary
    seed: int = 0
    """The experiment's seed."""
    baseline: bool = False
    """Whether it is a baseline (random explorer, imitation start), drawn in grey."""
    environment_behavior: EnvironmentBehavior = field(default_factory=EnvironmentBehavior)
    """The figures that only this environment's actions show."""
    failures: tuple[BehaviorFigure, ...] = ()
    """The kinds of its steps, see ``analysis/failures.py``; empty if they were not computed."""
    ran: str = ""
    """The method according to its training's parameters; empty if nothing was trained."""
    checkpoint: str = ""
    """The weights of a training that were evaluated; empty if nothing was trained."""

    @property
    def behavior(self) -> tuple[BehaviorFigure, ...]:
        """The general figures, then the environment's."""
        return (*self.summary.behavior, *self.environment_behavior.figures)


@dataclass(frozen=True)
class Curve:
    """One training run."""

    method: str
    frame: pl.DataFrame
    """One row per training step: ``step`` and the training loop's metrics."""
    seed: int = 0


@dataclass(frozen=True)
class ExampleStep:
    """One step of an example episode."""

    action: str
    """The action in the environment's wording."""
    skills: Skills
    """φ of the step: one skill for each call that its response makes; empty if it has none."""
    invalid: bool = False
    """Whether the environment refused the action."""


@dataclass(frozen=True)
class Example:
    """One episode, cut into phrases."""

    title: str
    task: str
    """The task in a line of plain words."""
    steps: tuple[ExampleStep, ...]
    phrases: tuple[tuple[str, ...], ...]
    """A segmentation of the steps' skills; steps without a skill are not part of it."""

    @classmethod
    def of(
        cls, title: str, task: str, steps: Sequence[ExampleStep], dictionary: SkillDictionary | None
    ) -> Example:
        """The episode cut by the dictionary, or skill by skill if there is no dictionary."""
        skills = [skill for step in steps for skill in step.skills]
        phrases = dictionary.segment(skills) if dictionary else [(skill,) for skill in skills]
        return cls(title, task, tuple(steps), tuple(phrases))


@dataclass(frozen=True)
class Scaling:
    """A benchmark of the dictionary on corpora of growing size."""

    table: pl.DataFrame
    """``sequences``, ``fit_s``, ``hf_bpe_s`` (seconds), ``fit_memory_mib``."""
    machine: str
    date: str


@dataclass(frozen=True)
class ReportData:
    """Everything on the page."""

    title: str
    policies: Sequence[PolicyResult]
    """Policies in the order of the tables; baselines first reads best."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Facts about the measurement, shown above the figures if models were given. Empty if the policies are
    trainings of an experiment; the page then counts methods and seeds instead."""
    verdict: str = ""
    """Success compared with its start and the explorer, for the top of the page; empty if models were given.
    """
    advice: str = ""
    """The address, relative to this page, of the advice on what to try; empty if there is none."""
    curves: Sequence[Curve] = ()
    comparisons: Mapping[str, Comparison] = field(default_factory=dict)
    """The paired tests, by names such as ``"trained against start"``."""
    dictionary: SkillDictionary | None = None
    """The dictionary fitted before training; None if there was no success to fit one to."""
    phrases: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PHRASE_COLUMNS))
    """Bits and uses of the dictionary's phrases, see ``mdl_report.phrase_table``."""
    history: History = field(default_factory=dict)
    """The learned phrases of every training step."""
    library: SkillLibrary = field(default_factory=SkillLibrary)
    """The skill library at the end of training; empty if the experiment has none."""
    correspondences: Sequence[Correspondence] = ()
    """Table 11 measured on this run; empty if the paper names no phrases of the environment."""
    scaling: Scaling | None = None
    examples: Sequence[Example] = ()
    paper_tables: Sequence[PaperTable] = ()
    """The paper's tables, if they were computed."""
    paper_notes: Sequence[str] = ()
    """Notes on how these figures were computed, one sentence each."""
    episodes_page: str = ""
    """The address, relative to this page, of a page with some of the episodes; empty if there is none."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """The resolved parameters, nested as in params.yaml."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Name of a component (code revision, libraries, machine) to its version."""


def by_method(policies: Iterable[PolicyResult]) -> dict[str, list[PolicyResult]]:
    """The results of each method; methods are in the order of their first result."""
    methods: dict[str, list[PolicyResult]] = {}
    for policy in policies:
        methods.setdefault(policy.method, []).append(policy)
    return methods
