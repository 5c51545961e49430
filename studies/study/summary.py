"""The study in short: a table of all questions, and which seeds had several starts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from docs.words import NONE, table
from skillpress.pipeline.files import START
from studies.statistics.contrasts import MISSING
from studies.study.paper import ENVIRONMENTS, SCALES, directions
from studies.study.results import Results
from studies.study.sections import compression_verdict, corrected_predictions


def summary(results: Results) -> Iterator[str]:
    """A row per question; on each benchmark how many of its claims have which verdict."""
    rows = []
    for question, entry in results.plan.questions.items():
        found = verdicts(results, question)
        asked = {benchmark: [MISSING] for benchmark in entry.runs} | found
        cells = [_counted(asked.get(benchmark, [])) for benchmark in results.plan.benchmarks]
        rows.append((f"{question.split('_')[0].upper()}. {entry.title}", *cells))
    yield from table(("question", *(entry.words for entry in results.plan.benchmarks.values())), rows)


def verdicts(results: Results, question: str) -> dict[str, list[str]]:
    """Benchmark to the verdicts of the question's claims on all tasks; of question 7, the directions."""
    found: dict[str, list[str]] = {}
    if question.startswith("q6"):
        every = results.predictions(question)
        for one, corrected in zip(every, corrected_predictions(every), strict=True):
            verdict = compression_verdict(results, one, corrected)
            found.setdefault(one.benchmark, []).append(verdict.partition(" (")[0])
    elif question.startswith("q7"):
        names = {environment: benchmark for benchmark, environment in ENVIRONMENTS.items()}
        for sign in (sign for ending in SCALES for sign in directions(results, ending)):
            found.setdefault(names[sign.environment], []).append(sign.direction)
    else:
        for finding in results.findings(question):
            if not finding.claim.of_class:
                found.setdefault(finding.claim.benchmark, []).append(finding.verdict)
    return found


def _counted(found: Sequence[str]) -> str:
    if not found:
        return NONE
    if set(found) == {MISSING}:
        return MISSING
    return "; ".join(f"{count} × {verdict}" for verdict, count in Counter(found).most_common())


def starts(results: Results) -> Iterator[str]:
    """A line per seed whose runs began from more than one start; none where all shared theirs.

    Starts of one recipe and seed differ in their last digits between kinds of processors, which round
    otherwise. Two runs have one start if it played every episode of the test tasks alike.
    """
    for benchmark, entry in results.plan.benchmarks.items():
        for seed in entry.seeds:
            found = _methods_by_start(results, benchmark, seed)
            if len(found) > 1:
                fewest = min(found, key=len)
                named = ", ".join(f"`{method}`" for method in fewest)
                runs = sum(len(methods) for methods in found)
                yield (
                    f"- {entry.words}, seed {seed}: {len(found)} starts. One of them is that of {named} "
                    f"({len(fewest)} of {runs} runs)."
                )


def _methods_by_start(results: Results, benchmark: str, seed: int) -> list[list[str]]:
    found: dict[tuple[tuple[int, ...], ...], list[str]] = {}
    for (name, method), runs in results.runs.items():
        if name == benchmark and seed in runs:
            episodes = results.won_at(runs[seed], START).sort("task_id")["won_at"].to_list()
            found.setdefault(tuple(map(tuple, episodes)), []).append(method)
    return list(found.values())
