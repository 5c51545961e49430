"""What decides the contents of an environment's episodes, so that two machines can compare it.

A machine may play another machine's episodes only if all of it is the same there: the keys of the section,
the data, the versions of the libraries, and the code.
"""

from __future__ import annotations

import inspect
import platform
import sys
from hashlib import blake2b
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from skillpress.environments.section import EnvironmentSection

PLAYING = ("core", "environments", "rollouts")
"""The packages of skillpress whose code an episode runs through."""


def played_by(section: EnvironmentSection) -> dict[str, Any]:
    """Maps the names of all values that may differ between machines to their values here.

    Raises:
        UserError: the section's data cannot be read.
    """
    keys = {f"environment.{key}": value for key, value in section.model_dump(mode="json").items()}
    data = {f"the file {name}": digest for name, digest in section.inputs().items()}
    libraries = {f"the version of {name}": version(name) for name in section.libraries}
    python = {"the version of Python": ".".join(platform.python_version_tuple()[:2])}
    return {**keys, **data, **libraries, **python, "the code": code_of(section)}


def packages_of(section: EnvironmentSection) -> tuple[str, ...]:
    """The packages of whose dataclasses an environment's states may be made."""
    module = type(section).__module__
    return ("skillpress.environments", module.rpartition(".")[0] or module)


def code_of(section: EnvironmentSection) -> str:
    """A hash of the code that an episode runs through: skillpress's, and that of a section from outside."""
    found = find_spec("skillpress")
    assert found is not None and found.submodule_search_locations is not None
    home = Path(found.submodule_search_locations[0])
    files = [path for package in PLAYING for path in sorted((home / package).rglob("*.py"))]
    outside = sys.modules.get(packages_of(section)[1]) or import_module(type(section).__module__)
    if not outside.__name__.startswith("skillpress."):
        own = Path(inspect.getfile(outside))
        files += sorted(own.parent.rglob("*.py")) if own.name == "__init__.py" else [own]
    digest = blake2b(digest_size=16)
    for file in files:
        digest.update(f"{file.parent.name}/{file.name}".encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()
