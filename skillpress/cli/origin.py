"""Where the installed skillpress came from, for the Makefile of a new lab.

A lab's ``origin.mk`` names the environment that `skillpress init` ran in, if it has the layers that a lab
needs: make then uses it, and nothing is installed twice. For an environment that is made later, it also names
the place from which pip installs skillpress. If the place is a file, a folder or a repository, the installer
recorded it (``direct_url.json``, PEP 610). If it is an index, pip's own variables name it.

The file describes one machine, so git ignores it; a lab works without it.
"""

from __future__ import annotations

import json
import os
import re
import site
import sys
import sysconfig
from collections.abc import Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from skillpress.cli.layers import missing
from skillpress.core.lab import PACKAGE
from skillpress.core.storage import write_text

FILE = "origin.mk"
LAYERS = ("train", "pipeline")
"""The layers of a lab."""
PIP = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS")
"""pip's variables that say where packages are found."""
HEAD = """\
# Where skillpress was installed from on this machine when `skillpress init` wrote this lab. git does not know
# this file, and the lab works without it: make then installs requirements.txt into .venv.
"""


def write_origin(folder: Path) -> None:
    """Write a lab's ``origin.mk``."""
    lines = [f"{name} ?= {_escaped(value)}\n" for name, value in variables().items()]
    write_text(folder / FILE, "".join((HEAD, *lines)))


def variables(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """make's variables: ``INSTALLED``, a Python with the layers that a lab needs; ``SKILLPRESS``, a
    requirement with an address; and those of :data:`PIP`. Unknown values, and those with a password, are left
    out.

    Args:
        environment: the variables of this process.
    """
    found = {name: value for name in PIP if (value := environment.get(name)) and "@" not in value}
    try:
        installed = distribution("skillpress")
    except PackageNotFoundError:
        return found
    noted = installed.read_text("direct_url.json")
    if PACKAGE not in _packages(installed, noted):  # this process imports another skillpress
        return found
    if _in_this_environment(installed) and not any(map(missing, LAYERS)) and _plain(sys.executable):
        found["INSTALLED"] = sys.executable
    return found | source_of(noted)


def source_of(noted: str | None) -> dict[str, str]:
    """The content of an installer's ``direct_url.json`` as make's variables; empty if it does not exist.

    For a wheel, pip searches its folder, so later versions there are found too. Any other address becomes
    part of the requirement.
    """
    if not noted:
        return {}
    described = json.loads(noted)
    url = str(described["url"])
    if urlsplit(url).scheme == "file" and url.endswith(".whl"):
        return {"PIP_FIND_LINKS": url.rpartition("/")[0] + "/"}
    if repository := described.get("vcs_info"):
        url = f"{repository['vcs']}+{url}@{repository['commit_id']}"
    return {"SKILLPRESS": f"skillpress[{','.join(LAYERS)}] @ {url}"}


def _packages(installed: Distribution, noted: str | None) -> list[Path]:
    """The folders that an installed package is imported from: its own, and an editable install's clone."""
    described = json.loads(noted or "{}")
    clone = url2pathname(urlsplit(described.get("url", "")).path)
    editable = described.get("dir_info", {}).get("editable", False)
    places = [Path(str(installed.locate_file(""))), *([Path(clone)] if editable else [])]
    return [(place / "skillpress").resolve() for place in places]


def _in_this_environment(installed: Distribution) -> bool:
    """Whether this Python finds the package by itself, and not by a path that a variable names."""
    folder = Path(str(installed.locate_file(""))).resolve()
    places = [*site.getsitepackages(), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    places += [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    return folder in [Path(place).resolve() for place in places]


def _plain(path: str) -> bool:
    """Whether make and a shell read a path literally."""
    return re.fullmatch(r"[\w./+@~-]+", path) is not None


def _escaped(value: str) -> str:
    return value.replace("$", "$$").replace("#", r"\#")
