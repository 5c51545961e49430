"""Options that give parameters (``--environment``, ``--params``, ``--set``), and what is read from them.

An environment is part of skillpress, is offered by an installed package, or is ``module:NAME`` in the lab's
folder. Its parameters come from params.yaml, then from the overlays that are named. If none is named, the
environment's own overlay is used: ``params/ENVIRONMENT.yaml``, or for a part from outside the file of
``params/`` that names it.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skillpress.core.arguments import is_overlay
from skillpress.core.errors import ParamsError, UserError
from skillpress.core.lab import lab_file
from skillpress.core.names import UnknownPartError, check_name
from skillpress.core.registry import ENVIRONMENTS
from skillpress.experiment.layers import Layer, assigned_layers, file_layer
from skillpress.experiment.params import Params, check_params, merge, merged, read_yaml, sources

_TRAINING_ALONE = frozenset({"imitation", "rollouts", "skills", "algorithm", "experience", "training"})
"""Sections that do not affect played episodes."""
_PLAYS_ALONE = {"imitation": {"demonstrations": 0}, "training": {"steps": 0, "keep": "last"}}
"""Overrides: nothing is imitated or trained, even if an overlay asks for it."""


def known_environment(text: str) -> str:
    """Type of an option that names an environment. An environment from outside skillpress is imported.

    Raises:
        ArgumentTypeError: the name is unknown; the message lists the known names, their packages, and the
        nearest name.
    """
    if is_overlay(text):
        raise ArgumentTypeError(
            f"{text!r} is a file of parameters, not an environment; did you mean --params {text}?"
        )
    try:
        return check_name(ENVIRONMENTS, text)
    except UnknownPartError as error:
        raise ArgumentTypeError(f"is {text!r}; {error}") from None


def add_environment(parser: ArgumentParser) -> None:
    """Add ``--environment``."""
    parser.add_argument(
        "--environment",
        required=True,
        type=known_environment,
        metavar="NAME",
        help=f"{', '.join(ENVIRONMENTS)}, an installed package's, or module:NAME of this folder",
    )


def playing_params(environment: str | None, overlays: Sequence[Path], assignments: Sequence[str]) -> Params:
    """The checked parameters of an environment that is played without training.

    Args:
        environment: None means the environment that the files name.
        assignments: such as ``tasks.train=100``.

    Raises:
        ParamsError: a file, a key or a value is wrong.
        UserError: the parameters describe another environment.
    """
    files = named_layers(environment, overlays)
    layers = [*files, *assigned_layers(assignments)]
    source = sources(files)
    params = check_params(merge(merged(layers), _PLAYS_ALONE), source, layers)
    if environment is not None and params.environment.name != environment:
        raise UserError(
            f"--environment: is {environment!r}, but {source} is for {params.environment.name!r}; name an "
            f"overlay of {environment} with --params"
        )
    return params


def named_layers(environment: str | None, overlays: Sequence[Path]) -> list[Layer]:
    """The lab's params.yaml and the overlays; if none is named, the environment's own overlay.

    Raises:
        ParamsError: see :func:`own_overlay`; or a file is missing or holds no mapping.
    """
    own = None if overlays or environment is None else own_overlay(environment)
    return [file_layer(file) for file in (lab_file("params.yaml"), *(overlays or ([own] if own else [])))]


def own_overlay(environment: str) -> Path | None:
    """The overlay for experiments with this environment; None if no overlay exists. If several differ only in
    training, it is the first.

    Raises:
        ParamsError: several files of the lab name a part from outside, and playing it differs between them.
    """
    if environment in ENVIRONMENTS.own:
        own = lab_file(f"params/{environment}.yaml")
        return own if own.is_file() else None
    found = [file for file in sorted(lab_file("params").glob("*.yaml")) if _names(file, environment)]
    if len({json.dumps(_played(file), sort_keys=True) for file in found}) > 1:
        listed = " and ".join(f"params/{file.name}" for file in found)
        raise ParamsError(
            f"--params is missing: {listed} configure {environment} differently; choose one, such as "
            f"--params params/{found[0].name}"
        )
    return found[0] if found else None


def _played(file: Path) -> dict[str, Any]:
    """The sections of an overlay that change how its environment is played."""
    return {name: values for name, values in read_yaml(file).items() if name not in _TRAINING_ALONE}


def _names(file: Path, environment: str) -> bool:
    section = read_yaml(file).get("environment")
    return isinstance(section, dict) and section.get("name") == environment
