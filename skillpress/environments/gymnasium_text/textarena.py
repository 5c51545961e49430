"""TextArena's games for one player, registered with gymnasium as ``textarena/GuessTheNumber-v0`` and so on.

``environment.module`` names this module; it needs the package textarena (the extra ``textarena``). The game's
own reward comes with its last step. An action without brackets gets them, since the games read only bracketed
text.

This module corrects three properties of TextArena. Its games draw from the process-wide generator, so each
game here gets its own stream, which starts from its seed; concurrent episodes do not disturb each other. An
observation contains only the game's messages since the last action, not all earlier ones. And a word game
looks for word lists on the internet when it is imported; ``textarena/WordleOfWords-v0`` is Wordle with given
words (``wordle.py``), which needs no network.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from string import printable
from typing import Any

import gymnasium
import numpy as np
import textarena
from gymnasium.spaces import Text
from textarena.envs.registration import ENV_REGISTRY

from skillpress.environments.text.spaces import AnyText

LIBRARIES = ("textarena", "nltk")
"""Packages that determine the games."""
_LONGEST_ACTION, _LONGEST_OBSERVATION = 4096, 1 << 16
_WRAPPED = ("-train", "-raw")
"""Endings of names that differ from another name only by TextArena's wrappers."""
_ONE_BRACKET = re.compile(r"\s*\[([^\[\]]*)\]\s*")
_SEEDS = 2**31


class TextArenaGame(gymnasium.Env[str, str]):
    """A game for one player. ``info`` holds ``action`` (without brackets), ``invalid`` and, at the end, the
    game's ``reason``."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  as in gymnasium

    def __init__(self, game: textarena.Env) -> None:
        self.action_space = Text(max_length=_LONGEST_ACTION, min_length=0, charset=printable)
        self.observation_space = AnyText(_LONGEST_OBSERVATION)
        self._game = game
        self._streams: tuple[Any, Any] | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start a game; without a seed, a different one each time.

        Raises:
            gymnasium.error.Error: the game needs more players.
        """
        super().reset(seed=seed)
        number = int(self.np_random.integers(_SEEDS)) if seed is None else seed % _SEEDS
        with self._own_chance():
            random.seed(number)
            np.random.seed(number)
            try:
                self._game.reset(num_players=1, seed=number)
            except AssertionError as error:
                raise gymnasium.error.Error(
                    f"{type(self._game).__name__} is not a game for one player: {error}"
                ) from error
            if not isinstance(self._game.state, textarena.SinglePlayerState):
                raise gymnasium.error.Error(f"{type(self._game).__name__} is not a game for one player")
            return self._said(), {"action": "", "invalid": False, "reason": ""}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Play an action. The reward is the game's, which is 0 before its end."""
        with self._own_chance():
            said = action if "[" in action or "]" in action else f"[{action}]"
            done, _ = self._game.step(said)
            observation = self._said()
        state = self._game.state
        end = state.game_info[0]
        match, reason = _ONE_BRACKET.fullmatch(said), str(end.get("reason", ""))
        info = {
            "action": match[1] if match else said,
            "invalid": bool(state.error_count or end["invalid_move"]),
            "reason": reason,
        }
        if done:
            observation = "\n".join(filter(None, (observation, reason)))
        reward = float(state.rewards[0]) if done else 0.0
        return observation, reward, bool(done), False, info

    def _said(self) -> str:
        """The game's messages since the last call, without the player's own actions."""
        _, messages = self._game.get_observation()
        own = textarena.ObservationType.PLAYER_ACTION
        return "\n".join(text.strip() for _, text, kind in messages if kind is not own)

    @contextmanager
    def _own_chance(self) -> Iterator[None]:
        """Replace the process's random generators by this game's within the block."""
        outside = random.getstate(), np.random.get_state()
        if self._streams is not None:
            random.setstate(self._streams[0])
            np.random.set_state(self._streams[1])
        try:
            yield
        finally:
            self._streams = random.getstate(), np.random.get_state()
            random.setstate(outside[0])
            np.random.set_state(outside[1])


def make_game(game: str, **kwargs: Any) -> TextArenaGame:
    """Make a game by TextArena's name for it, as TextArena makes it, without its wrappers.

    Raises:
        gymnasium.error.Error: NLTK's word lists are missing, and TextArena could not fetch them.
    """
    plain = f"{game}-raw"
    try:
        return TextArenaGame(textarena.make(plain if plain in ENV_REGISTRY else game, **kwargs))
    except LookupError as error:
        missing = re.search(r"Resource \W*(\w+)", str(error))
        raise gymnasium.error.Error(
            f"{game} needs NLTK's {missing[1] if missing else 'data'}, which could not be fetched: run "
            "python -m nltk.downloader words averaged_perceptron_tagger_eng where there is a network, or "
            "use textarena/WordleOfWords-v0 with words of your own"
        ) from error


def make_wordle(words: list[str], guesses: int = 6) -> TextArenaGame:
    """Make a Wordle game with the given words."""
    from skillpress.environments.gymnasium_text.wordle import wordle_of

    return TextArenaGame(wordle_of(words, guesses))


def register() -> None:
    """Register every name with gymnasium."""
    here = "skillpress.environments.gymnasium_text.textarena"
    for name in ENV_REGISTRY:
        if not name.endswith(_WRAPPED):
            gymnasium.register(
                f"textarena/{name.replace('/', '-')}", f"{here}:make_game", kwargs={"game": name}
            )
    gymnasium.register("textarena/WordleOfWords-v0", f"{here}:make_wordle")


register()
