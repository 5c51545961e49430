"""The Z-machine that plays a compiled game, and its cleaned answers.

Raw feedback contains things that an agent must not see or does not need: the score, which rewards every right
step, a status line, the banner, and the menu after the end. It also contains the trace of Inform's actions,
which tells this module what really happened. TextWorld's wrappers would ask the machine two more questions
per episode and keep every game ever loaded, so the machine is used directly here.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from pathlib import Path

import jericho

WON, LOST = "*** The End ***", "*** You lost! ***"
_SEED = 1
"""Seed of the machine's own random numbers. They do not affect games, and 0 would mean the clock."""
_EVENT = re.compile(r"\[([^]()]+) - succeeded\]")
_LEFT_OUT = (
    re.compile(r"^.*(?=You are hungry!)", re.DOTALL),  # the banner
    re.compile(r"\n>.*$", re.DOTALL),  # the prompt and the status line
    re.compile(r"\[[^]]+\]\n?"),  # the trace
    re.compile(r"Your score has just gone [^\n]*\n?"),
    re.compile(r"You scored .*$", re.DOTALL),  # the final score and the menu after it
)
_EMPTY_LINES = re.compile(r"\n\s*\n\s*")


@dataclass(frozen=True)
class GameReply:
    """The machine's answer."""

    text: str
    """The cleaned text; paragraphs are separated by one newline."""
    events: tuple[str, ...]
    """Actions that Inform carried out, in its words and in lower case, such as ``taking the knife``."""
    won: bool
    lost: bool


class GameInterpreter:
    """One Z-machine; loads one game after the other."""

    def __init__(self) -> None:
        self._machine: jericho.FrotzEnv | None = None
        self._program: Path | None = None

    def start(self, program: Path) -> GameReply:
        """Start a game from its beginning; the reply is its introduction."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", jericho.UnsupportedGameWarning)
            if self._machine is None:
                self._machine = jericho.FrotzEnv(str(program), _SEED)
            elif program != self._program:
                self._machine.close()  # otherwise the last game's memory would leak
                self._machine._cache.clear()  # it would keep the bytes of every game
                self._machine.load(str(program), _SEED)
        self._program = program
        introduction, _ = self._machine.reset()
        self._machine.step("tw-trace-actions")
        return read_reply(introduction)

    def send(self, command: str) -> GameReply:
        """Send a line.

        Raises:
            RuntimeError: no game was started.
        """
        if self._machine is None:
            raise RuntimeError("no game was started")
        return read_reply(self._machine.step(command)[0])


def read_reply(raw: str) -> GameReply:
    """The parts of the machine's raw feedback."""
    text = raw
    for pattern in _LEFT_OUT:
        text = pattern.sub("", text)
    text = _EMPTY_LINES.sub("\n", text).strip()
    text = re.sub(r"[ \t]+", " ", text)
    events = tuple(event.lower() for event in _EVENT.findall(raw))
    return GameReply(text, events, WON in raw, LOST in raw)
