"""The prompt of text games after verl-agent's: one user turn, rebuilt at every step.

It holds who the agent is and its task, the last observation-action pairs, what is seen now, what
can be done, and the wording of the answer: reasoning in ``<think>``, then an action in ``<action>``.
"""

from __future__ import annotations

from collections.abc import Sequence

from skillpress.interface import Turn

_ANSWER = """\
Now it's your turn to take an action.
You should first reason step-by-step about the current situation. This reasoning process MUST be \
enclosed within <think> </think> tags.
Once you've finished your reasoning, you should choose an admissible action for the current step and \
present it within <action> </action> tags.
"""


def game_prompt(
    introduction: str,
    history: Sequence[Turn],
    steps: int,
    observation: str,
    admissible: Sequence[str],
    notes: str = "",
) -> str:
    """The text of the prompt; a chat template may be laid around it.

    Args:
        introduction: who the agent is, its task and the rules of its environment, ending without a newline.
        history: the turns to show, oldest first, the last of them just before this step.
        steps: steps taken so far, those not shown included.
        observation: what is seen now.
        admissible: what can be done now.
        notes: what the agent's state update wrote down; a text without notes has no place for them.
    """
    choices = ", ".join(f"'{action}'" for action in admissible)
    return (
        f"{introduction}\n"
        f"{noted(notes)}{past(history, steps)}"
        f"You are now at step {steps + 1} and your current observation is: {observation}\n"
        f"Your admissible actions of the current situation are: [{choices}].\n\n"
        f"{_ANSWER}"
    )


def noted(notes: str) -> str:
    """The agent's notes under a heading; empty when there are none."""
    return f"What you noted so far:\n{notes}\n" if notes else ""


def past(history: Sequence[Turn], steps: int) -> str:
    """The turns as numbered observation-action pairs; empty when there are none."""
    if not history:
        return ""
    lines = "\n".join(
        f"[Observation {number}: '{turn.observation}', Action {number}: '{turn.action}']"
        for number, turn in enumerate(history, steps - len(history) + 1)
    )
    return (
        f"Prior to this step, you have already taken {steps} step(s). Below are the most recent "
        f"{len(history)} observations and the corresponding actions you took:\n{lines}\n"
    )


def tagged_answer(thought: str, action: str) -> str:
    """A response in the tags that the parser ``tagged`` reads."""
    return f"<think>{thought}</think><action>{action}</action>"
