"""A demonstrator that knows the gold titles and the answer.

It uses short actions: it searches for the question, for its entities, and for candidates that name a missing
page. It keeps a search that finds a gold title or brings the answer among the candidates, and answers when it
has both. If a question names no gold titles, the answer alone decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from skillpress.core.errors import TaskError
from skillpress.core.trajectory import Task
from skillpress.environments.notebook_qa.answers import POLAR, exact_match, normalized
from skillpress.environments.notebook_qa.desk import Desk, first_desk
from skillpress.environments.search.actions import read_action
from skillpress.environments.search.environment import with_passages
from skillpress.environments.search.parameters import SearchParameters
from skillpress.environments.search.retriever import retriever_of


class SearchOracle:
    """Searches until the gold pages and the answer are on the desk, and answers."""

    def __init__(self, parameters: SearchParameters) -> None:
        self._retrieve, self._top_k = retriever_of(parameters), parameters.top_k
        self._max_steps = parameters.max_steps

    def __call__(self, task: Task, detour_rate: float, seed: int) -> list[str]:
        """Return short actions that win. A detour is a needless search, made if there is room for it.

        Raises:
            TaskError: short actions cannot win this task.
        """
        words = self.way(task)
        if words is None:
            raise TaskError(
                f"task {task.task_id} cannot be answered in short action words; set environment.reachable "
                "for training tasks that can"
            )
        random, desk = Random(seed), first_desk(task.spec["question"])
        useless = [f"search entity {number}" for number in range(1, len(desk.entities) + 1)]
        useless = [word for word in useless if word not in words]
        if useless and random.random() < detour_rate:
            detoured = self._way(task, first=random.choice(useless))
            return detoured or words
        return words

    def way(self, task: Task) -> list[str] | None:
        """Short actions that win; None if there are none."""
        return self._way(task)

    def _way(self, task: Task, first: str | None = None) -> list[str] | None:
        desk, words = first_desk(task.spec["question"]), list[str]()
        following = first
        while len(words) < self._max_steps - 1:
            following = following or self._better(desk, task, words)
            if following is None:
                break
            desk, words = self._searched(desk, following), [*words, following]
            following = None
            if (answer := _answer(desk, task)) and not _missing(desk, task):
                return [*words, answer]
        answer = _answer(desk, task)
        return [*words, answer] if words and answer and not answer.endswith(("yes", "no")) else None

    def _better(self, desk: Desk, task: Task, done: list[str]) -> str | None:
        """The first search that finds a gold title, or else the answer; None if none does."""
        missing, known, helps = _missing(desk, task), _answer(desk, task), None
        for word in _searches(desk, missing):
            if word in done and "candidate" not in word:  # candidates change their numbers
                continue
            after = self._searched(desk, word)
            if len(_missing(after, task)) < len(missing):
                return word
            if helps is None and known is None and _answer(after, task):
                helps = word
        return helps

    def _searched(self, desk: Desk, word: str) -> Desk:
        said = read_action(word, desk)
        return desk if said is None else with_passages(desk, self._retrieve(said[1], self._top_k))


def _searches(desk: Desk, missing: set[str]) -> Iterator[str]:
    """The searches worth a try: the question, its entities, and candidates that occur in a missing title."""
    yield "search question"
    yield from (f"search entity {number}" for number in range(1, len(desk.entities) + 1))
    titles = list(map(normalized, missing))
    for number, candidate in enumerate(desk.answers, 1):
        if any(normalized(candidate.text) in title for title in titles):
            yield f"search candidate {number}"


def _missing(desk: Desk, task: Task) -> set[str]:
    """The gold titles that are not on the desk."""
    return set(task.spec["supporting_titles"]) - set(desk.pages)


def _answer(desk: Desk, task: Task) -> str | None:
    """The short action that gives the right answer; None if there is none."""
    for alias in task.spec["answers"]:
        if normalized(alias) in POLAR & {"yes", "no"}:
            return f"answer {normalized(alias)}"
    numbered = enumerate(desk.answers, 1)
    right = (number for number, each in numbered if exact_match(each.text, task.spec["answers"]))
    found = next(right, None)
    return None if found is None else f"answer candidate {found}"
