"""What decides a stage's result besides its data and parameters: code, versions, and what names refer to now.

A stage's fingerprint is a small JSON object that the first stage writes into ``data/fingerprints``, one line
per file of code, so that two of them can be compared. DVC reruns a stage when its file changes, and the key
under which a stage keeps unfinished work is made from the same object.

What only describes a training is not in the training's fingerprint: :data:`DESCRIBING` is the whole list. An
edit of such a module does not train again. The files that it wrote (the curve, the probes, the sample of
episodes) stay as they were until the stage runs for another reason, or by ``dvc repro --force --single-item
train_policy``. A training that continues after the edit describes its earlier steps in the old way and its
later steps in the new one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from skillpress.core.names import OURS, Part, Registry
from skillpress.core.registry import EPISODES, PARSERS, registries
from skillpress.experiment.params import Params
from skillpress.pipeline.closure import Closure, Code
from skillpress.pipeline.graph import StageEntry
from skillpress.pipeline.identities import (
    embedding_identity,
    environment_data,
    environment_libraries,
    episodes_identity,
    model_identity,
    prompt_identity,
    thoughts_identity,
)
from skillpress.pipeline.sources import Sources
from skillpress.rollouts.agents.parameters import RENDERINGS_OWN
from skillpress.training.loop.parameters import DEEPSPEED

LIBRARIES = ("torch", "transformers", "deepspeed")
"""The libraries whose versions decide what a stage computes, in the stages that import them."""
CACHE = Path(".dvc/tmp/skillpress-sources.json")
"""Cached facts about each file of code, valid until the file changes."""
FOLLOWED = frozenset({OURS, "tasks"})

MADE_WITH: Mapping[str, str] = {"skills.library.teacher.name": "training.steps"}
"""Parameter whose part is made only by stages that read another one too, though more of them read its
section: a training alone asks a teacher."""
MAKES: Mapping[str, Collection[str]] = {"report": {"environment"}}
"""The sections whose parts a stage makes, for stages that read other sections only to print them."""

_DESCRIBING = "skillpress.training.loop.describing"
DESCRIBING: Mapping[str, Mapping[str, str]] = {
    "train_policy": {
        f"{_DESCRIBING}.batch_metrics": "columns of the curve; no rule of training reads them",
        f"{_DESCRIBING}.probes": "plays with seeds of its own, into a file and MLflow alone",
        f"{_DESCRIBING}.episode_sample": "copies episodes for readers after the step has learned",
        f"{_DESCRIBING}.action_metrics": "columns of the curve, from weights that it only reads",
        "skillpress.experiment.described_actions": "makes the parts of action_metrics",
        "skillpress.skills.exploitable": "one column of the curve",
        "skillpress.skills.earlier_share": "one column of the curve",
    },
}
"""Stage to the modules that describe its result and decide nothing of it, with the reason. What is not listed
here decides. A training with and without what these compute leaves the same weights, which a test shows."""


@dataclass(frozen=True)
class Fingerprints:
    """The fingerprints of one experiment's stages."""

    params: Params
    code: Code

    @classmethod
    def here(cls, params: Params) -> Fingerprints:
        """The fingerprints of the code that runs in this folder."""
        named = (part for table in registries() for part in _parts(table, params))
        outside = {part.module.partition(".")[0] for part in named if part.origin != OURS}
        return cls(params, Code(Path.cwd(), Sources(CACHE), FOLLOWED | outside))

    def of(self, stage: StageEntry) -> dict[str, Any]:
        """The fingerprint of a stage. Raises ``UserError`` if a library or a file is missing or wrong."""
        made = MAKES.get(stage.name, stage.parameters)
        found = self.closure([f"tasks.{stage.name}"], made, DESCRIBING.get(stage.name, ()))
        described = self.describe(found)
        if "torch" not in found.libraries:  # it has no weights, though it may print how they are made
            return described
        if reads(stage.parameters, "policy.model"):
            described["model"] = model_identity(self.params.policy.model)
        if reads(stage.parameters, "policy.rendering"):
            described |= prompt_identity(self.params.policy.rendering)
        if reads(stage.parameters, "policy.store"):
            described |= embedding_identity(self.params.policy.store)
        library = self.params.skills.library
        # Other stages read the section too, but training alone begins with the folder.
        begins = all(reads(stage.parameters, key) for key in ("skills.library", "training.steps"))
        if library is not None and library.folder and begins:
            described["skills"] = library.identity()
        if reads(stage.parameters, "imitation.thoughts"):
            described |= thoughts_identity(self.params.imitation.thoughts)
        if reads(stage.parameters, "imitation.episodes"):
            described |= episodes_identity(self.params.imitation.episodes)
        if reads(stage.parameters, "training.deepspeed"):
            file = DEEPSPEED / f"{self.params.training.deepspeed}.json"
            described["deepspeed"] = {file.name: self.code.sources.content(file)}
        return described

    def closure(
        self, starts: Iterable[str], parameters: Collection[str], without: Collection[str] = ()
    ) -> Closure:
        """The code that modules run with this experiment's names.

        Args:
            parameters: keys of params.yaml that are read; a part is chosen by such keys alone.
            without: modules that are left out, with what only they import.
        """
        asked = {table.parameter: table for table in registries()}

        def chosen(parameter: str) -> list[str]:
            needed = {parameter, MADE_WITH.get(parameter, parameter)}
            if parameter not in asked or not all(reads(parameters, key) for key in needed):
                return []
            return names(asked[parameter], self.params)

        return self.code.closure(starts, chosen, without)

    def describe(self, found: Closure) -> dict[str, Any]:
        """Code as JSON values, with the versions of libraries that decide what it computes, and what
        identifies the data that the environment reads.

        Raises:
            UserError: a library or a file of the data is missing.
        """
        libraries = {name: version(name) for name in LIBRARIES if name in found.libraries}
        described: dict[str, Any] = {
            "code": dict(sorted(found.files.items())),
            "parts": {key: sorted(map(str, parts)) for key, parts in sorted(found.parts.items())},
            "libraries": libraries,
        }
        if "engine.name" in found.parts:
            libraries |= self.params.engine.libraries()
        if "transformers" in found.libraries:
            libraries |= self.params.policy.libraries()
        for lora in (self.params.training.lora, self.params.imitation.lora):
            if "peft" in found.libraries and lora is not None:
                libraries |= lora.libraries()
        if "environment.name" in found.parts:
            libraries |= self._environment_libraries
            described |= {"data": self._environment_data} if self._environment_data else {}
        return described

    @cached_property
    def _environment_libraries(self) -> dict[str, str]:
        return environment_libraries(self.params.environment.name)

    @cached_property
    def _environment_data(self) -> dict[str, str]:
        return environment_data(self.params.environment)


