"""What of docs/study.md, and of the tables beside the record, is made from the study's record."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from docs.made import Parts
from studies.study.again import again_parts
from studies.study.buffers import buffers
from studies.study.paper import PRINTED, SCALES, behavior, direction_table, table_1
from studies.study.results import Results
from studies.study.sections import compression, findings, levels, state
from studies.study.summary import starts, summary


def parts(results: Results, again: Results) -> Parts:
    """Name of a part to what makes its lines.

    Args:
        again: what of the study was run again, by a plan of its own.
    """
    found: dict[str, Callable[[], Iterator[str]]] = {
        "state": lambda: state(results),
        "summary": lambda: summary(results),
        "starts": lambda: starts(results),
        "buffers": lambda: buffers(results),
        "levels": lambda: (line for name in results.plan.benchmarks for line in levels(results, name)),
        "table_1": lambda: table_1(results),
        "tables": lambda: (
            line for table in PRINTED for ending in SCALES for line in behavior(results, table, ending)
        ),
    }
    found |= again_parts(again)
    for question in results.plan.questions:
        found[question] = lambda question=question: answer(results, question)  # type: ignore[misc]
        found[f"{question}_claims"] = lambda question=question: claims(results, question)  # type: ignore[misc]
    return found


def answer(results: Results, question: str) -> Iterator[str]:
    """A question's figure."""
    yield f"![{results.plan.questions[question].title}](figures/study_{question}.svg)"


def claims(results: Results, question: str) -> Iterator[str]:
    """A question's findings, claim by claim."""
    if question.startswith("q6"):
        yield from compression(results, question)
    elif question.startswith("q7"):
        yield from direction_table(results)
    else:
        yield from findings(results, question)
