"""Where the lab is, and what the reference lab's files say where there is none.

A lab is a folder with ``params.yaml`` and ``dvc.yaml``, beside ``params/``, ``tasks/``, ``flows/`` and
``infra/``: this repository's root, a workspace, or what ``skillpress init`` has written. It is the nearest of
the working directory and the folders above it, else the folder that SKILLPRESS_ROOT names, else the clone
that this package is imported from.

A wheel carries the reference lab's files, copied from the root when it is built (``setup.py``). They say what
a parameter is by default where somebody works without a lab, or where a lab has no such file.
"""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from skillpress.core.errors import UserError

VARIABLE = "SKILLPRESS_ROOT"
MARKS = ("params.yaml", "dvc.yaml")
"""The files by which a lab is known."""
PACKAGE = Path(str(files("skillpress")))
SOURCE = PACKAGE.parent
"""The folder that the package lies in: a clone, a workspace, or site-packages."""
_IN_WHEEL = PACKAGE / "pipeline" / "lab"
REFERENCE = _IN_WHEEL if _IN_WHEEL.is_dir() else SOURCE
"""The reference lab's files."""


class NoLabError(UserError):
    """A command needs a lab, and there is none."""


def find_lab(start: Path) -> Path | None:
    """The lab that somebody who is in ``start`` means; None where there is none."""
    named = os.environ.get(VARIABLE)
    places = [start, *start.parents, *([Path(named).resolve()] if named else []), SOURCE]
    return next((place for place in places if all((place / mark).is_file() for mark in MARKS)), None)


LAB = find_lab(Path.cwd())
"""The lab's root when this process started; None where there is none."""
ROOT = LAB or Path.cwd()
"""The lab's root. Without a lab, the folder that the process was started in: files go there."""


def need_lab() -> Path:
    """The lab's root.

    Raises:
        NoLabError: there is none.
    """
    if LAB is not None:
        return LAB
    named = f", nor has {os.environ[VARIABLE]}, which {VARIABLE} names" if os.environ.get(VARIABLE) else ""
    raise NoLabError(
        f"there is no lab here: neither {ROOT} nor a folder above it has {' and '.join(MARKS)}{named}; "
        "`skillpress init DIR` writes one"
    )


def lab_file(name: str) -> Path:
    """A file or folder of the lab, such as ``params.yaml``; the reference lab's where it has none."""
    own = ROOT / name
    return own if own.exists() else REFERENCE / name
