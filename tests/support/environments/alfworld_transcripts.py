"""Whole games played on the engine as alfworld starts it, recorded byte by byte."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import textworld
from alfworld.agents.environment.alfred_tw_env import AlfredDemangler, AlfredInfos

from skillpress.environments.alfworld.engine_patches import PATCHES, patched
from skillpress.environments.alfworld.games import TASK_TYPES, game_paths

Transcript = list[tuple[str, tuple[str, ...], bool, bool, int]]
"""(feedback, admissible commands, won, done, score) after the reset and after every command."""


def play(path: Path, seed: int = 0, detours: int = 8) -> Transcript:
    """The stored walkthrough with randomly drawn commands before its steps; a detour may leave its path.

    The drawn commands include one that the engine refuses, and all commands that describe the state.
    """
    drawn = random.Random(f"{path.parent.name} {seed}")
    infos = textworld.EnvInfos(won=True, admissible_commands=True, extras=["gamefile"])
    engine = textworld.start(str(path), infos, [AlfredDemangler(shuffle=False), AlfredInfos])
    state = engine.reset()
    transcript: Transcript = [(state.feedback, tuple(state.admissible_commands), state.won, False, 0)]
    waiting = list(json.loads(path.read_text())["walkthrough"])
    before = sorted(drawn.choices(range(len(waiting)), k=detours), reverse=True)
    for place in before:
        waiting.insert(place, "")
    for command in [*waiting, "inventory", "look", "help", "take nothing from nowhere 1"]:
        admissible = [c for c in state.admissible_commands if c.split()[0] not in ("take", "move", "go")]
        state, score, done = engine.step(command or drawn.choice(admissible))
        transcript.append((state.feedback, tuple(state.admissible_commands), state.won, done, score))
    return transcript


def games_per_type(tree: Path, part: str, count: int, seed: int = 0) -> list[str]:
    """Paths of ``count`` games of each task type, drawn by seed."""
    paths = game_paths(tree, part)
    random.Random(seed).shuffle(paths)
    return [path for kind in TASK_TYPES for path in [p for p in paths if f"/{kind}-" in p][:count]]


if __name__ == "__main__":  # for processes with other hash seeds: prints the transcript of one game
    with patched(PATCHES if sys.argv[1] == "patched" else ()):
        print(json.dumps(play(Path(sys.argv[2]))))
