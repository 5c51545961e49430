"""What a report is made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from skillpress.measure.analysis.mdl_report import PHRASE_COLUMNS
from skillpress.measure.evaluation import BehaviorFigure, Comparison, EvaluationSummary
from skillpress.measure.paper.correspondence import Correspondence
from skillpress.measure.paper.figures import EnvironmentBehavior
from skillpress.measure.paper.layout import PaperTable
from skillpress.skills.dictionary import SkillDictionary
from skillpress.skills.history import History
from skillpress.skills.library.library import SkillLibrary


@dataclass(frozen=True)
class PolicyResult:
    """One evaluated policy."""

    method: str
    """Results with the same method are shown as one, with the range of their seeds."""
    summary: EvaluationSummary
    seed: int = 0
    """The experiment's seed."""
    baseline: bool = False
    """Not trained by a method under test (random explorer, imitation start): drawn in grey."""
    environment_behavior: EnvironmentBehavior = field(default_factory=EnvironmentBehavior)
    """What only this environment's actions show."""
    failures: tuple[BehaviorFigure, ...] = ()
    """What its steps came to, see ``analysis/failures.py``; empty where nobody looked."""
    checkpoint: str = ""
    """Which of a training's weights were evaluated; empty where nothing was trained."""

    @property
    def behavior(self) -> tuple[BehaviorFigure, ...]:
        """General figures first, the environment's after them."""
        return (*self.summary.behavior, *self.environment_behavior.figures)


@dataclass(frozen=True)
class Curve:
    """One training run."""

    method: str
    frame: pl.DataFrame
    """A row per training step: ``step`` and the training loop's metrics."""
    seed: int = 0


@dataclass(frozen=True)
class ExampleStep:
    """One step of an episode to look at."""

    action: str
    """In the environment's wording."""
    skill: str | None
    """φ of the action; None where the rules give it none."""
    invalid: bool = False
    """The environment refused it."""


@dataclass(frozen=True)
class Example:
    """One episode, cut into phrases."""

    title: str
    task: str
    """The task in a line of plain words."""
    steps: tuple[ExampleStep, ...]
    phrases: tuple[tuple[str, ...], ...]
    """A segmentation of the steps' skills; steps without a skill are not in it."""

    @classmethod
    def of(
        cls, title: str, task: str, steps: Sequence[ExampleStep], dictionary: SkillDictionary | None
    ) -> Example:
        """The episode cut by the dictionary; skill by skill where there is no dictionary."""
        skills = [step.skill for step in steps if step.skill is not None]
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
    """In the order of the tables; baselines first reads best."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """What was measured and how, to stand above the figures of given models; empty where the policies are
    trainings of an experiment, whose methods and seeds are counted in its place."""
    verdict: str = ""
    """What training did to success, which the page begins with; empty where nothing was trained."""
    advice: str = ""
    """Where a page says what to try, seen from this one; empty where nothing needs to be tried."""
    curves: Sequence[Curve] = ()
    comparisons: Mapping[str, Comparison] = field(default_factory=dict)
    """``"trained against start"`` to the paired tests."""
    dictionary: SkillDictionary | None = None
    """The dictionary fitted before training; None where no success was there to fit one to."""
    phrases: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PHRASE_COLUMNS))
    """Bits and uses of its phrases, see ``mdl_report.phrase_table``."""
    history: History = field(default_factory=dict)
    """The learned phrases of every training step."""
    library: SkillLibrary = field(default_factory=SkillLibrary)
    """The skill library that training left; empty where the experiment has none."""
    correspondences: Sequence[Correspondence] = ()
    """Table 11 measured on this run; empty where the paper names no phrases of the environment."""
    scaling: Scaling | None = None
    examples: Sequence[Example] = ()
    paper_tables: Sequence[PaperTable] = ()
    """The paper's tables, where they were computed."""
    paper_notes: Sequence[str] = ()
    """How their figures were computed, a sentence each."""
    episodes_page: str = ""
    """Where a page with some of the episodes lies, beside this one; empty where there is none."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """The resolved parameters, nested as in params.yaml."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """What ran (code revision, libraries, machine) to its version."""


def by_method(policies: Iterable[PolicyResult]) -> dict[str, list[PolicyResult]]:
    """The results of each method, methods in the order of their first result."""
    methods: dict[str, list[PolicyResult]] = {}
    for policy in policies:
        methods.setdefault(policy.method, []).append(policy)
    return methods
