"""Walk from 0 to a number in steps of 1 and 9, forwards and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from string import printable
from typing import Annotated

from gymnasium.spaces import Text
from pydantic import Field

from skillpress.core.errors import TaskError
from skillpress.core.interface import AgentState, Info, ScratchVocabulary
from skillpress.core.seeds import generator
from skillpress.core.trajectory import Task, Trajectory
from skillpress.environments.bundle import EnvironmentBundle, EnvironmentParameters, SplitSizes
from skillpress.environments.splits import refuse_repetitions
from skillpress.environments.text.prompts import game_prompt, game_turn, tagged_answer

NAME = "my_lab.number_line:BUNDLE"
"""The name of this environment in params/ and in its tasks."""
LEAP = 9
MOVES = {"forward": 1, "leap": LEAP, "back": -1, "retreat": -LEAP}


class NumberLineParameters(EnvironmentParameters):
    """``environment: {name: my_lab.number_line:BUNDLE, ...}``."""

    farthest: Annotated[int, Field(ge=1)]
    """The largest number to walk to."""


class NumberLine:
    """The environment. ``task.spec`` has the ``goal``; an episode that goes below 0 is lost."""

    action_space = observation_space = Text(max_length=64, min_length=0, charset=printable)

    def __init__(self, parameters: NumberLineParameters) -> None:
        self._max_steps = parameters.max_steps

    def reset(self, task: Task) -> tuple[str, Info]:
        """Start at 0."""
        self._goal, self._place, self._steps = task.spec["goal"], 0, 0
        return self._seen(), self._info()

    def step(self, action: str) -> tuple[str, bool, bool, Info]:
        """Make a move; any other text uses up its step and changes nothing."""
        self._steps += 1
        invalid = None if action in MOVES else "no_such_move"
        self._place += MOVES.get(action, 0)
        info = self._info(action=action, invalid=invalid)
        over = info.won or info.lost is not None
        return self._seen(), over, not over and self._steps == self._max_steps, info

    def _seen(self) -> str:
        return f"You stand at {self._place}."

    def _info(self, action: str | None = None, invalid: str | None = None) -> Info:
        return Info(
            won=self._place == self._goal,
            lost="fell" if self._place < 0 else None,
            action=action,
            invalid=invalid,
            admissible=tuple(MOVES),
            state=(self._goal, self._place, self._steps),
        )


def make_tasks(parameters: NumberLineParameters, sizes: SplitSizes, seed: int) -> Iterator[Task]:
    """Tasks of all splits; each goal is one task of one split."""
    wanted = ["train"] * sizes.train + ["validation"] * sizes.validation + ["test"] * sizes.test
    if len(wanted) > parameters.farthest:
        raise TaskError(f"{len(wanted)} tasks need as many goals: environment.farthest is too small")
    goals = generator(seed, "number line").permutation(parameters.farthest) + 1
    for goal, split in zip(goals.tolist(), wanted, strict=False):
        yield Task(
            f"to-{goal}",
            NAME,
            seed=goal,
            spec={"goal": goal},
            split=split,
            stratum="far" if goal > 9 else "near",
        )


def check_tasks(tasks: Sequence[Task]) -> None:
    """Check that no goal occurs twice."""
    refuse_repetitions(tasks, NAME, "goal", lambda task: str(task.spec["goal"]))


class MoveProjection:
    """φ: a move is its own skill."""

    alphabet = tuple(MOVES)

    def __call__(self, task: Task, trajectory: Trajectory) -> tuple[tuple[str, ...], ...]:
        """The skills of each step, here one or none; a step that makes several calls may have several."""
        return tuple((action,) if action in MOVES else () for action in trajectory.actions)


@dataclass(frozen=True)
class CompactRendering:
    """``7 3``: the goal and the place."""

    history: int
    parser: str = "plain"

    def prompt(self, state: AgentState) -> str:
        """Two words: the goal and the place."""
        goal, place, _ = state.info.state  # type: ignore[misc]
        return f"{goal} {place}"

    def continuation(self, state: AgentState) -> str:
        """The place; the goal is earlier in a prompt that grows."""
        _, place, _ = state.info.state  # type: ignore[misc]
        return f"{place}"

    def response(self, action: str, info: Info) -> str:
        """The move."""
        return action


@dataclass(frozen=True)
class TextRendering:
    """Sentences for pretrained models."""

    history: int
    parser: str = "tagged"

    def prompt(self, state: AgentState) -> str:
        """The task, notes, past turns, the present place and the possible moves."""
        goal, _, steps = state.info.state  # type: ignore[misc]
        turns = state.history[-self.history :] if self.history else ()
        task = f"You walk along a line of numbers. Your task is to: reach {goal}."
        return game_prompt(
            task,
            turns,
            steps=steps,
            observation=state.observation,
            admissible=state.info.admissible,
            notes=state.notes,
        )

    def continuation(self, state: AgentState) -> str:
        """The present place and the possible moves."""
        _, _, steps = state.info.state  # type: ignore[misc]
        return game_turn(steps, state.observation, state.info.admissible)

    def response(self, action: str, info: Info) -> str:
        """The move in tags."""
        return tagged_answer("I walk towards the number.", action)


def vocabulary(parameters: NumberLineParameters, history: int) -> ScratchVocabulary:
    """Every number that an episode can reach, and the moves."""
    reach = LEAP * parameters.max_steps
    numbers = {str(number): number for number in range(-LEAP, max(parameters.farthest, reach) + 1)}
    return ScratchVocabulary(
        words=(*numbers, *MOVES),
        stop_words=tuple(MOVES),
        numbers=numbers,
        state_words=2,
        continuation_words=1,
    )


class Demonstrator:
    """Leaps as long as it can, then moves by 1; a detour is a leap and back again."""

    def __call__(self, task: Task, detour_rate: float, seed: int) -> list[str]:
        """Moves that win."""
        leaps, walks = divmod(task.spec["goal"], LEAP)
        moves = ["leap"] * leaps + ["forward"] * walks
        if generator(seed, "detour").random() < detour_rate and leaps:
            return ["leap", "retreat", *moves]
        return moves


BUNDLE = EnvironmentBundle(
    parameters=NumberLineParameters,
    make=NumberLine,
    make_tasks=make_tasks,
    check_tasks=check_tasks,
    projection=MoveProjection(),
    renderings={
        "compact": lambda parameters, history: CompactRendering(history),
        "text": lambda parameters, history: TextRendering(history),
    },
    vocabulary=vocabulary,
    oracle=lambda parameters: Demonstrator(),
    explorer_actions=lambda info: info.admissible,
)
