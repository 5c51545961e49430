"""The parameters and tasks of an evaluation: params.yaml, the environment's overlay, the command line.

There is no second system of parameters. An evaluation is described by the same :class:`Params` as an
experiment, and reads some of its sections (``READ``). They come from these places; later ones win:

    the experiment whose policy the model is (its own params.yaml), or else
    params.yaml and params/paper_<environment>.yaml, the paper's settings for language models,
    or for an environment from outside the lab's overlay that names it;
    overlays that are named; the options of the command line; assignments such as sampling.slots=64
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skillpress.cli.parameter_options import own_overlay
from skillpress.core.errors import ParamsError, UserError
from skillpress.core.lab import lab_file
from skillpress.core.registry import ENVIRONMENTS
from skillpress.core.trajectory import Task
from skillpress.environments import environment_class
from skillpress.environments.section import SplitSizes
from skillpress.experiment.layers import Layer, assigned_layers, file_layer
from skillpress.experiment.params import Params, check_params, merge, merged
from skillpress.pipeline.files import BASE_POLICY, POLICY
from skillpress.pipeline.progress import StageProgress

VOTES = 7
"""Default of k, as in the paper's SC@7."""
SEED = 0
"""Default seed of the tasks and of the episodes' random choices: the same for every model."""
READ = ("seed", "processes", "environment", "tasks", "policy", "sampling", "engine", "reward", "evaluation")
"""Sections that an evaluation reads."""
_DEFAULTS = {"evaluation": {"runs": 1, "votes": VOTES}}
"""Defaults that named overlays and options may replace."""
_FEWEST = {"tasks": {"train": 1, "validation": 0}}
"""Sizes of the splits that an evaluation does not play. An experiment or overlay replaces them if they decide
the test tasks.
"""
_LEAST = {"training": {"steps": 0, "keep": "last"}}
"""An evaluation does not train, so its settings for training have the smallest values, even with overlays."""


def evaluation_params(
    environment: str,
    model: str,
    overlays: Sequence[Path] = (),
    options: Mapping[str, Any] | None = None,
    assignments: Sequence[str] = (),
) -> Params:
    """The checked parameters.

    Args:
        model: a model folder, or any other name; if an experiment made the folder, its parameters are the
        base.
        overlays: files whose values replace these.
        options: sections that options of the command line set.
        assignments: such as ``policy.history=2``; the value is YAML.

    Raises:
        ParamsError: a file, a key or a value is wrong; or the model is the policy of another environment.
    """
    base, source = _base(environment, model, bool(overlays))
    fewest, own_tests = Layer("an evaluation's splits", _FEWEST), environment_class(environment).own_tests
    layers = [
        *base,
        *([] if experiment_of(model) else [fewest]),
        Layer("an evaluation's defaults", _DEFAULTS),
        *map(file_layer, overlays),
        *([fewest] if own_tests else []),
        Layer("what an evaluation sets", _LEAST),
        Layer("options of the command line", options or {}),
        *assigned_layers(assignments),
    ]
    values = merged(layers)
    # Any number of processes is valid: training's groups, which they would share evenly, are not read.
    values = merge(values, {"training": {"tasks_per_step": values.get("processes")}})
    params = check_params(values, " + ".join([source, *map(str, overlays), "the command line"]), layers)
    if params.environment.name != environment:
        raise ParamsError(
            f"--environment: is {environment!r}, but {source} is for {params.environment.name!r}; evaluate "
            f"that one, or name an overlay of {environment} with --params"
        )
    return params


def tasks_of(params: Params, split: str) -> list[Task]:
    """The tasks of a split, in the order that experiments use."""
    environment = params.environment
    sizes = SplitSizes(params.tasks.train, params.tasks.validation, params.tasks.test)
    count = getattr(sizes, split)
    if not count:
        raise UserError(f"--split {split}: tasks.{split} is 0; --set tasks.{split}=100 makes some")
    tasks: list[Task] = []
    with StageProgress("tasks", count, "task") as progress:
        for task in environment.checked_tasks(sizes, params.seed):
            if task.split == split:
                tasks.append(task)
                progress(len(tasks))
    environment.check_tasks(tasks)
    return tasks


def experiment_of(model: str) -> Path | None:
    """The params.yaml of the experiment that made a model folder; None for any other model."""
    folder = Path(model).resolve()
    for place in (POLICY, BASE_POLICY):
        root = folder.parents[len(place.parts) - 1] if len(folder.parents) >= len(place.parts) else None
        if root is not None and folder == root / place and (root / "params.yaml").is_file():
            return root / "params.yaml"
    return None


def read_sections(params: Params) -> dict[str, Any]:
    """The parameters that an evaluation read, as YAML or JSON values."""
    values = params.model_dump(mode="json")
    splits = ("test",) if params.environment.own_tests else ("train", "validation", "test")
    return {name: values[name] for name in READ} | {
        "tasks": {split: values["tasks"][split] for split in splits},
        "engine": {"name": params.engine.name},  # its other keys only say where the engine is
    }


def deciding(params: Params) -> dict[str, Any]:
    """The parameters that affect an evaluation's episodes. Models and skills count by content, not path."""
    values = without_idle(read_sections(params))
    del values["policy"]["model"]
    if isinstance(params.environment.skills, str):
        del values["environment"]["skills"]
    return values


def without_idle(sections: Mapping[str, Any]) -> dict[str, Any]:
    """A copy without the keys that affect no episode: the numbers of concurrent episodes and of processes."""
    values = {name: dict(value) if isinstance(value, Mapping) else value for name, value in sections.items()}
    del values["processes"], values["sampling"]["slots"]
    return values


def _base(environment: str, model: str, overlaid: bool) -> tuple[list[Layer], str]:
    """(layers of parameters below all overlays, where they come from)."""
    if (own := experiment_of(model)) is not None:
        return [file_layer(own)], str(own)
    default = file_layer(lab_file("params.yaml"))
    overlay = lab_file(f"params/paper_{environment}.yaml")
    if not overlaid and environment not in ENVIRONMENTS.own and (own := own_overlay(environment)):
        return [default, file_layer(own)], f"params.yaml + {own}"
    if overlaid or not overlay.is_file():
        return [default], "params.yaml"
    # The overlay's are for its training; an evaluation needs no vLLM unless it is asked for.
    alone = Layer("an evaluation's defaults", {"processes": 1, "engine": {"name": "local"}})
    return [default, file_layer(overlay), alone], f"params.yaml + params/{overlay.name}"
