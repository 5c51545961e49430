"""TextArena's Wordle with words of one's own, and who demonstrates it.

TextArena draws its secrets from NLTK's word lists and looks guesses up there, which are fetched from the
internet. With words of one's own there is nothing to fetch: they are the secrets, and the only guesses that
are accepted. Rules, messages, rewards and the end of a game are TextArena's.
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
    """NLTK downloads nothing meanwhile; TextArena tries to when its word games are imported."""
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
        gymnasium.error.Error: they are no words of one length in lower case, each once.
    """
    wrong = [word for word in words if not (word.isalpha() and word.islower() and len(word) == len(words[0]))]
    if not words or wrong or len(set(words)) < len(words):
        raise Error(f"words must be different, in lower case and equally long: {wrong or list(words)}")
    if guesses < 1:
        raise Error(f"guesses must be at least 1, is {guesses}")
    return _WordleOf(words, guesses)


def feedback(guess: str, secret: str) -> Feedback:
    """What Wordle answers: a letter of the secret counts once, where it stands (G) before elsewhere (Y)."""
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
    """The word to which the secrets are answered in the most different ways; the first among equals."""
    return max(words, key=lambda guess: len({feedback(guess, secret) for secret in words}))


@dataclass(frozen=True)
class WordlePlayer:
    """Opens with the word whose answers tell most, then guesses a word that agrees with all answers; a detour
    is any other word."""

    section: GymnasiumTextParameters

    def __call__(self, task: Task, detour_rate: float, seed: int) -> list[str]:
        """The guesses that this seed gives, whether or not they win; the game itself is played."""
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
    """The marks below the guess's letters; empty in a last observation, which has none."""
    lines = observation.splitlines()
    letters = " ".join(guess.upper())
    return tuple(lines[lines.index(letters) + 1].split()) if letters in lines else ()


def oracle(section: Any) -> WordlePlayer:
    """The demonstrator that ``environment.oracle`` names."""
    return WordlePlayer(section)
