"""The workshop in words.

``compact`` is for a policy trained from scratch: a fixed number of words that contain everything needed to
choose the next action, and one compact action word as the whole response. ``text`` and ``paper`` are for
pretrained models: prompts rebuilt at each step (``environments/text/prompts.py``), with two wordings of the
task, which state the recipe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from skillpress.core.interface import AgentState, Info, ScratchVocabulary
from skillpress.environments.text.prompts import GameRendering, last_turns, own_state
from skillpress.environments.text.words import UNKNOWN
from skillpress.environments.workshop.actions import (
    ATTRIBUTES,
    HALL,
    ROOMS,
    SUBGOALS,
    TOOLS,
    compact_word,
    machine_actions,
    readable,
    routine_actions,
)
from skillpress.environments.workshop.environment import WorkshopState
from skillpress.environments.workshop.parameters import WorkshopParameters

EMPTY = "_"
"""Fills the unused places."""


@dataclass(frozen=True)
class CompactRendering:
    """A prompt such as ``red oak star paint _ _ yard handsaw _ _ _``: piece, remaining sub-goals, room, tool,
    what was done in the machine, and the last actions with the newest last."""

    section: WorkshopParameters
    history: int
    parser: str = "plain"
    _known: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_known", frozenset(action_words(self.section)))

    def prompt(self, state: AgentState) -> str:
        """A prompt of as many words as the vocabulary's ``state_words``."""
        own = own_state(state, WorkshopState)
        said = [compact_word(turn.action) for turn in last_turns(state, self.history)]
        turns = [word if word in self._known else UNKNOWN for word in said]
        filling = [EMPTY] * (self.history - len(turns))
        return " ".join((*own.piece, *self._situation(own), *filling, *turns))

    def continuation(self, state: AgentState) -> str:
        """The prompt without the piece and the past."""
        return " ".join(self._situation(own_state(state, WorkshopState)))

    def response(self, action: str, info: Info) -> str:
        """The action's compact word."""
        return compact_word(action)

    def _situation(self, own: WorkshopState) -> Sequence[str]:
        return (
            *_filled(own.left, self.section.subgoals + 1),
            own.room,
            own.tool or EMPTY,
            *_filled([compact_word(action) for action in own.machine], self.section.shortcut.length),
        )


class TextRendering(GameRendering):
    """The usual prompt; the placeholders of its wording are ``{piece}``, ``{order}`` and ``{recipe}``."""

    thought = "I take the next step towards the finished piece."

    def opening(self, state: AgentState) -> str:
        """The description of the task with its recipe."""
        order: Sequence[str] = state.task.spec["order"]
        recipe = "; ".join(f"{subgoal}: {TOOLS[subgoal]}, {ROOMS[TOOLS[subgoal]]}" for subgoal in order)
        piece = " ".join(own_state(state, WorkshopState).piece)
        return self.wording.format(piece=piece, order=", ".join(order), recipe=recipe)


OWN = """\
You work in a workshop. Your task is the piece {piece}. Its order, in this sequence: {order}; then deliver it.
For each work, go to the room of its tool, take the tool and work on the piece (work: tool, room): {recipe}.
The workshop also has a machine. It finishes some pieces by itself, if it is used in just the right way, and \
breaks all others."""

PAPER = """\
You are a worker who has to finish the piece {piece} by the order {order}, one step at a time.
Each work of the order needs its tool in your hand, and each tool is in a room of its own (work: tool, \
room): {recipe}. Works are done in the order given, and the finished piece is delivered. A step that cannot \
be done changes nothing. Whatever is done with the machine, except what finishes this very piece, breaks it \
for good. There are at most %d steps."""


def action_words(section: WorkshopParameters) -> tuple[str, ...]:
    """Every compact word of an action."""
    actions = (*routine_actions(), *machine_actions(section.shortcut.skills))
    return tuple(compact_word(action.text) for action in actions)


def domain_words(section: WorkshopParameters) -> dict[str, tuple[str, ...]]:
    """The verbs of actions, and the words of objects and pieces."""
    known = [action.text.partition(" ") for action in readable(section.shortcut.skills).values()]
    objects = (word for _, _, word in known)
    entities = dict.fromkeys((*(word for words in ATTRIBUTES for word in words), *objects))
    return {
        "actions": tuple(dict.fromkeys(verb for verb, _, _ in known)),
        "entities": tuple(f" {word}" for word in entities),
    }


def vocabulary(section: WorkshopParameters, history: int) -> ScratchVocabulary:
    """The words of the compact rendering."""
    actions = action_words(section)
    situation = (section.subgoals + 1) + 2 + section.shortcut.length
    pieces = (word for words in ATTRIBUTES for word in words)
    return ScratchVocabulary(
        words=(*pieces, *SUBGOALS, HALL, *ROOMS.values(), *TOOLS.values(), EMPTY, UNKNOWN, *actions),
        stop_words=actions,
        numbers={},
        state_words=len(ATTRIBUTES) + situation + history,
        continuation_words=situation,
    )


def _filled(words: Sequence[str], places: int) -> list[str]:
    return [*words, *[EMPTY] * (places - len(words))]
