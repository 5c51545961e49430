"""Names runs: by a row of the papers' tables, or by the nearest row and the keys that differ from it.

All parameters together define a method. Every row has a manifest, the keys that it sets. Of all other keys
some are settings, which the runs of one table share (:data:`SETTINGS`), and some only describe a run
(:data:`DESCRIBING`). A key in none of these lists distinguishes methods, whatever its value. So a new
parameter distinguishes until it is listed; a test changes every key in turn. Two runs have one name in a
table only if they differ in nothing but their seeds and describing keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from skillpress.evaluation.paper.layout import L0_METHODS, METHODS, ONE_ANSWER
from skillpress.experiment.params import Params

Keys = dict[str, Any]
"""The values of dotted keys of params.yaml."""

VANILLA = "vanilla"
ABSENT = "absent"
"""The value of a key that a run's parameters do not have, such as another algorithm's."""

DESCRIBING: Mapping[str, str] = {
    "seed": "a method is trained with several",
    "engine.cache_gib": "how much memory an engine may take, not what it samples",
    "engine.urls": "where servers are, not what they sample",
    "engine.answer_seconds": "how long an answer may take before the run stops",
    "engine.seeded": "whose random numbers are drawn, not from which distribution",
    "engine.transfer": "by which way weights travel to a server, not which",
    "workers.urls": "where episodes are played, not which",
    "workers.wait_seconds": "how long an episode may wait before the run stops",
    "skills.library.teacher.url": "where a server is, not what it answers",
    "skills.library.teacher.key_variable": "where a key is, not what a server answers",
    "training.probe": "plays with seeds of its own, into a file alone",
    "training.probe.every": "likewise",
    "training.probe.tasks": "likewise",
    "training.timeout": "how long a process waits before it gives up",
    "training.mismatch_limit": "stops a run; one that finished has not reached it",
}
"""Keys that do not affect the result of a finished run, each with the reason."""

SETTINGS = frozenset(
    {
        "processes", "environment", "tasks", "policy", "imitation", "engine", "sampling", "rollouts",
        "evaluation",
        "reward.success", "reward.invalid_penalty", "reward.measures", "reward.shaping_weight",
        "skills.max_phrase_length", "skills.buffer", "skills.corpus", "skills.search", "skills.closure",
        "skills.dictionaries", "skills.start",
        "training.steps", "training.tasks_per_step", "training.rollouts_per_task", "training.learning_rate",
        "training.weight_decay", "training.betas", "training.warmup_steps", "training.gradient_clipping",
        "training.minibatches", "training.minibatch_size", "training.deepspeed", "training.microbatch_tokens",
        "training.gradient_checkpointing", "training.compile", "training.checkpoint_every", "training.keep",
    }
)  # fmt: skip
"""Keys and sections that belong to no method: a row may have any value, and its table has one. A row that
sets such a key has its own value all the same."""

_PLAIN: Keys = {
    "reward.shaping_credit": "trajectory",
    "reward.centred": False,
    "skills.library": None,
    "experience.name": "none",
    "training.lag": 0,
    "training.replay": None,
    "training.lora": None,
    "training.side_calls": True,
}
_DICTIONARY: Keys = {
    "skills.max_phrase_length": 4,
    "skills.buffer": 256,
    "skills.corpus": "algorithm_1",
    "skills.search": "greedy",
    "skills.closure": "none",
    "skills.dictionaries": "shared",
}
"""The paper's dictionary; keys of every row whose successes are shaped."""
_GRPO: Keys = _PLAIN | {
    "algorithm.name": "grpo",
    "algorithm.ratio": "token",
    "algorithm.clip_low": 0.2,
    "algorithm.clip_high": 0.2,
    "algorithm.aggregation": "token_mean",
    "algorithm.discount": 1.0,
    "algorithm.importance": "none",
    "algorithm.importance_cap": 2.0,
    "algorithm.select.name": "none",
}
_REINFORCE: Keys = _PLAIN | {
    "algorithm.name": "reinforce_pp",
    "reward.shaping": "none",
    "training.minibatches": 1,
}

