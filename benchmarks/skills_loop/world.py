"""A text world: each kind of task wants three commands in one order, which only answers reveal.

A kind is a verb and a noun. No verb and no noun belongs to one kind alone, so a task tells its kind by both.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

COMMANDS = (
    "awk", "bazel", "cargo", "diff", "flake8", "gcc", "grep", "hatch", "jq", "ld",
    "meson", "mypy", "ninja", "patch", "pytest", "ruff", "sed", "tox", "twine", "uv",
)  # fmt: skip
VERBS = ("mend", "publish", "measure", "convert", "rename", "inspect")
NOUNS = ("parser", "release", "schema", "index", "report", "module", "archive", "banner")
ROUTINE, LONGEST, COST = 3, 20, 0.02
"""Commands that a task wants, those that an episode may run, and what each takes from a return of 1."""


@dataclass(frozen=True)
class Kind:
    """Tasks that want the same commands."""

    number: int
    verb: str
    noun: str
    routine: tuple[int, ...]
    """Positions in ``COMMANDS``."""


@dataclass(frozen=True)
class WorldTask:
    """One task."""

    task_id: str
    kind: Kind
    message: str
    thing: str


@dataclass(frozen=True)
class WorldStep:
    """One command and its answer."""

    command: int
    good: bool


@dataclass(frozen=True)
class WorldEpisode:
    """One episode."""

    task: WorldTask
    steps: tuple[WorldStep, ...]

    @property
    def won(self) -> bool:
        """Whether all commands of the routine were run in order."""
        return sum(step.good for step in self.steps) == ROUTINE


def kinds(count: int, seed: int) -> list[Kind]:
    """Kinds with drawn pairs of words and drawn routines; their routines differ."""
    chance = random.Random(f"kinds {seed}")
    pairs = chance.sample([(verb, noun) for verb in VERBS for noun in NOUNS], count)
    routines: dict[tuple[int, ...], None] = {}
    while len(routines) < count:
        routines[tuple(chance.sample(range(len(COMMANDS)), ROUTINE))] = None
    return [
        Kind(number, verb, noun, routine)
        for number, ((verb, noun), routine) in enumerate(zip(pairs, routines, strict=True))
    ]


def tasks(of: Sequence[Kind], count: int, name: str) -> list[WorldTask]:
    """Tasks of kinds in turn; tasks of different names have no id and no thing in common."""
    found = []
    for number in range(count):
        kind, thing = of[number % len(of)], f"{name}_{number}"
        message = f"Please {kind.verb} the {kind.noun} of {thing} today."
        found.append(WorldTask(f"{name}-{number}", kind, message, thing))
    return found


def record_of(episode: WorldEpisode) -> dict[str, object]:
    """An episode as a record of chat completions, whose agent has a shell."""
    messages: list[dict[str, object]] = [{"role": "user", "content": episode.task.message}]
    for number, step in enumerate(episode.steps):
        line = f"{COMMANDS[step.command]} src/{episode.task.thing}.txt"
        call = {"id": f"c{number}", "function": {"name": "bash", "arguments": {"command": line}}}
        messages.append({"role": "assistant", "tool_calls": [call]})
        said = "done" if step.good else "nothing changed"
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": said})
    return {"task_id": episode.task.task_id, "messages": messages, "resolved": episode.won}
