"""Whether the keys of the info that a section names are ever there and say what they should.

This is tried out before anything is played.

A misspelt key is no error of gymnasium's: an episode would never be won, or nothing would be admissible. So a
few episodes are played by chance. What is in the first info, or comes with an action, must be there; a key
that may come with a win or a refusal alone is refused where another key is much like it, and warned about
where none is. Nor would it be an error that the key of a win holds a text, which Python takes for true, or is
true from the start: every episode would be won.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from random import Random
from typing import Any

import gymnasium

from skillpress.core.errors import ParamsError, did_you_mean
from skillpress.environments.gymnasium_text.parameters import GymnasiumTextParameters

EPISODES, STEPS = 8, 200
"""Tried at most."""


def check_info_keys(section: GymnasiumTextParameters, env: gymnasium.Env[str, str], seeds: list[int]) -> None:
    """Play some episodes and look for the keys.

    Raises:
        ParamsError: a key is never there, and the message has those that are; or its values cannot be used.
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
            "it must become true where the goal is reached"
        )
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


def told_won(section: GymnasiumTextParameters, facts: Mapping[str, Any]) -> bool:
    """Whether an info says that the goal is reached; False where the section names no key for that.

    Raises:
        ParamsError: what it says is neither true nor false.
    """
    value = facts.get(section.won.info) if section.won.info else None
    if isinstance(value, Collection):  # a text is one
        raise ParamsError(
            f"environment.won.info: {section.won.info!r} of {section.id} is {str(value)[:80]!r}, must be "
            "true or false; take another key, or won.reward"
        )
    return bool(value)


def told_admissible(section: GymnasiumTextParameters, facts: Mapping[str, Any]) -> Sequence[str]:
    """The actions that an info, or else the section, says would be carried out now.

    Raises:
        ParamsError: what the info says is no list of texts.
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
    """Each info of some episodes."""
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
