"""f_agent that is learned with the policy: what it writes in its answer, it reads in the next prompt.

Section 1.2 of *Language as a Universal Interface for Reinforcement Learning Agents* asks for memory modules
that "jointly optimize memory selection with the policy itself". Here the module is the policy: every thought
holds a memory, f_agent copies it into the next state, and all else of the thought is forgotten.

    th_k = (..., memory_k),   X_{k+1} = f_agent(X_k, th_k, A_k, O_{k+1}) = (O_{k+1}, last turns, memory_k)

Memory tokens are sampled tokens of a response like any other. They have log-probabilities, ratios and the
advantage of their step, so that the loss that trains the action trains what is kept. What they are worth
shows in later steps alone: an advantage by the whole return reaches them, one by the step's own reward does
not.

For a compact vocabulary the memory is ``length`` words of an alphabet ``m0 m1 ...`` in front of the action;
what they mean, training finds. In text it is what stands in ``<memory>`` within ``<think>``, ``length``
characters of it.

A demonstrator remembers what it did, so that imitation gives the memory a use to begin with: in text its last
actions, as many as there is room for; in words the code of its action, crc32 mod the alphabet, and behind it
what stood in the memory before, without its last word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import ClassVar, Protocol
from zlib import crc32

from skillpress.core.interface import AgentState, Info, Rendering
from skillpress.core.parsed_action import ParsedAction
from skillpress.play.agents.parsing import plain
from skillpress.play.agents.state_updates import Window

WORD = re.compile(r"m\d+")
"""A word of the memory's alphabet."""
OPEN, CLOSE = "<memory>", "</memory>"
END_OF_THOUGHT = "</think>"

REQUEST = """\
At the end of your reasoning, still before </think>, write between <memory> and </memory> what you need to
know later, in {length} characters at most. It stands among your notes at the next step; no other reasoning
of yours does.
"""


class Memory(Protocol):
    """One way to write a memory."""

    @property
    def parser(self) -> str | None:
        """What reads answers with it; None leaves that to the rendering."""
        ...

    def prompt(self, prompt: str, kept: str) -> str:
        """The prompt with what is kept in it, and with what else the policy must be told."""
        ...

    def following(self, thought: str, kept: str) -> str:
        """What is kept after a thought; what was kept before, where it says nothing."""
        ...

    def written(self, action: str, kept: str) -> str:
        """What a demonstrator writes, which is what is then kept."""
        ...

    def answer(self, response: str, written: str) -> str:
        """A response with that in it."""
        ...


@dataclass(frozen=True)
class MemoryWords:
    """Words in front of a compact action: ``m3 m0 +12``."""

    length: int
    """Words in the memory."""
    alphabet: int
    """Different words."""
    parser: ClassVar[str] = "memory"

    @property
    def words(self) -> tuple[str, ...]:
        """The alphabet; the first word fills a memory in which nothing was written."""
        return tuple(f"m{number}" for number in range(self.alphabet))

    def prompt(self, prompt: str, kept: str) -> str:
        """The memory closes the prompt."""
        return f"{prompt} {kept or self._blank}"

    def following(self, thought: str, kept: str) -> str:
        """The newest ``length`` words that were written, in this answer or before."""
        written = [word for word in thought.split() if WORD.fullmatch(word)]
        return " ".join([*(kept or self._blank).split(), *written][-self.length :])

    def written(self, action: str, kept: str) -> str:
        """The action's code, then what stood in front before."""
        before = (kept or self._blank).split()
        return " ".join([f"m{crc32(action.encode()) % self.alphabet}", *before][: self.length])

    def answer(self, response: str, written: str) -> str:
        """The words, then the action."""
        return f"{written} {response}"

    @property
    def _blank(self) -> str:
        return " ".join(["m0"] * self.length)


@dataclass(frozen=True)
class MemoryText:
    """A part of the thought: ``<think>... <memory>the key is upstairs</memory></think>``."""

    length: int
    """Characters that are kept."""
    parser: ClassVar[None] = None

    def prompt(self, prompt: str, kept: str) -> str:
        """Text renderings show notes; below stands how to write them."""
        return f"{prompt}\n{REQUEST.format(length=self.length)}"

    def following(self, thought: str, kept: str) -> str:
        """What stands between the last ``<memory>`` and ``</memory>``, on one line and cut to its length."""
        _, opened, rest = thought.rpartition(OPEN)
        text, closed, _ = rest.partition(CLOSE)
        return " ".join(text.split())[: self.length].rstrip() if opened and closed else kept

    def written(self, action: str, kept: str) -> str:
        """The last actions, the newest last."""
        done = [*filter(None, kept.split("; ")), " ".join(action.split())]
        while len(done) > 1 and len("; ".join(done)) > self.length:
            del done[0]
        return "; ".join(done)[: self.length].rstrip()

    def answer(self, response: str, written: str) -> str:
        """In the thought, at its end."""
        thought, end, rest = response.partition(END_OF_THOUGHT)
        if not end:
            raise ValueError(f"a memory stands in a thought, and {response!r} has none")
        return f"{thought} {OPEN}{written}{CLOSE}{end}{rest}"


@dataclass(frozen=True)
class Learned:
    """Keeps the last ``turns`` turns, and as notes what the policy wrote in its memory."""

    turns: int | None
    """None keeps all."""
    memory: Memory
    grows: ClassVar[bool] = False

    def __call__(
        self, state: AgentState, thought: str, action: str, observation: str, info: Info
    ) -> AgentState:
        """The next state."""
        recent = Window(self.turns)(state, thought, action, observation, info)
        return replace(recent, notes=self.memory.following(thought, state.notes))


@dataclass(frozen=True)
class Remembering:
    """A rendering with a memory in its prompts and answers (``interface.RememberingRendering``)."""

    rendering: Rendering
    memory: Memory

    @property
    def parser(self) -> str:
        """The memory's, or the rendering's own."""
        return self.memory.parser or self.rendering.parser

    @property
    def history(self) -> int | None:
        """As the rendering."""
        return self.rendering.history

    def prompt(self, state: AgentState) -> str:
        """With what is kept."""
        return self.memory.prompt(self.rendering.prompt(state), state.notes)

    def continuation(self, state: AgentState) -> str:
        """As the rendering; no prompt of a memory's goes on so."""
        return self.rendering.continuation(state)

    def response(self, action: str, info: Info) -> str:
        """As a demonstrator answers who remembers nothing yet."""
        return self._answer("", action, info)[1]

    def remembered(self, state: AgentState, action: str, info: Info) -> tuple[str, str]:
        """(thought, response) of a demonstrator in this state."""
        return self._answer(state.notes, action, info)

    def _answer(self, kept: str, action: str, info: Info) -> tuple[str, str]:
        written = self.memory.written(action if self.memory.parser else info.action or action, kept)
        thought = written if self.memory.parser else f"{OPEN}{written}{CLOSE}"
        return thought, self.memory.answer(self.rendering.response(action, info), written)


def in_front(response: str) -> ParsedAction:
    """Words of a memory, which are the thought, then the action; the parser ``memory``.

    Invalid: as :func:`skillpress.play.agents.parsing.plain` of what follows the memory.
    """
    words = response.split()
    memory = list(takewhile(WORD.fullmatch, words))
    return replace(plain(" ".join(words[len(memory) :])), thought=" ".join(memory))


def learned(turns: int | None, memory: Memory = MemoryText(500)) -> Learned:
    """The last ``turns`` turns, and what the policy chose to keep."""
    return Learned(turns, memory)
