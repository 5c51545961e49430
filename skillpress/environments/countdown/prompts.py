"""Countdown in words, twice.

``compact`` is for a policy made from scratch: a fixed number of words (target, pool, the last
actions), one compact action word as the whole response. ``text`` is for pretrained models: a prompt
after verl-agent's, rebuilt each step, with reasoning in ``<think>`` and the action in ``<action>``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from skillpress.environments.countdown.actions import action_words
from skillpress.environments.countdown.environment import CountdownState
from skillpress.environments.countdown.parameters import CountdownParameters
from skillpress.environments.text.prompts import noted, past
from skillpress.interface import AgentState, Info, ScratchVocabulary

EMPTY = "_"
"""Fills the places of numbers and actions that there are none of."""
UNKNOWN = "?"
"""Stands in the history for a response that was no action word."""


def _state(state: AgentState) -> CountdownState:
    assert isinstance(state.info.state, CountdownState), "the rendering is for Countdown's states"
    return state.info.state


@dataclass(frozen=True)
class CompactRendering:
    """``54 1 2 28 80 _ _ -23 +12``: target, pool ascending, the last actions with the newest last."""

    max_numbers: int
    history: int
    parser: str = "plain"
    _known: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_known", frozenset(action_words(self.max_numbers)))

    def prompt(self, state: AgentState) -> str:
        """``1 + max_numbers + history`` words."""
        environment = _state(state)
        turns = state.history[-self.history :] if self.history else ()
        words = [str(environment.target), *map(str, environment.pool)]
        words += [EMPTY] * (self.max_numbers + self.history - len(environment.pool) - len(turns))
        words += [turn.action if turn.action in self._known else UNKNOWN for turn in turns]
        return " ".join(words)

    def response(self, action: str, info: Info) -> str:
        """The action word itself."""
        return action


@dataclass(frozen=True)
class TextRendering:
    """One user turn: task, the last observations and actions, what is seen now, what is possible."""

    history: int
    parser: str = "tagged"

    def prompt(self, state: AgentState) -> str:
        """The prompt's text; a chat template may be laid around it."""
        environment = _state(state)
        numbers = " ".join(map(str, sorted(state.task.spec["numbers"])))
        turns = state.history[-self.history :] if self.history else ()
        return _TEXT.format(
            target=environment.target,
            numbers=numbers,
            past=noted(state.notes) + past(turns, environment.steps),
            step=environment.steps + 1,
            observation=state.observation,
            admissible=", ".join(f"'{action}'" for action in state.info.admissible),
        )

    def response(self, action: str, info: Info) -> str:
        """The action in the environment's own wording, in the tags that the parser reads."""
        return f"<think>I take the next step of a solution.</think><action>{info.action}</action>"


_TEXT = """\
You are an expert at the Countdown numbers game. Your task is to make the target {target} from the \
numbers {numbers}, using every number exactly once.
Each step you may combine two numbers of the pool by op(+, a, b), op(-, a, b), op(*, a, b) or \
op(/, a, b), take the last operation back by rollback, or start again by reset. The result of an \
operation replaces its two numbers; only exact, non-negative results are valid. You win when only \
{target} is left.
{past}You are now at step {step} and your current observation is: {observation}
Your admissible actions of the current situation are: [{admissible}].

Now it's your turn to take an action.
You should first reason step-by-step about the current situation. This reasoning process MUST be \
enclosed within <think> </think> tags.
Once you've finished your reasoning, you should choose an admissible action for the current step and \
present it within <action> </action> tags.
"""


def compact(parameters: CountdownParameters, history: int) -> CompactRendering:
    """The compact rendering for this section's pools."""
    return CompactRendering(parameters.max_numbers, history)


def text(parameters: CountdownParameters, history: int) -> TextRendering:
    """The text rendering; it is the same for every section."""
    return TextRendering(history)


def vocabulary(parameters: CountdownParameters, history: int) -> ScratchVocabulary:
    """The words of the compact rendering."""
    numbers = {str(number): number for number in range(parameters.max_target + 1)}
    actions = action_words(parameters.max_numbers)
    return ScratchVocabulary(
        words=(*numbers, EMPTY, UNKNOWN, *actions),
        stop_words=actions,
        numbers=numbers,
        state_words=1 + parameters.max_numbers + history,
    )
