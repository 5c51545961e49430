"""Variants of an experiment that train the same policy, although their parameters differ.

Two kinds are known before anything runs. Some keys decide nothing under the other parameters: how a
dictionary is fitted, where no reward reads it. And a buffer adds nothing to a step whose own successes fill
it: Algorithm 1 keeps the newest ``skills.buffer`` successes, and a batch that holds as many is the whole
corpus, as it is without a buffer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from skillpress.core.registry import SHAPINGS, lookup
from skillpress.experiment.params import Params
from skillpress.skills.shaping import Constant, NoShaping, RoundLength, Rounds, SegmentationCost

WITHOUT_DICTIONARY = (NoShaping, Constant, RoundLength, Rounds)
"""Shapings that read no dictionary; any other may."""
DISPLACED = ("algorithm_1", "batch_accepts", "each_task_once")
"""Corpora whose buffer a batch of as many successes displaces."""
OF_PHRASES = ("max_phrase_length", "buffer", "corpus", "closure", "dictionaries")
"""Keys of ``skills`` that decide nothing where no phrases are searched for."""
NOT_TRAINED = ("training.probe",)
"""Keys that describe a training and decide none of its weights."""
OF_EARLIER = ("skills.buffer", "skills.corpus", "skills.start", "rollouts.tasks", "rollouts.per_task")
"""Keys that decide which earlier successes a step's corpus has beside its own."""


def warnings(variants: Mapping[str, Params]) -> Iterator[str]:
    """A line for each two variants that cannot differ, or differ in some steps alone.

    Args:
        variants: name to parameters; their seeds do not matter.
    """
    for (first, one), (second, other) in combinations(variants.items(), 2):
        if why := why_alike(one, other):
            yield f"{first} and {second} {why}"


def why_alike(one: Params, other: Params) -> str | None:
    """What two variants have in common, as a predicate: ``cannot differ: ...``. None if they may differ."""
    mine, others = _deciding(one), _deciding(other)
    different = _different(mine, others)
    if not different:
        unread = _different(_flat(_values(one)), _flat(_values(other)))
        decide = f"{_listed(unread)} decide{'' if unread[1:] else 's'} no weight here" if unread else ""
        return f"cannot differ: {decide or 'no parameter differs'}"
    if not set(different) <= set(OF_EARLIER) or "skills.buffer" not in mine or "skills.buffer" not in others:
        return None
    own = _different(_flat(_values(one)), _flat(_values(other)))
    named = _listed([key for key in different if key in own])
    needed = max(mine["skills.buffer"], others["skills.buffer"])
    for values in (mine, others):
        _without_buffer(values)
    episodes = min(map(episodes_of_a_step, (one, other)))
    if _different(mine, others) or needed >= episodes:
        return None
    return (
        f"differ in {named} alone, and cannot differ in a step with {needed} successes or more: "
        f"they displace the buffer, from a success of {needed / episodes:.0%} of its {episodes} episodes on. "
        f"Set skills.buffer above {episodes}, or skills.corpus buffer_and_batch"
    )


def buffer_in_words(params: Params) -> str:
    """A sentence that says when a step's dictionary is fitted to more than the step's own successes."""
    buffer, corpus, episodes = params.skills.buffer, params.skills.corpus, episodes_of_a_step(params)
    if corpus not in DISPLACED or not buffer:
        return f"dictionary: skills.corpus {corpus}, a buffer of {buffer}"
    if buffer > episodes:
        return f"dictionary: a buffer of {buffer}, which the {episodes} episodes of a step never displace"
    return (
        f"dictionary: a buffer of {buffer}, which counts only in steps with fewer than {buffer} successes, a "
        f"success below {buffer / episodes:.0%} of their {episodes} episodes"
    )


def episodes_of_a_step(params: Params) -> int:
    """The most episodes that a training step learns from, replayed ones not counted."""
    return params.training.tasks_per_step * params.training.rollouts_per_task


def _deciding(params: Params) -> dict[str, Any]:
    """Key to value, without the keys that decide no weight under the others."""
    reward, skills = params.reward, params.skills
    unread = list(NOT_TRAINED)
    trained = params.training.steps > 0
    if not trained:
        unread += ["training", "algorithm", "reward", "experience"]
    shaping = lookup(SHAPINGS, reward.shaping, "reward.shaping")
    if shaping is NoShaping or not reward.shaping_weight or (shaping is Constant and reward.centred):
        unread += ["reward.shaping", "reward.shaping_credit", "reward.shaping_weight", "reward.centred"]
        shaping = NoShaping
    if skills.library is None and (shaping in WITHOUT_DICTIONARY or not trained):
        unread.append("skills")
    elif skills.library is None and skills.search == "singletons" and shaping is SegmentationCost:
        unread += [f"skills.{name}" for name in OF_PHRASES]
    found = {
        key: value
        for key, value in _flat(_values(params)).items()
        if not any(key == name or key.startswith(f"{name}.") for name in unread)
    }
    # A dictionary is only fitted to a step that has a success, which displaces a buffer of one.
    if "skills.buffer" in found and found["skills.buffer"] < 2:
        _without_buffer(found)
    _without_unread_rollouts(found)
    return found


def _without_buffer(values: dict[str, Any]) -> None:
    """Set the keys that make the corpus of a step whose own successes fill the buffer."""
    if values["skills.corpus"] in DISPLACED or not values["skills.buffer"]:
        values["skills.buffer"] = 0
    if values["skills.corpus"] in ("batch_accepts", "buffer_and_batch") and not values["skills.buffer"]:
        values["skills.corpus"] = "algorithm_1"
    if values["skills.corpus"] in DISPLACED and not values["skills.buffer"]:
        values["skills.start"] = "empty"
    _without_unread_rollouts(values)


def _without_unread_rollouts(values: dict[str, Any]) -> None:
    """Leave out the start policy's episodes where training takes neither tasks nor successes from them."""
    if values.get("skills.start") != "rollouts" and values.get("tasks.keep", "set") is None:
        for key in ("rollouts.tasks", "rollouts.per_task"):
            values.pop(key, None)


def _values(params: Params) -> dict[str, Any]:
    return params.model_dump(mode="json", exclude={"seed"})


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in values.items():
        found |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return found


def _different(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    return [key for key in dict.fromkeys((*one, *other)) if one.get(key) != other.get(key)]


def _listed(keys: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(keys[:-1]), keys[-1])))
