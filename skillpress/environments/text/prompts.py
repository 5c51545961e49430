"""The prompt of text games: one user turn, which is rebuilt at every step or extended by further turns.

Its parts and their order follow the description of verl-agent's prompt: the task, the last observation-action
pairs, the current observation, the possible actions, and how to answer: reasoning in ``<think>``, then an
action in ``<action>``. The sentences are our own. The prompt begins with a description of the task, in one of
two wordings (``policy.rendering``): ``text`` uses a line or two; ``paper`` follows ReuseRL's appendix D, with
the step budget and what cannot be undone. The paper prints no prompts and follows verl-agent's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeVar, runtime_checkable

from skillpress.core.interface import AgentState, Info, Turn

State = TypeVar("State")

ANSWER = """\
Think before you act: write your reasoning between <think> and </think>. After it, write the one action that
you choose from the list between <action> and </action>.
"""
ANSWER_WITHOUT_CHOICES = """\
Think before you act: write your reasoning between <think> and </think>. After it, write the one action that
you choose between <action> and </action>.
"""


@runtime_checkable
class CountsSteps(Protocol):
    """The part of an environment's own state (``Info.state``) that the usual prompt needs."""

    @property
    def steps(self) -> int:
        """Number of steps taken so far."""


@dataclass(frozen=True)
class GameRendering:
    """The usual prompt as a ``Rendering``; an environment overrides what differs in it."""

    history: int
    wording: str
    """The description of the task. Its placeholders are filled by :meth:`opening`."""
    parser: str = "tagged"
    thought: ClassVar[str] = "I take the next step."
    """The reasoning in a demonstrator's responses."""

    def opening(self, state: AgentState) -> str:
        """The description of this task."""
        return self.wording

    def observation(self, state: AgentState) -> str:
        """What a prompt shows as the current observation."""
        return state.observation

    def choices(self, state: AgentState) -> Sequence[str] | None:
        """The possible actions; None if they are unknown."""
        return state.info.admissible

    def prompt(self, state: AgentState) -> str:
        """The text of the prompt; a chat template may be put around it."""
        return game_prompt(
            self.opening(state),
            last_turns(state, self.history),
            steps=steps_taken(state),
            observation=self.observation(state),
            admissible=self.choices(state),
            notes=state.notes,
        )

    def continuation(self, state: AgentState) -> str:
        """The current observation and the possible actions."""
        return game_turn(steps_taken(state), state.observation, self.choices(state))

    def response(self, action: str, info: Info) -> str:
        """The action in the environment's own wording, in the tags that the parser reads."""
        return tagged_answer(self.thought, info.action or action)


class WritesPrompts(Protocol):
    """A section with one wording."""

    def prompt(self, state: AgentState) -> str:
        """The prompt in a state."""


@dataclass(frozen=True)
class Prompted:
    """The rendering that uses the section's own ``prompt``."""

    section: WritesPrompts
    history: int | None
    parser: str = "plain"

    def prompt(self, state: AgentState) -> str:
        """The section's prompt."""
        return self.section.prompt(state)

    def continuation(self, state: AgentState) -> str:
        """Same as the prompt: the section has one text for a state."""
        return self.section.prompt(state)

    def response(self, action: str, info: Info) -> str:
        """The action."""
        return action


def steps_taken(state: AgentState) -> int:
    """Number of steps taken so far, by the environment's own count."""
    assert isinstance(state.info.state, CountsSteps), "the environment's state counts its steps"
    return state.info.state.steps


def own_state(state: AgentState, kind: type[State]) -> State:
    """The environment's own state, which must be of this type."""
    assert isinstance(state.info.state, kind), f"the rendering is for {kind.__name__}"
    return state.info.state


def last_turns(state: AgentState, history: int) -> Sequence[Turn]:
    """The last ``history`` turns, oldest first."""
    return state.history[-history:] if history else ()


def game_prompt(
    opening: str,
    history: Sequence[Turn],
    steps: int,
    observation: str,
    admissible: Sequence[str] | None,
    notes: str = "",
) -> str:
    """The text of the prompt; a chat template may be put around it.

    Args:
        opening: the task and the rules of its environment, without a newline at the end.
        history: the turns to show, oldest first; the last one directly precedes this step.
        steps: number of steps taken so far, including those not shown.
        observation: the current observation.
        admissible: the possible actions; None if they are unknown, which leaves the list out.
        notes: notes of the agent's state update; empty leaves out their heading.
    """
    present = game_turn(steps, observation, admissible)
    answer = ANSWER_WITHOUT_CHOICES if admissible is None else ANSWER
    return f"{opening}\n{noted(notes)}{past(history, steps)}{present}\n{answer}"


def game_turn(steps: int, observation: str, admissible: Sequence[str] | None) -> str:
    """The current observation and the possible actions: all that is needed to continue a conversation."""
    seen = f"This is step {steps + 1}. You see: {observation}\n"
    if admissible is None:
        return seen
    choices = ", ".join(f"'{action}'" for action in admissible)
    return f"{seen}The actions that you can take now: [{choices}].\n"


def noted(notes: str) -> str:
    """The agent's notes under a heading; empty if there are none."""
    return f"What you noted so far:\n{notes}\n" if notes else ""


def budget_note(steps: int, tokens: int | None) -> str:
    """A line about the remaining budget: steps of the episode, including this one, and
    ``AgentState.tokens_left``."""
    room = "" if tokens is None else f", and {tokens} tokens before earlier turns are cut"
    return f"You have {steps} {'step' if steps == 1 else 'steps'} left{room}.\n"


def past(history: Sequence[Turn], steps: int) -> str:
    """The turns as numbered observation-action pairs; empty if there are none."""
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
