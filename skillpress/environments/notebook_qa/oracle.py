"""A demonstrator that knows the right pages and the right answer.

It uses short actions and solves only the tasks that these can solve: its searches must find the gold pages,
and the gold answer must be among the candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from skillpress.core.errors import TaskError
from skillpress.core.trajectory import Task
from skillpress.environments.notebook_qa import desk as desks
from skillpress.environments.notebook_qa.answers import POLAR, exact_match, normalized
from skillpress.environments.notebook_qa.desk import Desk, first_desk
from skillpress.environments.notebook_qa.environment import setting
from skillpress.environments.notebook_qa.parameters import NotebookQaParameters


class CompactOracle:
    """Searches until the gold pages are found, reads them, and answers."""

    def __init__(self, parameters: NotebookQaParameters) -> None:
        self._search, self._top_k = setting(parameters).search, parameters.top_k
        self._max_steps = parameters.max_steps

    def __call__(self, task: Task, detour_rate: float, seed: int) -> list[str]:
        """Return short actions that win. A detour reads a useless page, if the answer can still be named
        after it.

        Raises:
            TaskError: short actions cannot win this task.
        """
        random = Random(seed)
        words = self.way(task, lambda: random.random() < detour_rate) or self.way(task)
        if words is None:
            raise TaskError(
                f"task {task.task_id} cannot be answered in short action words; set environment.reachable "
                "for training tasks that can"
            )
        return words

    def way(self, task: Task, detour: Callable[[], bool] = lambda: False) -> list[str] | None:
        """Short actions that win; None if there are none."""
        desk, words = self._gather(first_desk(task.spec["question"]), task.spec["supporting_titles"])
        if desk is None:
            return None
        titles = [found.title for found in desk.titles]
        gold = [title for title in titles if title in task.spec["supporting_titles"]]
        for number, title in enumerate(titles, 1):
            if title in gold or (detour() and len(words) + len(gold) + 2 < self._max_steps):
                desk = desks.read(desk, title, self._search.read(title) or "")
                words.append(f"read title {number}")
        ending = _ending(desk, task.spec["answers"])
        if ending is None or len(words) + len(ending) > self._max_steps:
            return None
        return [*words, *ending]

    def _gather(self, desk: Desk, wanted: Sequence[str]) -> tuple[Desk | None, list[str]]:
        """The desk with all wanted titles, and the searches that found them; None if they were not found."""
        words: list[str] = []
        queries = {"search question": desk.question}
        queries |= {f"search entity {number}": name for number, name in enumerate(desk.entities, 1)}
        for word, query in queries.items():
            hits = self._search.search(query, self._top_k)
            found = desks.searched(desk, [(hit.title, hit.snippet) for hit in hits])
            if _missing(found, wanted) < _missing(desk, wanted):
                desk, words = found, [*words, word]
            if wanted and not _missing(desk, wanted):
                return desk, words
        return None, words


def _missing(desk: Desk, wanted: Sequence[str]) -> int:
    return len(set(wanted) - {found.title for found in desk.titles})


def _ending(desk: Desk, answers: Sequence[str]) -> list[str] | None:
    """The last actions: note the answer unless it is *yes* or *no*, then submit it."""
    for alias in answers:
        if normalized(alias) in POLAR & {"yes", "no"}:
            return [f"answer {normalized(alias)}"]
    for number, candidate in enumerate(desk.answers, 1):
        if exact_match(candidate.text, answers):
            return [f"note candidate {number}", f"answer candidate {number}"]
    return None
