"""The layers of the package: the packages of each extra in pyproject.toml, and which of them are missing.

``pip install skillpress`` is the base layer, which reads logs and episodes; ``skillpress[train]`` adds the
packages for training, and so on. A command lists the layers that it needs in ``command.COMMANDS``. If one is
missing, the command prints one line that names it before it does anything. pyproject.toml is the one list of
their packages; a wheel contains it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from skillpress.core.errors import UserError
from skillpress.core.lab import REFERENCE

BASE = ""
"""The name of the layer that is always installed."""
_OWN = re.compile(r"skillpress\[(.*)\]")


@cache
def layers() -> dict[str, tuple[str, ...]]:
    """The distributions that only a layer adds, by its name; :data:`BASE` first, then the extras in order."""
    project = tomllib.loads((REFERENCE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked: dict[str, list[str]] = {BASE: project["dependencies"], **project["optional-dependencies"]}
    return {name: tuple(dict.fromkeys(_distributions(asked, name))) for name in asked}


def missing(layer: str) -> list[str]:
    """The distributions of a layer that are not installed."""
    return [name for name in layers()[layer] if not _installed(name)]


def need(wanted: Iterable[str]) -> None:
    """Check that these layers are installed.

    Raises:
        UserError: a layer is not installed; the message names the layers, the missing packages and the
        install command.
    """
    lacking = {layer: gone for layer in wanted if (gone := missing(layer))}
    if lacking:
        named = "layers" if len(lacking) > 1 else "layer"
        gone = list(dict.fromkeys(name for names in lacking.values() for name in names))
        more = f" and {len(gone) - 3} more" if len(gone) > 3 else ""
        raise UserError(
            f"needs the {named} {', '.join(lacking)}, and {', '.join(gone[:3])}{more} "
            f"{'is' if len(gone) == 1 else 'are'} not installed: {remedy(*lacking)}"
        )


def layer_of(module: str) -> str | None:
    """The first layer with a distribution of this module's name; None if there is none."""
    wanted = normal(module.split(".")[0])
    return next((layer for layer, names in layers().items() if wanted in map(normal, names)), None)


def remedy(*wanted: str) -> str:
    """The command that installs these layers."""
    return f"pip install 'skillpress[{','.join(wanted)}]'"


def _distributions(asked: dict[str, list[str]], layer: str) -> Iterable[str]:
    for entry in asked[layer]:
        if own := _OWN.match(entry):
            for part in own[1].split(","):
                yield from _distributions(asked, part)
        else:
            yield re.split(r"[=<>~!\[; ]", entry)[0]


def _installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def normal(name: str) -> str:
    """A distribution's name in normal form, which is the same for all its spellings."""
    return re.sub(r"[-_.]+", "-", name.strip()).lower()
