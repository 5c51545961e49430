"""φ for question answering by search: the kind of a query, compared with the episode's earlier queries.

The first query of an episode is ``Search``, another one ``FollowUp``, one that was asked before ``Repeat``
(compared in lower case, without articles and punctuation), and an answer ``Answer``. Any other text has no
skill. A search that the last step refused keeps its skill. The table is ours.
"""

from __future__ import annotations

from skillpress.core.trajectory import Skills, Task, Trajectory
from skillpress.environments.notebook_qa.answers import normalized
from skillpress.environments.search.actions import first_tag
from skillpress.environments.text.rules import one_each


class SearchProjection:
    """φ(τ), at most one skill per step."""

    alphabet: tuple[str, ...] = ("Search", "FollowUp", "Repeat", "Answer")

    def __call__(self, task: Task, trajectory: Trajectory) -> tuple[Skills, ...]:
        """The skills of each step in order."""
        asked: list[str] = []
        found: list[str | None] = []
        for action in trajectory.actions:
            tag = first_tag(action)
            if tag is None or tag[0] == "answer":
                found.append(None if tag is None else "Answer")
                continue
            query = normalized(action[tag[1] + len("<search>") : tag[2]])
            found.append("Repeat" if query in asked else "FollowUp" if asked else "Search")
            asked.append(query)
        return one_each(found)
