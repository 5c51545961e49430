"""Where the lab is, and which files are used if no lab was found.

A lab is a folder with ``params.yaml`` and ``dvc.yaml``, beside ``params/``, ``tasks/``, ``flows/`` and
``infra/``: this repository's root, a workspace, or a folder that ``skillpress init`` wrote. Three places are
searched, in this order: the working directory and the folders above it, the folder that SKILLPRESS_ROOT
names, and the clone that this package is imported from.

A wheel contains the reference lab's files, which ``setup.py`` copies from the root when it builds the wheel.
They give the default parameters where there is no lab, or where the lab lacks the file.
"""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from skillpress.core.errors import UserError

VARIABLE = "SKILLPRESS_ROOT"
MARKS = ("params.yaml", "dvc.yaml")
"""The files that make a folder a lab."""
PACKAGE = Path(str(files("skillpress")))
SOURCE = PACKAGE.parent
"""The folder that contains the package: a clone, a workspace, or site-packages."""
_IN_WHEEL = PACKAGE / "pipeline" / "lab"
REFERENCE = _IN_WHEEL if _IN_WHEEL.is_dir() else SOURCE
"""The reference lab's files."""


class NoLabError(UserError):
    """A command needs a lab, and none was found."""


def find_lab(start: Path) -> Path | None:
    """The lab of a user whose working directory is ``start``; None if there is none."""
    named = os.environ.get(VARIABLE)
    places = [start, *start.parents, *([Path(named).resolve()] if named else []), SOURCE]
    return next((place for place in places if all((place / mark).is_file() for mark in MARKS)), None)


LAB = find_lab(Path.cwd())
"""The lab's root when this process started; None if no lab was found."""
ROOT = LAB or Path.cwd()
"""The lab's root. Without a lab it is the folder that the process was started in: files go there."""


def need_lab() -> Path:
    """The lab's root.

    Raises:
        NoLabError: no lab was found.
    """
    if LAB is not None:
        return LAB
    named = f", nor has {os.environ[VARIABLE]}, which {VARIABLE} names" if os.environ.get(VARIABLE) else ""
    raise NoLabError(
        f"no lab was found here: neither {ROOT} nor a folder above it has {' and '.join(MARKS)}{named}; "
        "`skillpress init DIR` writes one"
    )


def found_here(name: str) -> Path:
    """A file that parameters name: in the working directory, or else in the lab, even if it is missing."""
    here = Path.cwd() / name
    return here if here.is_file() else ROOT / name


def overlay(name: str) -> Path:
    """The type of ``--params``: a file of the working directory, or else of the lab, so that
    ``params/grpo.yaml`` means one file in every folder of a lab."""
    found = found_here(name)
    return found if found.is_file() and not Path(name).is_file() else Path(name)


def lab_file(name: str) -> Path:
    """A file or folder of the lab, such as ``params.yaml``; the reference lab's if the lab lacks it."""
    own = ROOT / name
    return own if own.exists() else REFERENCE / name