_INVALID: Keys = {"reward.invalid_counts": "any", "reward.invalid_credit": "trajectory"}
_REUSERL: Sequence[Keys] = (
    _INVALID
    | {
        "algorithm.scale": "none",
        "algorithm.baseline_weighting": "per_trajectory",
        "algorithm.kl_coefficient": 0.0,
        "algorithm.kl_share": 1.0,
        "algorithm.dual_clip": None,
    },
    {
        "algorithm.scale": "std",
        "algorithm.dual_clip": 3.0,
        "algorithm.baseline_weighting": "per_step",
        "algorithm.kl_coefficient": 0.01,
        "algorithm.kl_share": 0.25,
        "reward.invalid_counts": "format",
        "reward.invalid_credit": "step",
    },
)
_L0: Sequence[Keys] = (
    _INVALID | {"algorithm.kl_coefficient": 0.0, "algorithm.kl_share": 1.0},
    _INVALID | {"algorithm.kl_coefficient": 0.001, "algorithm.kl_share": 0.25},
)


@dataclass(frozen=True)
class Row:
    """A row's manifest."""

    label: str
    sets: Keys
    """The values of the keys that define the method."""
    conventions: Sequence[Keys] = _REUSERL
    """Keys that params.yaml (first) and the code behind the paper (``params/paper_*.yaml``) set differently.
    A run follows one of the two in all of them, and all runs of a table the same one."""


_SHAPED = _GRPO | _DICTIONARY
ROWS: Mapping[str, Row] = {
    "grpo": Row(METHODS["grpo"], _GRPO | {"reward.shaping": "none"}),
    "round_length": Row(METHODS["round_length"], _SHAPED | {"reward.shaping": "round_length"}),
    "segcost": Row(METHODS["segcost"], _SHAPED | {"reward.shaping": "segcost"}),
    "segcost_no_buffer": Row(
        METHODS["segcost_no_buffer"], _SHAPED | {"reward.shaping": "segcost", "skills.buffer": 0}
    ),
    "l0": Row(
        L0_METHODS["l0"],
        _REINFORCE
        | {
            "algorithm.discount": 0.95,
            "algorithm.select.name": "dynamic_sampling",
            "algorithm.select.discard": 0.5,
            "algorithm.select.refills": 2,
        },
        _L0,
    ),
    "reinforce_pp": Row(
        "L0-RL without its discount and selection",
        _REINFORCE | {"algorithm.discount": 1.0, "algorithm.select.name": "none"},
        _L0,
    ),
}
"""The rows of the papers' tables, and L0's gradient alone. L0's discount and selection are those of its
released code."""


@dataclass(frozen=True)
class Method:
    """The name of a run."""

    row: str
    """The row, or the nearest one: an entry of :data:`ROWS` or ``vanilla``."""
    differing: Keys = field(default_factory=dict)
    """The run's values of the keys that the row does not explain; empty if it is the row."""

    @property
    def name(self) -> str:
        """The row's name in the tables' files; the label of a run that has no row."""
        return self.label if self.differing else self.row

    @property
    def label(self) -> str:
        """Words such as ``GRPO``, or ``SegCost (buffer) with reward.shaping_weight 31.6``."""
        row = label_of(self.row)
        shown = (f"{key} {in_words(value)}" for key, value in self.differing.items() if self._shown(key))
        return f"{row} with {', '.join(shown)}" if self.differing else row

    def _shown(self, key: str) -> bool:
        """All but the keys of a section that another part's section replaces."""
        replaced = any(
            other.startswith(f"{key}.") or (name == "name" and key.startswith(f"{section}."))
            for other in self.differing
            for section, _, name in [other.rpartition(".")]
        )
        return self.differing[key] != ABSENT or not replaced