def reads(parameters: Collection[str], parameter: str) -> bool:
    """Whether a parameter or a section that holds it is among some keys."""
    parts = parameter.split(".")
    return any(".".join(parts[:depth]) in parameters for depth in range(1, len(parts) + 1))


def names(table: Registry, params: Params) -> list[str]:
    """What an experiment names of a registry's parts; of parsers also the one that its rendering reads by."""
    if table is EPISODES:  # it has one part, for any files
        return list(table) if params.imitation.episodes else []
    value: Any = params
    for key in table.parameter.split("."):
        value = getattr(value, key, None)
    found = [] if value is None else [str(value)]
    if table is not PARSERS:
        return found
    policy, environment = params.policy, params.environment
    asked = [name for name in found if name != RENDERINGS_OWN]
    if environment.has_rendering(policy.rendering):
        asked.append(environment.rendering(policy.rendering, policy.history).parser)
    return asked


def _parts(table: Registry, params: Params) -> Iterator[Part]:
    for name in names(table, params):
        part = table.find(name)
        if part is not None:
            yield part


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What differs between two fingerprints of a stage: files, libraries and so on, by name."""
    found = []
    for kind in dict.fromkeys((*before, *after)):
        old, new = before.get(kind), after.get(kind)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            found += [key for key in dict.fromkeys((*old, *new)) if old.get(key) != new.get(key)]
        elif old != new:
            found.append(kind)
    return found
