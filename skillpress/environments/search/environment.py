"""Questions answered by search, in Search-R1's interface: a query, its passages, and finally an answer.

An action is the text in <search> or in <answer>. A search returns its passages in <information>. The first
answer ends the episode, and it is won if it matches one of the question's answers exactly, after the usual
normalisation. The last step has no search, so T steps are T - 1 searches and an answer.

``task.spec`` holds ``question``, ``answers`` (aliases), ``dataset`` and ``supporting_titles`` (for oracles;
the environment ignores them).
"""

from __future__ import annotations

from collections.abc import Sequence

from gymnasium.spaces import Space

from skillpress.core.interface import Info
from skillpress.core.trajectory import Task
from skillpress.environments.notebook_qa import desk as desks
from skillpress.environments.notebook_qa.answers import exact_match, f1, f1_rule, has_answer, normalized
from skillpress.environments.notebook_qa.desk import Desk, DeskState, first_desk
from skillpress.environments.notebook_qa.environment import LONGEST_ANSWER, WRONG_ANSWER
from skillpress.environments.notebook_qa.search.backend import Passage
from skillpress.environments.notebook_qa.search.texts import LONGEST_QUERY
from skillpress.environments.search.actions import read_action, short_words, tagged_text
from skillpress.environments.search.parameters import SearchParameters
from skillpress.environments.search.retriever import retriever_of
from skillpress.environments.text.spaces import AnyText

UNREADABLE = (
    "Nothing was done: a step is one query between <search> and </search>, or the answer between <answer> "
    "and </answer>."
)
NO_SEARCH = "This is the last step, which has no search."


class SearchEpisodes:
    """One question at a time."""

    action_space: Space[str] = AnyText(max(LONGEST_QUERY, LONGEST_ANSWER))
    observation_space: Space[str] = AnyText(1 << 20)

    def __init__(self, parameters: SearchParameters) -> None:
        self._parameters, self._retrieve = parameters, retriever_of(parameters)
        self._over = True

    def reset(self, task: Task) -> tuple[str, Info]:
        """Ask the question."""
        self._spec, self._desk, self._steps = task.spec, first_desk(task.spec["question"]), 0
        self._asked: tuple[str, ...] = ()
        self._over = False
        return f"Question: {self._desk.question}", self._info()

    def step(self, action: str) -> tuple[str, bool, bool, Info]:
        """Search or answer, in either wording (see ``actions.py``).

        Raises:
            RuntimeError: the episode is over.
            RetrieverError: the retriever does not answer.
        """
        if self._over:
            raise RuntimeError("the episode is over; call reset first")
        self._steps += 1
        last = self._steps >= self._parameters.max_steps
        said = read_action(action, self._desk)
        observation, answer, invalid = "", None, None
        if said is None:
            observation, invalid = UNREADABLE, "unreadable"
        elif said[0] == "answer":
            answer = said[1][:LONGEST_ANSWER]
        elif last:
            observation, invalid = NO_SEARCH, "no_search_left"
        else:
            observation = self._search(said[1][:LONGEST_QUERY])
        self._over = last or answer is not None
        info = self._info(tagged_text(*said) if said else None, invalid, answer)
        return observation, answer is not None, last and answer is None, info

    def _search(self, query: str) -> str:
        found = self._retrieve(query, self._parameters.top_k)
        self._asked += (normalized(query),)
        self._desk = with_passages(self._desk, found)
        return information(found, self._parameters.passage_characters)

    def _info(self, said: str | None = None, invalid: str | None = None, answer: str | None = None) -> Info:
        left = self._parameters.max_steps - self._steps
        answers: Sequence[str] = self._spec["answers"]
        won = answer is not None and exact_match(answer, answers)
        measures = {
            "exact_match": float(won),
            "f1": f1(answer or "", answers, f1_rule(self._spec["dataset"])),
            "has_answer": float(has_answer(answer)),
        }
        return Info(
            won=won,
            lost=WRONG_ANSWER if answer is not None and not won else None,
            action=said,
            invalid=invalid,
            admissible=short_words(self._desk, may_search=left > 1),
            measures=measures if self._over else {},
            answer=answer,
            state=DeskState(self._desk.question, self._desk, self._steps, left),
            state_key="\n".join(sorted(set(self._asked))),
        )


def information(found: Sequence[Passage], most: int) -> str:
    """The passages as the agent sees them; ``most`` is the maximum number of characters of each."""
    lines = [f"Doc {number}(Title: {each.title}) {each.text[:most]}" for number, each in enumerate(found, 1)]
    told = "\n".join(lines).strip()
    return f"\n\n<information>{told}</information>\n\n"


def with_passages(desk: Desk, found: Sequence[Passage]) -> Desk:
    """The desk after a search: it holds the passages' titles, and the answers that they offer."""
    titled = [(each.title.strip('"'), each.text) for each in found]
    desk = desks.searched(desk, titled)
    for title, text in titled:
        desk = desks.read(desk, title, text)
    return desk
