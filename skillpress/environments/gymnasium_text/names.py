"""Check, before anything is played, that the info keys named by a section exist and have usable values.

gymnasium does not report a misspelt key: an episode would never be won, or nothing would be admissible. So a
few episodes are played with random actions. Keys that are expected in the first info, or after every action,
must be present. A key that may come only with a win or a refusal causes an error if a similar key exists, and
otherwise a warning. gymnasium also would not report that the key for a win holds a text, which Python takes
for true, or is true from the start. Every episode would then be won.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from random import Random
from typing import Any

import gymnasium

from skillpress.core.errors import ParamsError, did_you_mean
from skillpress.environments.gymnasium_text.parameters import GymnasiumTextParameters

_LOG = logging.getLogger(__name__)

EPISODES, STEPS = 8, 200
"""Maximum number of episodes, and of steps in each."""


def check_info_keys(section: GymnasiumTextParameters, env: gymnasium.Env[str, str], seeds: list[int]) -> None:
    """Play some episodes and look for the keys.

    Raises:
        ParamsError: a key is never present (the message lists those that are), or its values are unusable.
    """
    keys = section.info
    named = {"won.info": section.won.info, "info.invalid": keys.invalid}
    always = {"info.admissible": keys.admissible, "info.action": keys.action}
    wanted = {place: key for place, key in (named | always).items() if key}
    seen: set[str] = set()
    for facts in _infos(section, env, seeds) if wanted else ():
        seen |= facts.keys()
        told_won(section, facts)
        told_admissible(section, facts)
        if seen >= set(wanted.values()):
            break
    if section.won.info in seen and all(told_won(section, env.reset(seed=seed)[1]) for seed in seeds):
        raise ParamsError(
            f"environment.won.info: {section.won.info!r} of {section.id} is true before anything was done; "
            "it must become true only when the goal is reached"
        )
    for place, key in wanted.items():
        if key in seen:
            continue
        near, there = did_you_mean(key, seen), ", ".join(sorted(seen)) or "none"
        said = (
            f"environment.{place}: {key!r} is not a key of the info that {section.id} gave in {len(seeds)} "
            f"episodes; its keys were {there}{near}"
        )
        if near or place in always:
            raise ParamsError(said)
        _LOG.warning("%s. It may come later: check that before you train", said)


def told_won(section: GymnasiumTextParameters, facts: Mapping[str, Any]) -> bool:
    """Whether an info says that the goal is reached; False if the section names no key for it.

    Raises:
        ParamsError: its value is neither true nor false.
    """
    value = facts.get(section.won.info) if section.won.info else None
    if isinstance(value, Collection):  # a text is one
        raise ParamsError(
            f"environment.won.info: {section.won.info!r} of {section.id} is {str(value)[:80]!r}, must be "
            "true or false; name another key, or use won.reward"
        )
    return bool(value)


def told_admissible(section: GymnasiumTextParameters, facts: Mapping[str, Any]) -> Sequence[str]:
    """The actions that would be carried out now, according to the info or else to the section.

    Raises:
        ParamsError: the info's value is not a list of texts.
    """
    key = section.info.admissible
    told = facts.get(key, ()) if key else section.actions
    fits = isinstance(told, Collection) and not isinstance(told, str | bytes)
    if not fits or not all(isinstance(action, str) for action in told):
        raise ParamsError(
            f"environment.info.admissible: {key!r} of {section.id} is {str(told)[:80]!r}, must be a list "
            "of texts"
        )
    return tuple(told)


def _infos(
    section: GymnasiumTextParameters, env: gymnasium.Env[str, str], seeds: list[int]
) -> Iterator[Mapping[str, Any]]:
    """Yield each info of some episodes."""
    taken = 0
    for seed in seeds:
        env.action_space.seed(seed % 2**32)
        chance, (_, facts), over = Random(seed), env.reset(seed=seed), False
        yield facts
        while not over and taken < STEPS:
            taken += 1
            told = told_admissible(section, facts)
            action = chance.choice(told) if told else env.action_space.sample()
            _, _, ended, cut, facts = env.step(action)
            over = bool(ended or cut)
            yield facts
