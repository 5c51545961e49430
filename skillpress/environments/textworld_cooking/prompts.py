"""TextWorld-Cooking in words.

``compact`` is for a policy trained from scratch: the player's memory (recipe, inventory, current room, ways
to others) as a list of words, and the last actions. The response is the words of a command and a full stop.
``text`` and ``paper`` are for pretrained models: prompts rebuilt at each step
(``environments/text/prompts.py``), with two wordings of the task. They repeat the recipe once the cookbook
was read, since a window of a few turns would lose it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from textworld.challenges.tw_cooking import cooking

from skillpress.core.interface import AgentState, Info, ScratchVocabulary, Turn
from skillpress.environments.text.prompts import GameRendering, last_turns, own_state
from skillpress.environments.text.words import STOP_WORD, split_words
from skillpress.environments.textworld_cooking.actions import VERBS
from skillpress.environments.textworld_cooking.memory import COOKED, CUT, CookingState
from skillpress.environments.textworld_cooking.memory_words import (
    LONGEST_MEMORY,
    STRUCTURE,
    memory_words,
    news_words,
)

LONGEST_ACTION = 12
"""Maximum number of words shown of a past action."""
_DIRECTIONS = (
    "prepare meal",
    *cooking.TYPES_OF_COOKING_VERBS.values(),
    *cooking.TYPES_OF_CUTTING_VERBS.values(),
)
_COMMAND_WORDS = ("from", "with", "on", "into", "north", "south", "east", "west", *VERBS)


@dataclass(frozen=True)
class CompactRendering:
    """A prompt such as ``recipe fry egg , prepare meal | have egg | room kitchen | fridge closed | past open
    fridge``."""

    history: int
    show_refusals: bool
    parser: str = "plain"

    def prompt(self, state: AgentState) -> str:
        """A prompt of at most ``LONGEST_MEMORY + history * (LONGEST_ACTION + 1) + 3`` words.

        Its last word is ``failed`` if the last action changed nothing and refusals are shown.
        """
        memory, turns = own_state(state, CookingState), last_turns(state, self.history)
        failed = ["failed"] if self.show_refusals and state.info.invalid else []
        return " ".join(chain(memory_words(memory), _past_words(turns), failed))

    def continuation(self, state: AgentState) -> str:
        """``failed`` if nothing changed; the recipe when it is read; what is carried, and what is here."""
        failed = ["failed"] if state.info.invalid else []
        read = "cookbook" in (state.info.action or "")
        return " ".join([*failed, *news_words(own_state(state, CookingState), with_recipe=read)])

    def response(self, action: str, info: Info) -> str:
        """The action's words; the vocabulary's ``end`` closes them."""
        return " ".join(split_words(action))


class TextRendering(GameRendering):
    """The usual prompt, with the recipe once it was read."""

    thought = "I take the next step of the recipe."

    def opening(self, state: AgentState) -> str:
        """The description of the task, and the recipe if it is known."""
        memory = own_state(state, CookingState)
        if not memory.recipe:
            return self.wording
        return (
            f"{self.wording}\nYou have read the cookbook. It asks for {', '.join(memory.ingredients)}. "
            f"Its directions: {', '.join(memory.recipe)}."
        )


OWN = """\
This is a game about cooking, played by typing commands. In the kitchen there is a cookbook: read it, get \
the ingredients of its recipe, cut and cook each of them as it says, then prepare the meal and eat it.
To fry use a stove, to roast an oven, to grill a BBQ; to cut anything you need a knife in your hands."""

PAPER = """\
You play a cooking game in text. Read the recipe, find all of its ingredients, process each as the recipe \
says (chop, slice or dice it), cook it, prepare the meal, and eat it. The order matters, and some mistakes \
cannot be taken back: burned food, or an ingredient cut in the wrong way, loses the game.
A stove fries, an oven roasts, a BBQ grills; a knife is needed to cut. There are at most %d steps."""


def _past_words(turns: Sequence[Turn]) -> list[str]:
    """Words such as ``| past open fridge , take egg from fridge``; a word that occurs in no command becomes
    ``?``."""
    words = ["|", "past"]
    for number, turn in enumerate(turns):
        shown = split_words(turn.action)[:LONGEST_ACTION]
        known = [word if word in _KNOWN else "?" for word in shown if word != STOP_WORD]
        words += [","] * bool(number) + known
    return words


def _words() -> tuple[str, ...]:
    """Every word of the compact rendering: TextWorld's own names, and the structure's."""
    doors = [name for door in cooking.DOORS for name in door["names"]]
    rooms = [room for group in cooking.ROOMS for room in group]
    names = (*cooking.FOODS, *cooking.ENTITIES, *rooms, *doors, *COOKED, *CUT, "raw")
    texts = (*STRUCTURE, *_COMMAND_WORDS, *_DIRECTIONS, *names, STOP_WORD)
    return tuple(dict.fromkeys(word for text in texts for word in split_words(text)))


_KNOWN = frozenset(_words())


def domain_words() -> dict[str, tuple[str, ...]]:
    """The beginnings of commands, and the names of food, furniture and rooms."""
    rooms = [room for group in cooking.ROOMS for room in group]
    names = (*cooking.FOODS, *cooking.ENTITIES, *rooms)
    return {"actions": VERBS, "entities": tuple(f" {name}" for name in dict.fromkeys(names))}


def vocabulary(history: int) -> ScratchVocabulary:
    """The words of the compact rendering; none of them is a number."""
    return ScratchVocabulary(
        words=_words(),
        stop_words=(STOP_WORD,),
        numbers={},
        end=STOP_WORD,
        state_words=LONGEST_MEMORY + history * (LONGEST_ACTION + 1) + 3,
        continuation_words=LONGEST_MEMORY + 1,
    )
