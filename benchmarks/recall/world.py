"""A corridor: signs tell the words of doors, empty rooms follow, and at its end one of the doors asks for its
word.

Saying ``on`` leads to the next room. At the door the right word wins and any other action loses. The door is
one of those that the signs named, so the answer is in exactly one earlier observation, and furniture in the
empty rooms has the colours of doors. Without a memory of the signs, one word in ``WORDS`` is right by chance.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from skillpress.core.interface import AgentState, Environment, Info, ScratchVocabulary
from skillpress.core.sections import PositiveInt
from skillpress.core.seeds import generator
from skillpress.core.trajectory import Task
from skillpress.environments import AnyText, EnvironmentSection, Oracle, SplitSizes, VerbProjection

COLOURS = ("red", "green", "blue", "white", "black", "brown")
WORDS = ("amber", "basil", "cedar", "daisy", "ember", "fjord", "grove", "heron")
THINGS = ("chair", "table", "lamp", "shelf")
ON = "on"
SIGN = "a sign says the word of the {} door is {}"
ROOM = "an empty room with a {} {}"
DOOR = "the {} door asks for its word"
LONGEST = len(SIGN.split())
"""Number of words in the longest observation."""


class Corridor(Environment[str]):
    """The environment; a task's ``spec`` has the observations in order and the last door's word."""

    action_space = observation_space = AnyText(128)

    def reset(self, task: Task) -> tuple[str, Info]:
        """Start in the first room."""
        self.rooms, self.word, self.place = task.spec["rooms"], task.spec["word"], 0
        return self.rooms[0], Info(admissible=[ON, *WORDS])

    def step(self, action: str) -> tuple[str, bool, bool, Info]:
        """Go on, or answer the door. A word that is said before the door ends the episode as well."""
        at_door = self.place == len(self.rooms) - 1
        won = at_door and action == self.word
        lost = None if won or (action == ON and not at_door) else "wrong_word"
        self.place += not (won or lost)
        seen = "the door opens" if won else "the door stays closed" if lost else self.rooms[self.place]
        known = action in (ON, *WORDS)
        info = Info(
            won=won,
            lost=lost,
            action=action,
            invalid=None if known else "no_such_action",
            admissible=[ON, *WORDS],
        )
        return seen, won or lost is not None, False, info


def demonstrate(task: Task, detour_rate: float, seed: int) -> list[str]:
    """The actions that open the door."""
    return [*[ON] * (len(task.spec["rooms"]) - 1), task.spec["word"]]


class Recall(EnvironmentSection):
    """Its compact prompt has the notes, the turns and the observation; its text prompt is the usual one."""

    shows_notes: ClassVar[bool] = True

    signs: PositiveInt
    """Number of signs, each with another door and another word."""
    empty: PositiveInt
    """Number of empty rooms between the last sign and the door."""

    def make_tasks(self, sizes: SplitSizes, seed: int) -> Iterator[Task]:
        for number, split in enumerate(sizes.splits):
            random = generator(seed, "recall", number)
            doors = random.permutation(len(COLOURS))[: self.signs].tolist()
            words = random.permutation(len(WORDS))[: self.signs].tolist()
            signs = [SIGN.format(COLOURS[a], WORDS[b]) for a, b in zip(doors, words, strict=True)]
            things = random.integers([len(COLOURS), len(THINGS)], size=(self.empty, 2)).tolist()
            empty = [ROOM.format(COLOURS[a], THINGS[b]) for a, b in things]
            asked = int(random.integers(self.signs))
            rooms = [*signs, *empty, DOOR.format(COLOURS[doors[asked]])]
            spec = {"rooms": rooms, "word": WORDS[words[asked]], "number": number}
            yield Task(f"corridor-{number}", self.name, seed=number, spec=spec, split=split)

    def make(self) -> Corridor:
        return Corridor()

    def make_projection(self) -> VerbProjection:
        return VerbProjection((ON, *WORDS))

    def make_oracle(self) -> Oracle:
        return demonstrate

    def prompt(self, state: AgentState) -> str:
        turns = [f"{turn.observation} {turn.action}" for turn in state.history]
        return " ".join([*state.notes.split("\n"), *turns, state.observation]).strip()

    def vocabulary(self, history: int) -> ScratchVocabulary:
        said = [*SIGN.split(), *ROOM.split(), *DOOR.split(), *COLOURS, *THINGS]
        words = dict.fromkeys(word for word in said if word != "{}")
        return ScratchVocabulary(
            words=(*words, ON, *WORDS),
            stop_words=(ON, *WORDS),
            numbers={},
            state_words=LONGEST + history * (LONGEST + 1),
        )
