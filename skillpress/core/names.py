"""How a name in params.yaml is turned into a part: one of ours, of an installed package, or of a lab.

A name is an entry of one of the tables in ``registry.py``, an entry point that an installed package offers in
the group ``skillpress.<group>``, or ``module:attribute`` of a module that can be imported, such as one in the
lab's own folder. A module is imported when an experiment asks for its part. So names are checked before any
heavy import.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, EntryPoints, entry_points, packages_distributions, version
from typing import Any, cast

from skillpress.core.errors import ParamsError, did_you_mean

OURS = "skillpress"
"""Where the entries of the tables come from, in messages and records."""
LAB = "this folder"
"""Where a module comes from that no installed package has."""


class UnknownPartError(ValueError):
    """A name stands for nothing, or for something else than its parameter asks for."""


@dataclass(frozen=True)
class Part:
    """What a name stands for."""

    name: str
    target: str
    """``module:attribute``."""
    origin: str
    """``skillpress``, an installed distribution with its version (``my-methods 0.2``), or ``LAB``."""

    @property
    def module(self) -> str:
        """The module that has it."""
        return self.target.partition(":")[0]

    def __str__(self) -> str:
        return f"{self.target} ({self.origin})"


@dataclass(frozen=True, eq=False)
class Registry(Mapping[str, str]):
    """The parts of one kind, by name.

    As a mapping it holds this package's own entries, name to ``module:attribute``. ``in`` also knows the
    names that come from outside.
    """

    group: str
    """Installed packages offer more under the entry-point group ``skillpress.<group>``; empty where they
    cannot."""
    parameter: str
    """The key of params.yaml that gives the name."""
    own: Mapping[str, str]
    has: str = ""
    """The attribute that a part must have; empty for any callable."""

    def __getitem__(self, name: str) -> str:
        return self.own[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.own)

    def __len__(self) -> int:
        return len(self.own)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.find(name) is not None

    def find(self, name: str) -> Part | None:
        """What a name stands for, without importing it; None where nothing has this name.

        Raises:
            ParamsError: two installed packages offer the name.
        """
        if name in self.own:
            return Part(name, self.own[name], OURS)
        if not self.group:
            return None
        if ":" in name:
            return Part(name, name, _origin(name.partition(".")[0].partition(":")[0]))
        return self.offered().get(name)

    def offered(self) -> dict[str, Part]:
        """Name to part of what installed packages offer.

        Raises:
            ParamsError: a package offers a name that skillpress or another package has.
        """
        found: dict[str, Part] = {}
        for point in _entry_points().select(group=f"{OURS}.{self.group}") if self.group else ():
            there = Part(point.name, self.own[point.name], OURS) if point.name in self.own else None
            part = Part(point.name, point.value, _distribution(point))
            if (other := there or found.get(point.name)) is not None:
                raise ParamsError(
                    f"{self.parameter}: {part.origin} offers the name {part.name!r} ({part.target}), which "
                    f"{other.origin} has ({other.target}); give one of them another name, or uninstall it"
                )
            found[point.name] = part
        return found

    def unknown(self, name: object, *also: str) -> str:
        """What a message says of a name that nothing has: the names there are, whose, and the nearest."""
        offered = self.offered()
        names = [*also, *self.own, *(f"{part.name} (from {part.origin})" for part in offered.values())]
        allowed = ", ".join(names) or "no names"
        outside = f" (or module:attribute, from {LAB} or an installed package)" if self.group else ""
        return f"allowed: {allowed}{did_you_mean(name, [*also, *self.own, *offered])}{outside}"


@cache
def _entry_points() -> EntryPoints:
    """The entry points of all installed packages; reading them takes some 50 ms, once."""
    return cast(EntryPoints, entry_points())  # Python 3.11 has another class here, which selects alike


@cache
def _origin(top: str) -> str:
    """Where a top-level module comes from."""
    names = packages_distributions().get(top)
    return f"{names[0]} {version(names[0])}" if names else LAB


def _distribution(point: EntryPoint) -> str:
    return "an installed package" if point.dist is None else f"{point.dist.name} {point.dist.version}"


def check_name(registry: Registry, name: str, *also: str) -> str:
    """The name, if it is one of ``also`` or stands for a part. A part from outside is imported.

    Raises:
        UnknownPartError: nothing has this name, or it stands for something else; the message lists the names
            there are.
    """
    if name in also:
        return name
    part = registry.find(name)
    if part is None:
        raise UnknownPartError(registry.unknown(name, *also))
    if part.origin != OURS:
        load(registry, name)
    return name


def named(registry: Registry, section: Any) -> str:
    """The name by which a section of params.yaml chooses among a registry's parts.

    Raises:
        ValueError: it gives none, or one that nothing has; the message lists the names there are.
    """
    name = section.get("name") if isinstance(section, Mapping) else None
    if not isinstance(name, str) or name not in registry:
        raise ValueError(f"name is {name!r}; {registry.unknown(name)}")
    return check_name(registry, name)


def lookup(registry: Registry, name: str, parameter: str) -> Any:
    """What a registry holds under a name.

    Args:
        parameter: the key of params.yaml that gives the name, for the message.

    Raises:
        ParamsError: nothing has this name, or its module has no such part; the message lists what there is.
    """
    try:
        return load(registry, name)
    except UnknownPartError as error:
        raise ParamsError(f"{parameter}: is {name!r}; {error}") from error


def load(registry: Registry, name: str) -> Any:
    """What a registry holds under a name; the module is imported.

    Raises:
        UnknownPartError: nothing has this name, or its module has no such part.
    """
    part = registry.find(name)
    if part is None:
        raise UnknownPartError(registry.unknown(name))
    attribute = part.target.partition(":")[2]
    if part.origin == OURS:
        return getattr(import_module(part.module), attribute)
    found = _from_outside(part, attribute)
    if not (hasattr(found, registry.has) if registry.has else callable(found)):
        needed = f"has no {registry.has}" if registry.has else "cannot be called"
        raise UnknownPartError(
            f"{part.target} is no part for {registry.parameter}: it {needed}; see docs/extending.md"
        )
    return found


def _from_outside(part: Part, attribute: str) -> Any:
    """Import a part that is not skillpress's own. The lab's folder is searched last, as under ``python -m``
    it is searched anyway, so that its files never hide an installed package."""
    folder = os.getcwd()
    if folder not in sys.path and "" not in sys.path:
        sys.path.append(folder)
    try:
        module = import_module(part.module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{part.module}.".startswith(f"{error.name}."):
            raise  # it is there, and something that it imports is not
        raise UnknownPartError(
            f"no module {error.name} is in {folder} or among the installed packages"
        ) from error
    if not hasattr(module, attribute):
        public = [name for name in vars(module) if not name.startswith("_")]
        raise UnknownPartError(f"{part.module} has no {attribute!r}{did_you_mean(attribute, public)}")
    return getattr(module, attribute)
