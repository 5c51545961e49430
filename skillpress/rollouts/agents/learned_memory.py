"""f_agent learned together with the policy: what the policy writes in its answer, it reads in the next
prompt.

Section 1.2 of *Language as a Universal Interface for Reinforcement Learning Agents* asks for memory modules
that "jointly optimize memory selection with the policy itself". Here the policy is the memory module: every
thought contains a memory, f_agent copies it into the next state, and the rest of the thought is forgotten.

    th_k = (..., memory_k),   X_{k+1} = f_agent(X_k, th_k, A_k, O_{k+1}) = (O_{k+1}, last turns, memory_k)

Memory tokens are sampled tokens of a response like any other. They have log-probabilities, ratios and the
advantage of their step, so the loss that trains the action also trains the memory. A memory pays off only in
later steps: an advantage computed from the whole return reaches it, an advantage computed from the step's own
reward does not.

In a compact vocabulary the memory is ``length`` words of an alphabet ``m0 m1 ...`` in front of the action,
and training decides what they mean. In text it is the content of ``<memory>`` within ``<think>``, at most
``length`` characters of it.

Demonstrators remember their actions, so that a policy trained by imitation starts with a use for the memory.
In text they write as many of their last actions as fit. In words they write the code of their action (crc32
modulo the alphabet's size), followed by the previous memory without its last word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import ClassVar
from zlib import crc32

from skillpress.core.interface import AgentState, Info, Rendering
from skillpress.core.parsed_action import ParsedAction
from skillpress.rollouts.agents.parsing import plain
from skillpress.rollouts.agents.state_updates import Window

WORD = re.compile(r"m\d+")
"""Matches a word of the memory's alphabet."""
OPEN, CLOSE = "<memory>", "</memory>"
END_OF_THOUGHT = "</think>"

REQUEST = """\
At the end of your reasoning, still before </think>, write between <memory> and </memory> what you need to
know later, in {length} characters at most. It stands among your notes at the next step; no other reasoning
of yours does.
"""


@dataclass(frozen=True)
class MemoryWords:
    """A memory of words in front of a compact action: ``m3 m0 +12``."""

    length: int
    """Number of words in the memory."""
    alphabet: int
    """Number of different words."""
    parser: ClassVar[str] = "memory"
    """The name of the parser for answers with this memory; None for the rendering's."""

    @property
    def words(self) -> tuple[str, ...]:
        """The alphabet. The first word fills a memory that has not been written yet."""
        return tuple(f"m{number}" for number in range(self.alphabet))

    def prompt(self, prompt: str, kept: str) -> str:
        """The prompt, followed by the memory."""
        return f"{prompt} {kept or self._blank}"

    def following(self, thought: str, kept: str) -> str:
        """The memory after a thought: the newest ``length`` words of this answer and earlier ones."""
        written = [word for word in thought.split() if WORD.fullmatch(word)]
        return " ".join([*(kept or self._blank).split(), *written][-self.length :])

    def written(self, action: str, kept: str) -> str:
        """What a demonstrator writes and keeps: the action's code, then the previous memory."""
        before = (kept or self._blank).split()
        # ``hash`` of a text differs from process to process; its crc32 does not.
        return " ".join([f"m{crc32(action.encode()) % self.alphabet}", *before][: self.length])

    def answer(self, response: str, written: str) -> str:
        """The memory's words, followed by the response."""
        return f"{written} {response}"

    @property
    def _blank(self) -> str:
        return " ".join(["m0"] * self.length)


@dataclass(frozen=True)
class MemoryText:
    """A memory as part of the thought: ``<think>... <memory>the key is upstairs</memory></think>``."""

    length: int
    """Maximum number of characters kept."""
    parser: ClassVar[None] = None

    def prompt(self, prompt: str, kept: str) -> str:
        """The prompt with instructions for writing below it. Text renderings show the notes already."""
        return f"{prompt}\n{REQUEST.format(length=self.length)}"

    def following(self, thought: str, kept: str) -> str:
        """The text in the last ``<memory>``, on one line and cut to ``length`` characters."""
        _, opened, rest = thought.rpartition(OPEN)
        text, closed, _ = rest.partition(CLOSE)
        return " ".join(text.split())[: self.length].rstrip() if opened and closed else kept

    def written(self, action: str, kept: str) -> str:
        """The last actions that fit, newest last."""
        done = [*filter(None, kept.split("; ")), " ".join(action.split())]
        while len(done) > 1 and len("; ".join(done)) > self.length:
            del done[0]
        return "; ".join(done)[: self.length].rstrip()

    def answer(self, response: str, written: str) -> str:
        """The response with the memory at the end of its thought."""
        thought, end, rest = response.partition(END_OF_THOUGHT)
        if not end:
            raise ValueError(f"the response {response!r} has no thought, in which the memory belongs")
        return f"{thought} {OPEN}{written}{CLOSE}{end}{rest}"


Memory = MemoryWords | MemoryText
"""A way to write a memory."""


@dataclass(frozen=True)
class Learned(Window):
    """Keeps the last ``turns`` turns, and the policy's memory as notes."""

    memory: Memory = MemoryText(500)

    def __call__(
        self, state: AgentState, thought: str, action: str, observation: str, info: Info
    ) -> AgentState:
        """The next state."""
        recent = super().__call__(state, thought, action, observation, info)
        return replace(recent, notes=self.memory.following(thought, state.notes))


@dataclass(frozen=True)
class Remembering:
    """A rendering whose prompts and answers contain a memory (``interface.RememberingRendering``)."""

    rendering: Rendering
    memory: Memory

    @property
    def parser(self) -> str:
        """The memory's parser, or the rendering's if the memory has none."""
        return self.memory.parser or self.rendering.parser

    @property
    def history(self) -> int | None:
        """Same as the rendering's."""
        return self.rendering.history

    def prompt(self, state: AgentState) -> str:
        """The rendering's prompt with the kept memory."""
        return self.memory.prompt(self.rendering.prompt(state), state.notes)

    def continuation(self, state: AgentState) -> str:
        """Same as the rendering's. Prompts with a memory are never extended."""
        return self.rendering.continuation(state)

    def response(self, action: str, info: Info) -> str:
        """The response of a demonstrator whose memory is still empty."""
        return self._answer("", action, info)[1]

    def remembered(self, state: AgentState, action: str, info: Info) -> tuple[str, str]:
        """Return (thought, response) of a demonstrator in this state."""
        return self._answer(state.notes, action, info)

    def _answer(self, kept: str, action: str, info: Info) -> tuple[str, str]:
        written = self.memory.written(action if self.memory.parser else info.action or action, kept)
        thought = written if self.memory.parser else f"{OPEN}{written}{CLOSE}"
        return thought, self.memory.answer(self.rendering.response(action, info), written)


def in_front(response: str) -> ParsedAction:
    """The parser ``memory``: words of a memory, which become the thought, followed by the action.

    Invalid for the same reasons as :func:`skillpress.rollouts.agents.parsing.plain`, applied to the text
    after the memory.
    """
    words = response.split()
    memory = list(takewhile(WORD.fullmatch, words))
    return replace(plain(" ".join(words[len(memory) :])), thought=" ".join(memory))
