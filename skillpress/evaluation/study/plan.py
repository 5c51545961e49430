"""The plan of a study, as ``params/study/`` states it before the first run.

``plan.yaml`` holds what all questions share: benchmarks and methods. Each file ``q<number>_<name>.yaml``
holds one question. A question names the methods that it needs on each benchmark; several questions may share
a run. Claims are contrasts between any two methods, grouped in families: p-values are corrected for the
number of claims within each family (``holm.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field, ValidationError

from skillpress.core.errors import UserError
from skillpress.core.sections import Section
from skillpress.experiment.params import read_yaml

SHARED = "plan.yaml"
QUESTIONS = "q[0-9]*.yaml"
BY_CLASS = ", by class"
"""Added to the family's name for a claim about a class of tasks."""
Entry = TypeVar("Entry", bound=Section)
_WITHIN = re.compile(r"within_([1-9][0-9]*)")
_MEASURE = "measure_"
_IN = " in "
Expectation = Literal["higher", "lower", "differs", "same"]


class PlanError(UserError):
    """The plan contradicts itself; the message names the file and the entry."""


def within_budget(outcome: str) -> int | None:
    """The steps of an outcome ``within_<steps>``; None for other outcomes."""
    found = _WITHIN.fullmatch(outcome)
    return int(found[1]) if found else None


def measure_of(outcome: str) -> str | None:
    """The name of the fact that an outcome ``measure_<name>`` is about; None for other outcomes."""
    name, _ = divided(outcome)
    return name.removeprefix(_MEASURE) if name.startswith(_MEASURE) else None


def divided(outcome: str) -> tuple[str, str]:
    """The measure and the class of tasks of an outcome; an empty class means all tasks."""
    name, _, of_class = outcome.partition(_IN)
    return name, of_class


def _known(outcome: str) -> str:
    name, of_class = divided(outcome)
    known = name in ("pass_at_1", "sc_at_k", "budget_area") or within_budget(name) is not None
    if not (known or measure_of(outcome)) or (_IN in outcome and not of_class.strip()):
        raise ValueError(
            "must be pass_at_1, sc_at_k, budget_area, within_<steps> or measure_<fact>, and may have a class "
            "of tasks behind it, as in 'pass_at_1 in unseen'"
        )
    return outcome


Outcome = Annotated[str, AfterValidator(_known)]
"""What is counted in a run: success at T or within a number of steps, majorities of k votes, or the area
under the curve of success against the step budget. A measure is the mean over won episodes of a fact that the
environment states at their end (``Info.measures``). ``pass_at_1 in unseen`` counts the tasks of a class."""


Margin = Annotated[float, Field(gt=0, lt=1)]


class Benchmark(Section):
    """One environment with one small policy."""

    words: str
    """The benchmark's name on pages."""
    base: Annotated[list[str], Field(min_length=1)]
    """The overlays below every method's own, by their path in params/ without ``.yaml``."""
    seeds: Annotated[list[int], Field(min_length=2)]
    """The seeds of every method's runs."""
    outcome: Outcome
    """The primary outcome."""
    secondary: list[Outcome]
    """Further outcomes."""
    margin: Margin
    """The smallest difference in the primary outcome that matters."""

    @property
    def measures(self) -> list[str]:
        """The facts of the environment that the outcomes are about."""
        return sorted({name for each in (self.outcome, *self.secondary) if (name := measure_of(each))})


class Diverged(Section):
    """The rule, fixed before the runs, by which a run has diverged. It stays in every figure."""

    outcome: Outcome
    """The outcome that the rule examines."""
    below_median: Margin
    """A diverged run lies more than this below the median of the runs of its method and benchmark."""


class StudyMethod(Section):
    """Overlays on top of a benchmark's base."""

    words: str
    """The method's name on pages."""
    overlays: Annotated[list[str], Field(min_length=1)]
    """Overlays by their path in params/ without ``.yaml``; later ones win."""


class Contrast(Section):
    """A claim: how ``second`` compares with ``first``."""

    first: str
    """The method that is compared with."""
    second: str
    """The method that the claim is about."""
    expect: Expectation
    """The claim about the outcome of ``second``; ``same`` means a difference of less than the margin."""
    outcome: Outcome | None = None
    """The outcome of the claim; None means the benchmark's primary one."""
    margin: Margin | None = None
    """The smallest difference in this outcome that matters; None means the benchmark's margin."""
    benchmarks: list[str] = Field(default_factory=list)
    """Benchmarks of the claim; empty means all on which the question runs both methods."""
    classes: dict[str, list[str]] = Field(default_factory=dict)
    """Benchmark to the classes of tasks on which the claim is also tested; these form their own family."""


class StudyQuestion(Section):
    """One question of the study."""

    title: str
    """The question's heading."""
    words: str
    """The question, in words."""
    runs: dict[str, list[str]]
    """The methods that run on each benchmark."""
    families: dict[str, list[Contrast]]
    """Name of a family to its claims, whose p-values are corrected together."""
    counts_as_yes: str
    """The rule for a yes, in words."""
    counts_as_no: str
    """The rule for a no, in words."""


@dataclass(frozen=True)
class Claim:
    """A contrast on one benchmark."""

    question: str
    family: str
    benchmark: str
    first: str
    second: str
    expect: Expectation
    of_class: str = ""
    """A class of tasks; empty means all tasks of the outcome."""
    outcome: str | None = None
    """None means the benchmark's primary outcome."""
    margin: float | None = None
    """None means the benchmark's margin."""

    @property
    def name(self) -> str:
        """The name, such as ``countdown: segcost against grpo``."""
        where = f" ({self.of_class})" if self.of_class else ""
        return f"{self.benchmark}{where}: {self.second} against {self.first}"


