"""Question answering by search in words, for pretrained models.

``text`` asks for Search-R1's tags in our own words. The turns follow each other as they do there: thought and
query, then the passages. The released prompt itself can be a prompt file.
``compact``, for policies trained from scratch, is that of ``notebook_qa``.
"""

from __future__ import annotations

from collections.abc import Sequence

from skillpress.core.interface import AgentState, Info
from skillpress.environments.notebook_qa.desk import DeskState
from skillpress.environments.text.prompts import GameRendering, last_turns, noted, own_state

OPENING = """\
Answer the question. To look something up, write a query between <search> and </search>; the best {top_k} \
passages come back between <information> and </information>. Reason in <think> and </think> before every \
query and before the answer. When you know the answer, write it between <answer> and </answer>: a few words, \
such as a name, a date, a number, yes or no.
Question: {question}
"""
LAST = "This is the last step: answer now.\n"


def opening(top_k: int) -> str:
    """The description of the task, with the placeholder ``{question}``."""
    return OPENING.replace("{top_k}", str(top_k))


class SearchRendering(GameRendering):
    """The question, the last turns, and whether this is the last step."""

    thought = "I take the next step towards the answer."

    def opening(self, state: AgentState) -> str:
        """The description of the task with its question."""
        return self.wording.replace("{question}", own_state(state, DeskState).question)

    def choices(self, state: AgentState) -> Sequence[str] | None:
        """None: any query is possible, so there is no list."""
        return None

    def prompt(self, state: AgentState) -> str:
        """The text of the prompt; a chat template may be put around it."""
        turns = last_turns(state, self.history)
        seen = [*(turn.observation for turn in turns[1:]), state.observation]
        past = "".join(
            f"<think>{turn.thought}</think>\n{turn.action}{answer}"
            for turn, answer in zip(turns, seen, strict=False)
        )
        if not turns and own_state(state, DeskState).steps:
            past = state.observation
        return f"{self.opening(state)}{noted(state.notes)}{past}{_last(state)}"

    def continuation(self, state: AgentState) -> str:
        """The passages."""
        return f"{state.observation}{_last(state)}"

    def response(self, action: str, info: Info) -> str:
        """The action in its tags, after a thought."""
        return f"<think>{self.thought}</think>\n{info.action or action}"


def _last(state: AgentState) -> str:
    return LAST if own_state(state, DeskState).steps_left == 1 else ""
