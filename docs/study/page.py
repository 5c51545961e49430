"""docs/study.md: what stands between two markers is made, the rest stays as it was written.

<!-- made: state -->
...
<!-- end -->
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from docs.study.paper import BEHAVIOR, SCALES, behavior, direction_table, table_1
from docs.study.results import Results
from docs.study.sections import compression, findings, levels, state

MADE = re.compile(r"<!-- made: (\w+) -->\n.*?<!-- end -->", re.DOTALL)


class UnknownPartError(ValueError):
    """The page asks for a part that nothing makes."""


def parts(results: Results) -> Mapping[str, Callable[[], Iterator[str]]]:
    """Name of a part to what makes its lines."""
    found: dict[str, Callable[[], Iterator[str]]] = {
        "state": lambda: state(results),
        "levels": lambda: (line for name in results.plan.benchmarks for line in levels(results, name)),
        "table_1": lambda: table_1(results),
        "tables": lambda: (
            line for table in BEHAVIOR for ending in SCALES for line in behavior(results, table, ending)
        ),
    }
    for question in results.plan.questions:
        found[question] = lambda question=question: answer(results, question)  # type: ignore[misc]
    return found


def answer(results: Results, question: str) -> Iterator[str]:
    """A question, its figure, what counts as yes and no, and its findings."""
    entry = results.plan.questions[question]
    yield from (f"![{entry.title}](figures/study_{question}.svg)", "")
    yield from (f"*Yes:* {' '.join(entry.counts_as_yes.split())}", "")
    yield f"*No:* {' '.join(entry.counts_as_no.split())}"
    if question.startswith("q6"):
        yield from compression(results, question)
    elif question.startswith("q7"):
        yield from direction_table(results)
    else:
        yield from findings(results, question)


def made_anew(text: str, results: Results) -> str:
    """The page with all its made parts.

    Raises:
        UnknownPartError: one of its markers names none.
    """
    known = parts(results)

    def part(match: re.Match[str]) -> str:
        if match[1] not in known:
            raise UnknownPartError(f"docs/study.md: no part {match[1]!r}; there are {', '.join(known)}")
        lines = "\n".join(known[match[1]]()).strip("\n")
        return f"<!-- made: {match[1]} -->\n{lines}\n<!-- end -->"

    return MADE.sub(part, text)