def label_of(name: str) -> str:
    """The label of a name in the tables' files; a name without a row is a label already."""
    return ROWS[name].label if name in ROWS else METHODS.get(name, name)


def in_words(value: Any) -> str:
    """A parameter's value as params.yaml has it."""
    return value if isinstance(value, str) else json.dumps(value)


def method(params: Params) -> Method:
    """The name of a run outside of tables."""
    return methods([params])[0]


def methods(runs: Sequence[Params]) -> list[Method]:
    """The names of the runs of one table, in their order. The first run that is a row defines the table's
    settings. A run with other settings has them in its name.
    """
    found = [_Found(keys_of(params)) for params in runs]
    every = dict.fromkeys(key for run in found for key in run.keys)
    shared: dict[tuple[str, str], Any] = {}
    for run in sorted(found, key=lambda run: bool(run.differing)):
        if not run.trained:
            continue
        for key in every:
            if key not in run.sets and (is_setting(key) or key in run.convention):
                value, of = run.keys.get(key, ABSENT), run.algorithm if key.startswith("algorithm.") else ""
                if shared.setdefault((of, key), value) != value:
                    run.differing[key] = value
    return [Method(run.row, run.differing) for run in found]


def keys_of(params: Params) -> dict[str, Any]:
    """Dotted key to value of all parameters that do not only describe a run."""
    return {key: value for key, value in flatten(params.model_dump(mode="json")) if decides(key)}


def untrained(keys: Keys) -> str:
    """The name of an untrained policy: Vanilla, or L0's name of an agent that answers at once."""
    if keys["environment.name"] != "notebook_qa":
        return VANILLA
    return ONE_ANSWER.get(keys["policy.rendering"], VANILLA)


def decides(key: str) -> bool:
    """Whether a key can decide a result; see :data:`DESCRIBING`."""
    return key not in DESCRIBING


def flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """``section.key`` and value of nested parameters."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


class _Found:
    """A run's nearest row: of those with its shaping, the one that leaves the fewest keys unexplained."""

    def __init__(self, keys: Keys) -> None:
        self.keys, self.algorithm = keys, str(keys["algorithm.name"])
        self.trained = keys["training.steps"] > 0
        self.row = untrained(keys)
        self.sets: Keys = {}
        self.convention: Keys = {}
        self.differing: dict[str, Any] = {}
        if self.trained:
            fits = [
                (row, sets, convention, unexplained(keys, sets | convention))
                for row, manifest in ROWS.items()
                for sets in [self._manifest(manifest)]
                for convention in manifest.conventions
            ]
            self.row, self.sets, self.convention, self.differing = min(
                fits, key=lambda fit: ("reward.shaping" in fit[-1], len(fit[-1]))
            )
            if untrained(keys) != VANILLA:  # every row of a paper is of agents with a loop
                self.differing["policy.rendering"] = keys["policy.rendering"]

    def _manifest(self, row: Row) -> dict[str, Any]:
        """The row's keys; a run whose successes are shaped also needs the paper's dictionary and λ = R."""
        if self.keys["reward.shaping"] == "none":
            return dict(row.sets)
        return {**_DICTIONARY, "reward.shaping_weight": self.keys["reward.success"], **row.sets}


def unexplained(keys: Keys, expected: Keys) -> dict[str, Any]:
    """A run's values of the keys that are neither settings nor as expected."""
    differing = {}
    for key in dict.fromkeys((*keys, *expected)):
        free = key not in expected and is_setting(key)
        if not free and keys.get(key, ABSENT) != expected.get(key, ABSENT):
            differing[key] = keys.get(key, ABSENT)
    return differing


def is_setting(key: str) -> bool:
    """Whether a key or a section around it is listed among :data:`SETTINGS`."""
    parts = key.split(".")
    return any(".".join(parts[:depth]) in SETTINGS for depth in range(1, len(parts) + 1))