@dataclass(frozen=True)
class Plan:
    """The whole plan, after all checks."""

    benchmarks: Mapping[str, Benchmark]
    methods: Mapping[str, StudyMethod]
    questions: Mapping[str, StudyQuestion]
    """Questions by the names of their files without ``.yaml``, such as ``q1_order``."""
    diverged: Diverged | None = None
    """Which runs count as diverged; None if the plan has no rule."""

    def chosen(self, questions: Sequence[str] = (), benchmarks: Sequence[str] = ()) -> dict[str, list[str]]:
        """Benchmark to the methods that these questions run on it, in the plan's order.

        Args:
            questions: names or the beginnings of names (``q1``); all if empty.
            benchmarks: all if empty.

        Raises:
            PlanError: one of them is not in the plan.
        """
        for name in benchmarks:
            if name not in self.benchmarks:
                raise PlanError(f"no benchmark {name!r} in the plan; there are {', '.join(self.benchmarks)}")
        names = [match for name in questions or ("q",) for match in self._questions(name)]
        found: dict[str, list[str]] = {}
        for name in dict.fromkeys(names):
            for benchmark, methods in self.questions[name].runs.items():
                if not benchmarks or benchmark in benchmarks:
                    found.setdefault(benchmark, []).extend(methods)
        return {benchmark: list(dict.fromkeys(methods)) for benchmark, methods in found.items()}

    def claims(self, question: str) -> Iterator[Claim]:
        """The question's claims on all tasks, then those by class, family by family."""
        entry = self.questions[question]
        for family, contrasts in entry.families.items():
            for contrast in contrasts:
                for benchmark in _benchmarks_of(contrast, entry):
                    yield _claim(question, family, benchmark, contrast)
            for contrast in contrasts:
                for benchmark, classes in contrast.classes.items():
                    for name in classes:
                        yield _claim(question, f"{family}{BY_CLASS}", benchmark, contrast, name)

    def _questions(self, beginning: str) -> list[str]:
        found = [name for name in self.questions if name.startswith(beginning)]
        if not found:
            raise PlanError(f"no question {beginning!r} in the plan; there are {', '.join(self.questions)}")
        return found


def read_plan(folder: Path) -> Plan:
    """The plan of a folder.

    Raises:
        ParamsError: a file is missing or not YAML.
        PlanError: the plan does not follow the schema, or refers to something that it does not define.
    """
    shared = read_yaml(folder / SHARED)
    if set(shared) - {"diverged"} != {"benchmarks", "methods"}:
        raise PlanError(
            f"{folder / SHARED}: must hold benchmarks and methods, and may hold diverged; "
            f"holds {', '.join(shared)}"
        )
    plan = Plan(
        {
            name: _parse(Benchmark, entry, folder / SHARED, name)
            for name, entry in shared["benchmarks"].items()
        },
        {
            name: _parse(StudyMethod, entry, folder / SHARED, name)
            for name, entry in shared["methods"].items()
        },
        {
            path.stem: _parse(StudyQuestion, read_yaml(path), path, "")
            for path in sorted(folder.glob(QUESTIONS))
        },
        _parse(Diverged, shared["diverged"], folder / SHARED, "diverged") if "diverged" in shared else None,
    )
    for name, question in plan.questions.items():
        _check(plan, question, folder / f"{name}.yaml")
    return plan


def _claim(question: str, family: str, benchmark: str, contrast: Contrast, of_class: str = "") -> Claim:
    claimed = contrast.model_dump(include={"first", "second", "expect", "outcome", "margin"})
    return Claim(question=question, family=family, benchmark=benchmark, of_class=of_class, **claimed)


def _benchmarks_of(contrast: Contrast, question: StudyQuestion) -> list[str]:
    if contrast.benchmarks:
        return contrast.benchmarks
    both = {contrast.first, contrast.second}
    return [benchmark for benchmark, methods in question.runs.items() if both <= set(methods)]


def _check(plan: Plan, question: StudyQuestion, path: Path) -> None:
    for benchmark, methods in question.runs.items():
        if benchmark not in plan.benchmarks:
            raise PlanError(f"{path}: runs.{benchmark}: no such benchmark in {SHARED}")
        for method in methods:
            if method not in plan.methods:
                raise PlanError(f"{path}: runs.{benchmark}: no method {method!r} in {SHARED}")
    for family, contrasts in question.families.items():
        for contrast in contrasts:
            benchmarks = _benchmarks_of(contrast, question)
            where = f"{path}: families.{family}: {contrast.second} against {contrast.first}"
            if not benchmarks:
                raise PlanError(f"{where}: no benchmark of the question runs both")
            asked = measure_of(contrast.outcome or "")
            for benchmark in benchmarks:
                if asked and asked not in plan.benchmarks[benchmark].measures:
                    raise PlanError(
                        f"{where}: {contrast.outcome!r} is among no outcomes of {benchmark}, so its runs "
                        f"would not record it: add it to benchmarks.{benchmark}.secondary in {SHARED}"
                    )
            for benchmark in {*benchmarks, *contrast.classes}:
                if missing := {contrast.first, contrast.second} - set(question.runs.get(benchmark, [])):
                    raise PlanError(f"{where}: {min(missing)} is not run on {benchmark}")


def _parse(kind: type[Entry], values: Any, path: Path, name: str) -> Entry:
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        details = "; ".join(
            f"{'.'.join(map(str, (*([name] if name else []), *detail['loc'])))}: {detail['msg']}"
            for detail in error.errors(include_url=False)
        )
        raise PlanError(f"{path}: {details}") from None
