"""TextArena's games under gymnasium: their own random streams, messages since the last action, and Wordle
with given words."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import gymnasium
import nltk
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.errors import ParamsError
from skillpress.environments.gymnasium_text import textarena as games
from skillpress.environments.gymnasium_text.environment import GymnasiumText
from skillpress.environments.gymnasium_text.tasks import make_tasks
from skillpress.environments.gymnasium_text.wordle import WordlePlayer, feedback, opening, wordle_of
from skillpress.environments.section import SplitSizes

LETTERS = st.text("abc", min_size=4, max_size=4)


@pytest.mark.parametrize("name", ["GuessTheNumber-v0", "TowerOfHanoi-v0", "Mastermind-v0", "Bandit-v0"])
@pytest.mark.filterwarnings("error")
def test_a_game_passes_gymnasiums_checker(name: str) -> None:
    check_env(gymnasium.make(f"textarena/{name}", disable_env_checker=True).unwrapped)


def test_games_beside_each_other_and_the_process_do_not_share_their_chance() -> None:
    def presses(beside: bool) -> list[str]:
        game, other = games.make_game("Bandit-v0"), games.make_game("Bandit-v0")
        said = [game.reset(seed=5)[0]]
        other.reset(seed=6)
        for _ in range(6):
            said.append(game.step("red")[0])
            if beside:
                other.step("blue")
                random.random()
        return said

    random.seed(1), np.random.seed(1)
    before = random.getstate()
    assert presses(beside=False) == presses(beside=False)
    assert random.getstate() == before, "a game leaves the process's generator as it was"
    assert presses(beside=False) == presses(beside=True)


def test_an_observation_is_what_was_said_since_the_last_action() -> None:
    game = games.make_wordle(["beach", "child"])
    first, _ = game.reset(seed=0)
    assert first.startswith("You are Playing Wordle.")
    wrong = next(word for word in ("beach", "child") if word != game._game.state.game_state["secret_word"])
    said, reward, done, _, info = game.step(wrong)
    assert "You are Playing" not in said and " ".join(wrong.upper()) in said
    assert (reward, done, info["invalid"], info["action"]) == (0.0, False, False, wrong)
    said, _, done, _, info = game.step("[apple]")
    assert info["invalid"] and not done and "not an English word" in said and info["action"] == "apple"


def test_a_response_without_an_action_is_no_move_of_the_game(wordle) -> None:
    section = wordle()
    environment = GymnasiumText(section)
    environment.reset(next(make_tasks(section, SplitSizes(1, 0, 0), 0)))
    for _ in range(4):  # TextArena ends a game at the second invalid move in a row
        _, terminated, _, info = environment.step("")
        assert not terminated and info.invalid == "no_action"


def test_a_game_for_two_is_refused(wordle) -> None:
    with pytest.raises(gymnasium.error.Error, match="not a game for one"):
        gymnasium.make("textarena/TicTacToe-v0", disable_env_checker=True).reset(seed=0)
    with pytest.raises(ParamsError, match=r"environment\.id: textarena/TicTacToe-v0 cannot be started"):
        list(make_tasks(wordle(id="textarena/TicTacToe-v0", kwargs={}), SplitSizes(1, 0, 0), 0))


def test_without_word_lists_a_word_game_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(nltk, "download", lambda *_, **__: False)
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    with pytest.raises(gymnasium.error.Error, match=r"Hangman-v0 needs NLTK's words.*WordleOfWords-v0"):
        games.make_game("Hangman-v0")


@pytest.mark.parametrize("words", [[], ["beach", "sea"], ["Beach"], ["beach", "beach"]])
def test_wordle_takes_different_words_of_one_length(words: list[str]) -> None:
    with pytest.raises(gymnasium.error.Error, match="words must be different"):
        wordle_of(words, 6)


@given(guess=LETTERS, secret=LETTERS)
def test_our_marks_are_textarenas(guess: str, secret: str) -> None:
    game = wordle_of(["abcd"], 6)
    game.reset(num_players=1, seed=0)
    game.state.game_state["secret_word"] = secret
    assert feedback(guess, secret) == tuple(game._evaluate_guess(guess))


def test_the_opening_tells_most_secrets_apart() -> None:
    words = ("aaab", "abcd", "dcba", "bbbb")
    told = {word: len({feedback(word, secret) for secret in words}) for word in words}
    assert told[opening(words)] == max(told.values())


def test_the_demonstrator_wins_and_with_detours_wins_later(wordle) -> None:
    section = wordle()
    tasks = list(make_tasks(section, SplitSizes(40, 0, 0), 0))
    environment, player = GymnasiumText(section), WordlePlayer(section)

    def guesses(rate: float) -> list[list[str]]:
        return [player(task, rate, number) for number, task in enumerate(tasks)]

    straight = guesses(0.0)
    for task, words in zip(tasks, straight, strict=True):
        environment.reset(task)
        assert [environment.step(word) for word in words][-1][3].won
        assert words[0] == opening(tuple(section.kwargs["words"]))
    assert straight == guesses(0.0)
    assert sum(map(len, guesses(1.0))) > sum(map(len, straight))


OFFLINE = """
import socket
def refuse(*arguments, **named):
    raise SystemExit(f"the network was asked for: {arguments[:2]}")
socket.socket.connect = socket.getaddrinfo = refuse
from skillpress.environments.gymnasium_text.textarena import make_wordle
game = make_wordle(["beach", "child"])
game.reset(seed=0)
print([game.step(word)[1] for word in ("beach", "child")][-1])
"""


def test_wordle_of_words_asks_the_network_for_nothing(repository) -> None:
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE], cwd=repository, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and done.stdout.split()[-1] in ("1.0", "0.0"), done.stdout + done.stderr
