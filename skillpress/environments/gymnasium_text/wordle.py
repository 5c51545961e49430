"""TextArena's Wordle with given words, and its demonstrator.

TextArena draws its secrets from NLTK's word lists, which are fetched from the internet, and checks guesses
against them. With given words nothing is fetched: they are the possible secrets and the only accepted
guesses. Rules, messages, rewards and the end of a game are TextArena's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any

import nltk
import textarena
from gymnasium.error import Error

from skillpress.core.trajectory import Task
from skillpress.environments.gymnasium_text.environment import GymnasiumText
from skillpress.environments.gymnasium_text.parameters import GymnasiumTextParameters

Feedback = tuple[str, ...]
"""G, Y or X for each letter."""


@contextmanager
def _nothing_fetched() -> Iterator[None]:
    """Prevent NLTK from downloading within the block; TextArena tries to when its word games are imported."""
    download = nltk.download
    nltk.download = lambda *_, **__: False
    try:
        yield
    finally:
        nltk.download = download


with _nothing_fetched():
    from textarena.envs.Wordle.env import WordleEnv


class _WordleOf(WordleEnv):  # type: ignore[misc]  # of a package without types
    def __init__(self, words: Sequence[str], guesses: int) -> None:
        textarena.Env.__init__(self)
        self.word_list = list(words)
        self.word_length = len(words[0])
        self.num_guesses = guesses

    def _check_word(self, word: str) -> bool:
        return word in self.word_list


def wordle_of(words: Sequence[str], guesses: int) -> textarena.Env:
    """A game whose secrets and guesses are these words.

    Raises:
        gymnasium.error.Error: they are not different words of one length in lower case.
    """
    wrong = [word for word in words if not (word.isalpha() and word.islower() and len(word) == len(words[0]))]
    if not words or wrong or len(set(words)) < len(words):
        raise Error(f"words must be different, in lower case and equally long: {wrong or list(words)}")
    if guesses < 1:
        raise Error(f"guesses must be at least 1, is {guesses}")
    return _WordleOf(words, guesses)


def feedback(guess: str, secret: str) -> Feedback:
    """Wordle's answer. A letter of the secret counts once, in its right place (G) rather than elsewhere
    (Y)."""
    left = [other for letter, other in zip(guess, secret, strict=True) if letter != other]
    marks = []
    for letter, other in zip(guess, secret, strict=True):
        if letter == other:
            marks.append("G")
        elif letter in left:
            left.remove(letter)
            marks.append("Y")
        else:
            marks.append("X")
    return tuple(marks)


@lru_cache(maxsize=8)
def opening(words: tuple[str, ...]) -> str:
    """The word with the largest number of different answers over all secrets; the first among equals."""
    return max(words, key=lambda guess: len({feedback(guess, secret) for secret in words}))


@dataclass(frozen=True)
class WordlePlayer:
    """Opens with the word whose answers distinguish the secrets best, then guesses a word that agrees with
    all answers. A detour is any other word."""

    section: GymnasiumTextParameters

    def __call__(self, task: Task, detour_rate: float, seed: int) -> list[str]:
        """The guesses for this seed, whether or not they win; the game itself is played."""
        environment, chance = GymnasiumText(self.section), Random(seed)
        words: tuple[str, ...] = tuple(self.section.kwargs["words"])
        environment.reset(task)
        guesses: list[str] = []
        possible, over = [opening(words)], False
        while not over:
            fresh = [word for word in words if word not in guesses]
            guess = chance.choice(fresh if chance.random() < detour_rate else possible)
            observation, terminated, truncated, _ = environment.step(guess)
            guesses.append(guess)
            over = terminated or truncated
            answered = _answered(observation, guess)
            told = words if not guesses[1:] else possible
            possible = [word for word in told if word != guess and feedback(guess, word) == answered]
        return guesses


def _answered(observation: str, guess: str) -> Feedback:
    """The marks below the guess's letters; empty in a last observation, which has no marks."""
    lines = observation.splitlines()
    letters = " ".join(guess.upper())
    return tuple(lines[lines.index(letters) + 1].split()) if letters in lines else ()


def oracle(section: Any) -> WordlePlayer:
    """The demonstrator for ``environment.oracle``."""
    return WordlePlayer(section)
