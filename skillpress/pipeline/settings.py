"""The process settings of infra/settings.env, for processes that make did not start.

The file has make's syntax (``NAME ?= value``, ``$(CURDIR)`` for the lab's root) so that the Makefile can
include it. MLflow, Prefect and DVC read the settings when they are imported, so :func:`apply` runs before
that, when ``skillpress.pipeline`` is imported.

A command may only look at a lab, which may be a stranger's. Some variables start programs
(``BROWSER``) or load libraries (``LD_PRELOAD``), so a lab's file sets only the variables that are in the
reference lab's file. Processes that run a lab's code call :func:`apply_all`.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from skillpress.core.http_clients import loopback_kept_direct
from skillpress.core.lab import REFERENCE, ROOT, lab_file

__all__ = ["ROOT", "apply", "apply_all", "read"]

FILE = "infra/settings.env"
_LINE = re.compile(r"^(\w+)\s*\?=\s*(.*?)\s*$")


def read(path: Path, root: Path) -> dict[str, str]:
    """Name to value of the file's settings; ``$(CURDIR)`` is replaced by ``root``."""
    matches = (_LINE.match(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {m[1]: m[2].replace("$(CURDIR)", str(root)) for m in matches if m}


def apply() -> None:
    """Put the settings that every lab has into the environment; variables that are set keep their values."""
    known = read(REFERENCE / FILE, ROOT)
    for name, value in read(lab_file(FILE), ROOT).items():
        if name in known:
            os.environ.setdefault(name, value)
    os.environ |= loopback_kept_direct()  # for the clients of Prefect and MLflow
    programs = str(Path(sys.executable).parent)  # `python` in dvc.yaml is this environment's, and so is ninja
    path = os.environ.get("PATH", "")
    if programs not in path.split(os.pathsep):
        os.environ["PATH"] = programs + os.pathsep + path


def apply_all() -> None:
    """Put the lab's further settings into the environment as well."""
    for name, value in read(lab_file(FILE), ROOT).items():
        os.environ.setdefault(name, value)
