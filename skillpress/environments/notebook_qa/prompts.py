"""Question answering in words, for pretrained models.

``paper`` is L0's agent: a thought in ``<think>``, a cell of code in ``<code>``, and the output in
``<output>``. L0 publishes no prompt, so the sentences are ours. ``text`` has the same contents in fewer
words. ``compact`` is for a policy trained from scratch (see ``compact.py``).
"""

from __future__ import annotations

from dataclasses import dataclass

from skillpress.core.interface import AgentState, Info
from skillpress.environments.notebook_qa.environment import NotebookState
from skillpress.environments.text.prompts import budget_note, last_turns, notebook_answer, noted, own_state

TOOLS = """\
Your cells share one Python interpreter, so variables last. It has the standard library, no network, and:
- search(query, k={top_k}): the best k paragraphs, as a list of {{"title", "snippet"}};
- read(title): all paragraphs under a title that a search gave;
- notepad: what is to be remembered, in the lists notepad.plan, notepad.facts and notepad.drafts;
- submit_final_answer(answer): ends the task. Only the first answer counts.
"""

OWN = """\
Answer a question by Python code that looks things up.
{tools}The answer is a few words: a name, a date, a number, yes or no.
Question: {question}
"""

PAPER = """\
You solve a task in a notebook, in a loop of thinking, coding and observing. At every step you write your
reasoning between <think> and </think>, and then one cell of Python between <code> and </code>. The cell is
run, and what it prints comes back between <output> and </output>. Plan first; keep what you find in the
notepad, since earlier steps may be cut from what you see; go on until you submit an answer.
{tools}The answer is a few words and is compared with the right one word for word.
Task: {question}
"""

_FORMAT = """\
Write your reasoning between <think> and </think>, then one cell of code between <code> and </code>.
"""


@dataclass(frozen=True)
class NotebookRendering:
    """The task, the notes, the last cells with their outputs, and the remaining budget."""

    history: int
    opening: str
    """The description of the task, with placeholders ``{tools}`` and ``{question}``."""
    tools: str
    parser: str = "notebook"

    def prompt(self, state: AgentState) -> str:
        """The text of the prompt; a chat template may be put around it."""
        environment = own_state(state, NotebookState)
        turns = last_turns(state, self.history)
        outputs = [*(turn.observation for turn in turns[1:]), state.observation]
        past = "".join(
            f"<think>{turn.thought}</think>\n<code>\n{turn.action}\n</code>\n<output>\n{output}\n</output>\n"
            for turn, output in zip(turns, outputs, strict=False)
        )
        opening = self.opening.format(tools=self.tools, question=environment.question)
        seen = past or (f"<output>\n{state.observation}\n</output>\n" if environment.steps else "")
        return f"{opening}{noted(state.notes)}{seen}{_left(state)}{_FORMAT}"

    def continuation(self, state: AgentState) -> str:
        """The output and the remaining budget."""
        return f"<output>\n{state.observation}\n</output>\n{_left(state)}"

    def response(self, action: str, info: Info) -> str:
        """The cell, with a thought, in the tags that the parser reads."""
        return notebook_answer("I take the next step towards the answer.", info.action or action)


def _left(state: AgentState) -> str:
    return budget_note(own_state(state, NotebookState).steps_left, state.tokens_left)
