"""Whether the keys of the info that a section names are ever there, tried out before anything is played.

A misspelt key is no error of gymnasium's: an episode would never be won, or nothing would be admissible. So a
few episodes are played by chance. What is in the first info, or comes with an action, must be there; a key
that may come with a win or a refusal alone is refused where another key is much like it, and warned about
where none is.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from random import Random

import gymnasium

from skillpress.environments.gymnasium_text.parameters import GymnasiumTextParameters
from skillpress.errors import ParamsError, did_you_mean

EPISODES, STEPS = 8, 200
"""Tried at most."""


def check_info_keys(section: GymnasiumTextParameters, env: gymnasium.Env[str, str], seeds: list[int]) -> None:
    """Play some episodes and look for the keys.

    Raises:
        ParamsError: a key is never there, and the message has those that are.
    """
    keys = section.info
    named = {"won.info": section.won.info, "info.invalid": keys.invalid}
    always = {"info.admissible": keys.admissible, "info.action": keys.action}
    wanted = {place: key for place, key in (named | always).items() if key}
    seen: set[str] = set()
    for facts in _infos(section, env, seeds) if wanted else ():
        seen |= facts
        if seen >= set(wanted.values()):
            return
    for place, key in wanted.items():
        if key in seen:
            continue
        near, there = did_you_mean(key, seen), ", ".join(sorted(seen)) or "none"
        said = (
            f"environment.{place}: {key!r} is no key of the info that {section.id} gave in {len(seeds)} "
            f"episodes; its keys were {there}{near}"
        )
        if near or place in always:
            raise ParamsError(said)
        warnings.warn(f"{said}. It may come later: look at it before you train", RuntimeWarning, stacklevel=2)


def _infos(
    section: GymnasiumTextParameters, env: gymnasium.Env[str, str], seeds: list[int]
) -> Iterator[set[str]]:
    """The keys of each info of some episodes."""
    taken = 0
    for seed in seeds:
        env.action_space.seed(seed % 2**32)
        chance, (_, facts), over = Random(seed), env.reset(seed=seed), False
        yield set(facts)
        while not over and taken < STEPS:
            taken += 1
            told = facts.get(section.info.admissible) if section.info.admissible else section.actions
            action = chance.choice(list(told)) if told else env.action_space.sample()
            _, _, ended, cut, facts = env.step(action)
            over = bool(ended or cut)
            yield set(facts)
