"""Modules and parameters that had another name in version 0.1: for labs that still use it."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from functools import cache
from multiprocessing import parent_process
from typing import Any

from skillpress.core.errors import ParamsError

_LOG = logging.getLogger(__name__)

MOVED = {
    "console": "cli",
    "doors.formats": "integrations.formats",
    "doors.integrations": "integrations",
    "doors.serving": "integrations.serving",
    "doors.traces": "logs",
    "doors": "integrations",
    "learn.training": "training.loop",
    "learn": "training",
    "measure.evaluation": "evaluation.statistics",
    "measure": "evaluation",
    "play.rollout": "rollouts.collection",
    "play": "rollouts",
    "show": "reports",
    "training.algorithms.scored_tokens": "training.algorithms.algorithm",
    "training.algorithms.token_weights": "training.algorithms.algorithm",
}
"""Former to present name within ``skillpress``."""
KEYS = {"reward.efficiency": "reward.shaping_weight", "environment.walls": "environment.isolation"}
"""Former to present name of parameters of one section."""
_VALUES = {"environment.walls": ("bubblewrap", "gvisor", "none")}
"""Values that identify a former key, because another part may have a key of the same name."""
GONE = {
    (
        "notebook_qa",
        "pass_rates",
    ): "the stage filter_tasks keeps tasks by the pass rates of the start policy; "
    "remove it, and set tasks.keep (such as {at_least: 0.25, at_most: 0.75}) with rollouts.tasks: all",
}
"""Environment and a key that its section no longer has, to what replaces it; empty where it was unused."""
_OF_LOGS = ("Log", "NameProjection", "Wanted", "read_log", "read_rules", "success_field")
"""The names of the former ``skillpress.doors`` that are in ``skillpress.logs``."""
FORMS = {
    "algorithms": """\
the algorithm is its section now:
    class Mine(Algorithm):  # from skillpress.training.algorithms.algorithm; with the keys of its Parameters
        def advantages(self, batch, add): ...  # self.key was self.parameters.key
        def loss(self, tokens): ...  # what the function that the property loss returned did
ScoredTokens is beside Algorithm; docs/extending.md has one. `skillpress upgrade` rewrites a lab's own""",
    "selections": """\
the selection is its section now:
    class Mine(Selection):  # from skillpress.training.algorithms.algorithm; with the keys of its Parameters
        def kept(self, batch, seed): ...  # __call__(batch, seed); self.key was self.parameters.key
skillpress/training/algorithms/selections has some. `skillpress upgrade` rewrites a lab's own""",
}
"""Group of parts to a note on its present form, shown for a part in the form before 0.2."""
BEFORE = {"skills.start": "empty"}
"""Values for runs recorded before a parameter existed, where params.yaml's value now differs."""
_FORMER = re.compile(rf"\bskillpress\.({'|'.join(sorted(map(re.escape, MOVED), key=len, reverse=True))})\b")
_DOORS = re.compile(r"^([ \t]*)from skillpress\.doors import (\([^)#]*\)|[^\n(#\\]+)$", re.MULTILINE)


def with_present_names(text: str) -> str:
    """The text with the present name of every module that it calls by a former one."""
    present = _FORMER.sub(lambda found: f"skillpress.{MOVED[found[1]]}", _DOORS.sub(_of_two, text))
    return present if present == text else with_present_names(present)


def _of_two(found: re.Match[str]) -> str:
    """An import from ``skillpress.doors`` as imports from the two packages that it became."""
    names = [name for name in map(str.strip, found[2].strip("() \t").split(",")) if name]
    logs = [name for name in names if name.split()[0] in _OF_LOGS]
    packages = {"logs": logs, "integrations": [name for name in names if name not in logs]}
    lines = (f"from skillpress.{package} import {', '.join(its)}" for package, its in packages.items() if its)
    return "\n".join(f"{found[1]}{line}" for line in lines)


def with_present_keys(values: Mapping[str, Any], source: str, *, note: bool = False) -> dict[str, Any]:
    """The parameters with the present name of every key that they give by a former one.

    Args:
        source: names the parameters in an error.
        note: whether to tell the user of former keys, once in a process; stored runs may keep theirs.

    Raises:
        ParamsError: a key is given by both of its names, or a run (``note``) sets one that is gone.
    """
    found = _without_gone(values, source, note)
    for former, present in KEYS.items():
        (section, old), (_, new) = former.split("."), present.split(".")
        inside = found.get(section)
        if not isinstance(inside, Mapping) or old not in inside:
            continue
        if former in _VALUES and inside[old] not in _VALUES[former]:
            continue
        if new in inside:
            raise ParamsError(f"{source}: {former} and {present} are the same parameter; remove {former}")
        if note and parent_process() is None:
            tell(f"{former}: is now called {present}; rename it, as only this version reads the former name")
        found[section] = {new if key == old else key: value for key, value in inside.items()}
    return found


def as_recorded(values: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The parameters of a recorded run with present names, and with its values for keys added later."""
    found = with_present_keys(values, source)
    for key, value in BEFORE.items():
        section, name = key.split(".")
        inside = found.get(section)
        if isinstance(inside, Mapping) and name not in inside:
            found[section] = {**inside, name: value}
    return found


def _without_gone(values: Mapping[str, Any], source: str, refuse: bool) -> dict[str, Any]:
    """The parameters without keys that are gone and empty; one with a value stays, or is refused."""
    found = dict(values)
    for (environment, key), instead in GONE.items():
        section = found.get("environment")
        if not isinstance(section, Mapping) or section.get("name") != environment or key not in section:
            continue
        if not section[key]:
            found["environment"] = {name: value for name, value in section.items() if name != key}
        elif refuse:
            raise ParamsError(f"{source}: environment.{key}: is gone: {instead}")
    return found


@cache
def tell(note: str) -> None:
    """Warn with this note, once in a process."""
    _LOG.warning("%s", note)
