"""The prompt of text games: one user turn, rebuilt at every step, or gone on from by further turns.

Its parts and their order are those by which verl-agent's prompt is described: the task, the last
observation-action pairs, what is seen now, what can be done, and how to answer: reasoning in ``<think>``,
then an action in ``<action>``. The sentences are our own. What a task is opens the prompt, in one of two
wordings (``policy.rendering``): ``text`` says it in a line or two, ``paper`` as ReuseRL's appendix D
describes the benchmark, with its step budget and what cannot be undone; the paper prints no prompts, and
follows verl-agent's.
"""

from __future__ import annotations

from collections.abc import Sequence

from skillpress.core.interface import Turn

ANSWER = """\
Think before you act: write your reasoning between <think> and </think>. After it, write the one action that
you choose from the list between <action> and </action>.
"""
ANSWER_WITHOUT_CHOICES = """\
Think before you act: write your reasoning between <think> and </think>. After it, write the one action that
you choose between <action> and </action>.
"""


def game_prompt(
    opening: str,
    history: Sequence[Turn],
    steps: int,
    observation: str,
    admissible: Sequence[str] | None,
    notes: str = "",
) -> str:
    """The text of the prompt; a chat template may be laid around it.

    Args:
        opening: what the task is and the rules of its environment, ending without a newline.
        history: the turns to show, oldest first, the last of them just before this step.
        steps: steps taken so far, those not shown included.
        observation: what is seen now.
        admissible: what can be done now; None where nobody tells, which leaves the list out.
        notes: what the agent's state update wrote down; a text without notes has no place for them.
    """
    present = game_turn(steps, observation, admissible)
    answer = ANSWER_WITHOUT_CHOICES if admissible is None else ANSWER
    return f"{opening}\n{noted(notes)}{past(history, steps)}{present}\n{answer}"


def game_turn(steps: int, observation: str, admissible: Sequence[str] | None) -> str:
    """What is seen now and what can be done: all that a conversation needs to go on."""
    seen = f"This is step {steps + 1}. You see: {observation}\n"
    if admissible is None:
        return seen
    choices = ", ".join(f"'{action}'" for action in admissible)
    return f"{seen}The actions that you can take now: [{choices}].\n"


def noted(notes: str) -> str:
    """The agent's notes under a heading; empty when there are none."""
    return f"What you noted so far:\n{notes}\n" if notes else ""


def budget_note(steps: int, tokens: int | None) -> str:
    """A line about what is left: steps of the episode, this one included, and ``AgentState.tokens_left``."""
    room = "" if tokens is None else f", and {tokens} tokens before earlier turns are cut"
    return f"You have {steps} {'step' if steps == 1 else 'steps'} left{room}.\n"


def past(history: Sequence[Turn], steps: int) -> str:
    """The turns as numbered observation-action pairs; empty when there are none."""
    if not history:
        return ""
    lines = "\n".join(
        f"Step {number}: you saw '{turn.observation}' and did '{turn.action}'."
        for number, turn in enumerate(history, steps - len(history) + 1)
    )
    return f"You have taken {steps} steps. The last {len(history)} of them:\n{lines}\n"


def tagged_answer(thought: str, action: str) -> str:
    """A response in the tags that the parser ``tagged`` reads."""
    return f"<think>{thought}</think><action>{action}</action>"


def notebook_answer(thought: str, code: str) -> str:
    """A response in the tags that the parser ``notebook`` reads."""
    return f"<think>{thought}</think>\n<code>\n{code}\n</code>"
