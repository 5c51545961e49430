"""Agents without a loop, L0's baselines: a direct answer, a chain of thought, retrieval then answer.

``policy.rendering`` names one: ``direct``, ``chain_of_thought`` or ``retrieval``. The prompt asks for the
answer in place of a cell, and the parser makes the cell that submits it; so an episode ends with the first
response that gives an answer. L0 prints no prompts of these baselines; the sentences are ours. As in the
direct mode of its released evaluation, a direct answer is the whole response.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from skillpress.core.errors import ParamsError
from skillpress.core.interface import AgentState, Info
from skillpress.core.markup import behind_thought
from skillpress.core.parsed_action import ParsedAction
from skillpress.environments.notebook_qa.environment import LONGEST_ANSWER, NotebookState, setting
from skillpress.environments.notebook_qa.parameters import NotebookQaParameters
from skillpress.environments.text.prompts import own_state

MOST_OF_A_PAGE = 2000
"""Maximum number of characters of a page that ``retrieval`` shows."""

_SHORT = "a few words, such as a name, a date, a number, yes or no"
DIRECT = f"""\
Answer the question with the answer alone: {_SHORT}.
Question: {{question}}
"""
THOUGHT = f"""\
Answer the question. Think step by step first. Then end with one line: "Answer: " and the answer, {_SHORT}.
Question: {{question}}
"""
RETRIEVED = """\
These paragraphs were found for the question below. They may hold its answer.
{paragraphs}
"""
_LINE = re.compile(r"[\s*_#>]*(?:final )?answer[*_]*:(?P<answer>.*)", re.IGNORECASE)
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class OneAnswer:
    """A prompt that asks for the answer at once, and shows no past."""

    history: int
    opening: str
    """The prompt, with the placeholder ``{question}``."""
    parser: str
    found: Callable[[str], str] | None = None
    """Returns the text shown above the prompt for a question; if None, nothing is shown."""

    def prompt(self, state: AgentState) -> str:
        """The text of the prompt; a chat template may be put around it."""
        question = own_state(state, NotebookState).question
        above = self.found(question) if self.found else ""
        return above + self.opening.format(question=question)

    def continuation(self, state: AgentState) -> str:
        """The prompt again: there was no answer."""
        return self.prompt(state)

    def response(self, action: str, info: Info) -> str:
        """The answer that the action submits.

        Raises:
            ParamsError: it submits none, and these agents do nothing else.
        """
        if info.answer is None:
            raise ParamsError(
                f"policy.rendering: its agent answers at once, but a demonstration has the action "
                f"{action!r}; set imitation.demonstrations to 0"
            )
        return f"Answer: {info.answer}" if self.parser == "answer_line" else info.answer


def scaffolds(parameters: NotebookQaParameters) -> dict[str, Callable[[int], OneAnswer]]:
    """The renderings of this module by name."""
    return {
        "direct": lambda history: OneAnswer(history, DIRECT, "answer"),
        "chain_of_thought": lambda history: OneAnswer(history, THOUGHT, "answer_line"),
        "retrieval": lambda history: OneAnswer(history, DIRECT, "answer", _Retrieval(parameters)),
    }


@dataclass(frozen=True)
class _Retrieval:
    """The pages of the best hits for a question; ``environment.top_k`` is their number."""

    parameters: NotebookQaParameters

    def __call__(self, question: str) -> str:
        search = setting(self.parameters).search
        titles = dict.fromkeys(hit.title for hit in search.search(question, self.parameters.top_k))
        pages = ((title, (search.read(title) or "")[:MOST_OF_A_PAGE]) for title in titles)
        return RETRIEVED.format(paragraphs="\n".join(f"[{title}] {text}" for title, text in pages))


def answer(response: str) -> ParsedAction:
    """The response is the answer, without the thought if it begins with ``<think>``.

    Invalid: ``unclosed`` (the thought has no end), ``empty``, ``too_long``, ``unprintable``.
    """
    thought, said = behind_thought(response)
    return ParsedAction(thought, "", "unclosed") if said is None else _submitting(thought, said)


def answer_line(response: str) -> ParsedAction:
    """The last line that begins with ``Answer:`` is the answer, and the text before it is the thought.

    Invalid: as in :func:`answer`, and ``missing_action`` if there is no such line.
    """
    thought, said = behind_thought(response)
    if said is None:
        return ParsedAction(thought, "", "unclosed")
    lines = said.splitlines()
    for number in reversed(range(len(lines))):
        if match := _LINE.fullmatch(lines[number]):
            before = "\n".join([thought, *lines[:number]]).strip()
            return _submitting(before, match["answer"].strip("*_ \t"))
    return ParsedAction("\n".join([thought, said]).strip(), "", "missing_action")


def _submitting(thought: str, said: str) -> ParsedAction:
    """The cell that submits an answer, or the reason it cannot be submitted."""
    said = said.strip()
    if not said:
        return ParsedAction(thought, "", "empty")
    if len(said) > LONGEST_ANSWER:
        return ParsedAction(thought, "", "too_long")
    if _SURROGATE.search(said):
        return ParsedAction(thought, "", "unprintable")
    return ParsedAction(thought, f"submit_final_answer({said!r})")
