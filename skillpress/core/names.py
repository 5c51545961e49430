"""How a name in params.yaml becomes a part: one of ours, of an installed package, or of a lab.

There are three kinds of names: an entry of a table in ``registry.py``; an entry point that an installed
package offers in the group ``skillpress.<group>``; and ``module:attribute``. The module of the last may be in
the lab's own folder. A module is imported only when an experiment asks for its part, so names are checked
before any heavy import.

A command that only looks at an experiment must not run code that came with it: within :func:`looking` the
parts of skillpress and the entry points of installed packages are imported, and nothing else.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, EntryPoints, entry_points, packages_distributions, version
from pathlib import Path
from typing import Any, cast

from skillpress.core import lab
from skillpress.core.errors import ParamsError, did_you_mean
from skillpress.core.moved import FORMS, with_present_names

OURS = "skillpress"
"""The origin of the tables' entries, in messages and records."""
MOST_SHOWN = 3
"""The most names that a suggestion has."""
LAB = "this folder"
"""The origin of a module that does not belong to an installed package."""


class UnknownPartError(ValueError):
    """No part has this name, or its part is of another kind than the parameter needs."""


class CodeNotRunError(ParamsError):
    """A name means code that came with an experiment, and this process only looks at experiments."""


RUN_CODE = "--run-code"
"""The option with which a command that looks imports the code that an experiment names."""
_tell: Callable[[str], None] | None = None
"""While this process only looks: receives a sentence about each part that it does not import."""
_told: set[str] = set()


@contextmanager
def looking(tell: Callable[[str], None]) -> Iterator[None]:
    """The process and all of its threads import no code that an experiment names within the block.

    Args:
        tell: receives one sentence about each part that is left alone.
    """
    global _tell
    before, _tell = _tell, tell
    _told.clear()
    try:
        yield
    finally:
        _tell = before


def run_code() -> None:
    """Import the code that an experiment names until :func:`looking` ends, since its reader trusts it."""
    global _tell
    _tell = None


@dataclass(frozen=True)
class Part:
    """The class or function that a name means."""

    name: str
    target: str
    """``module:attribute``."""
    origin: str
    """``skillpress``, an installed distribution with its version (``my-methods 0.2``), or ``LAB``."""

    @property
    def module(self) -> str:
        """The module that defines it."""
        return self.target.partition(":")[0]

    def __str__(self) -> str:
        return f"{self.target} ({self.origin})"


@dataclass(frozen=True, eq=False)
class Registry(Mapping[str, str]):
    """The parts of one kind, by name.

    As a mapping it has this package's own entries, name to ``module:attribute``. ``in`` also accepts names
    that come from outside.
    """

    group: str
    """Installed packages may add parts under the entry-point group ``skillpress.<group>``; empty: they may
    not."""
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
        """The part that a name means, without importing it; None if there is none.

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
        """Name to part, for the parts that installed packages offer.

        Raises:
            ParamsError: a package offers a name that skillpress or another package already has.
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

    @property
    def form(self) -> str:
        """The form that its parts must have, for the message about a part in another form."""
        return FORMS.get(self.group, "docs/extending.md has the form that parts have in this version")

    def may_import(self, part: Part) -> bool:
        """Whether this process may import a part. While it only looks, an entry point must offer it."""
        if _tell is None or part.origin == OURS:
            return True
        return part.target in {offered.target for offered in self.offered().values()}

    def unknown(self, name: object, *also: str) -> str:
        """The message's text about an unknown name: the known names, whose they are, and the nearest."""
        if self.group and isinstance(name, str) and (meant := _one_of_a_module(name, self.has)):
            return f"your own part is named module:attribute{meant}"
        offered = self.offered()
        names = [*also, *self.own, *(f"{part.name} (from {part.origin})" for part in offered.values())]
        allowed = ", ".join(names) or "no names"
        outside = f" (or module:attribute, from {LAB} or an installed package)" if self.group else ""
        return f"allowed: {allowed}{did_you_mean(name, [*also, *self.own, *offered])}{outside}"


@cache
def _entry_points() -> EntryPoints:
    """The entry points of all installed packages. Reading them takes about 50 ms, once."""
    return cast(EntryPoints, entry_points())  # Python 3.11 returns another class, with the same selection


@cache
def _origin(top: str) -> str:
    """The origin of a top-level module."""
    names = packages_distributions().get(top)
    return f"{names[0]} {version(names[0])}" if names else LAB


def _distribution(point: EntryPoint) -> str:
    return "an installed package" if point.dist is None else f"{point.dist.name} {point.dist.version}"


def check_name(registry: Registry, name: str, *also: str) -> str:
    """The name, if it is one of ``also`` or means a part. A part from outside is imported, unless this
    process only looks.

    Raises:
        UnknownPartError: the name is unknown, or its part is of another kind; the message lists the known
            names.
    """
    if name in also:
        return name
    part = registry.find(name)
    if part is None:
        raise UnknownPartError(registry.unknown(name, *also))
    if not registry.may_import(part):
        _leave_alone(registry, part)
    elif part.origin != OURS:
        load(registry, name)
    return name


def _leave_alone(registry: Registry, part: Part) -> None:
    """Tell once that a part is not imported."""
    if _tell is not None and part.name not in _told:
        _told.add(part.name)
        _tell(
            f"{registry.parameter}: the code of {part.name!r} is not run, so only what files say about it is "
            f"known; add {RUN_CODE} if you trust this experiment"
        )


def named(registry: Registry, section: Any) -> str:
    """The name in a section of params.yaml that chooses among a registry's parts.

    Raises:
        ValueError: the section has no name or an unknown one; the message lists the known names.
    """
    name = section.get("name") if isinstance(section, Mapping) else None
    if not isinstance(name, str) or name not in registry:
        raise ValueError(f"name is {name!r}; {registry.unknown(name)}")
    return check_name(registry, name)


def lookup(registry: Registry, name: str, parameter: str) -> Any:
    """The part that a registry has under a name; messages name the ``parameter`` that gives it.

    Raises:
        ParamsError: the name is unknown, or its module lacks the part; the message lists the known names.
    """
    try:
        return load(registry, name)
    except UnknownPartError as error:
        raise ParamsError(f"{parameter}: is {name!r}; {error}") from error


def load(registry: Registry, name: str) -> Any:
    """The part that a registry has under a name; its module is imported.

    Raises:
        UnknownPartError: the name is unknown, or its module lacks the part.
        CodeNotRunError: the part came with an experiment, and this process only looks.
    """
    part = registry.find(name)
    if part is None:
        raise UnknownPartError(registry.unknown(name))
    if not registry.may_import(part):
        _leave_alone(registry, part)
        raise CodeNotRunError(
            f"{registry.parameter}: is {name!r}, and its code is needed here, but a command that only looks "
            f"does not run it; add {RUN_CODE} if you trust this experiment"
        )
    attribute = part.target.partition(":")[2]
    if part.origin == OURS:
        return getattr(import_module(part.module), attribute)
    found = _from_outside(part, attribute, registry)
    if not _fits(found, registry.has):
        needed = f"has no {registry.has}" if registry.has else "cannot be called"
        raise UnknownPartError(
            f"{part.target} is not a part for {registry.parameter}: it {needed}"
            f"{_one_of_a_module(part.module, registry.has) or f'; {registry.form}'}"
        )
    return found


def search_lab() -> None:
    """Let imports of this process search the working directory and the lab, so that a part has one name in
    every folder of a lab. They are searched last: their files never hide an installed package.

    Raises:
        CodeNotRunError: this process only looks at experiments.
    """
    if _tell is not None:
        raise CodeNotRunError(
            "an experiment's files name code that is needed here, but a command that only looks does not run "
            f"it; add {RUN_CODE} if you trust this experiment"
        )
    here = os.getcwd()
    for folder in (here, str(lab.ROOT)):
        if folder not in sys.path and not (folder == here and "" in sys.path):
            sys.path.append(folder)


def _from_outside(part: Part, attribute: str, registry: Registry) -> Any:
    """Import a part that does not belong to skillpress."""
    search_lab()
    try:
        module = import_module(part.module)
    except ImportError as error:
        if error.name is not None and error.name.split(".")[0] == "skillpress":
            raise UnknownPartError(f"{part.module}: {_gone(error, registry)}") from error
        missing = isinstance(error, ModuleNotFoundError) and error.name is not None
        if not missing or not f"{part.module}.".startswith(f"{error.name}."):
            raise  # the module exists, but something that it imports does not
        where = " or ".join(dict.fromkeys((str(lab.ROOT), os.getcwd())))
        raise UnknownPartError(
            f"no module {error.name} is in {where} or among the installed packages"
            f"{_one_of_a_module(part.target, registry.has)}"
        ) from error
    if not hasattr(module, attribute):
        public = [name for name in vars(module) if not name.startswith("_")]
        near = did_you_mean(attribute, public) or _one_of_a_module(part.module, registry.has)
        raise UnknownPartError(f"{part.module} has no {attribute!r}{near}")
    return getattr(module, attribute)


def _gone(error: ImportError, registry: Registry) -> str:
    """Why a module of skillpress, or a name in one, cannot be imported, and what to do."""
    present = with_present_names(error.name or "")
    if present != error.name:
        return (
            f"imports {error.name}, which is {present} now; `skillpress upgrade` rewrites a lab's own files"
        )
    return f"{error}; {registry.form}"


def _one_of_a_module(name: str, has: str) -> str:
    """``"; did you mean 'my_lab.line:Line'?"`` for a name that leads to a module of the lab: the module
    alone, its file, or an attribute behind a dot. Empty if none of its attributes fits.

    Args:
        has: the attribute that a part must have; empty for any callable.
    """
    path, _, named = name.partition(":")
    dotted = path.removesuffix(".py").removesuffix("/").replace("/", ".").strip(".")
    above, _, last = dotted.rpartition(".")
    inside = [] if "." in dotted else _modules_around(dotted)
    for module, attribute in ((dotted, named), (above, last), *((one, named) for one in inside)):
        fitting = _fitting(module, has)
        if attribute in fitting or (fitting and not attribute):
            shown = [attribute] if attribute else fitting[:MOST_SHOWN]
            return f"; did you mean {' or '.join(repr(f'{module}:{one}') for one in shown)}?"
    return ""


def _modules_around(word: str) -> list[str]:
    """The modules of the lab's packages with this name, and those of a package of this name."""
    found = [
        file.relative_to(folder).with_suffix("")
        for folder in (Path.cwd(), lab.ROOT)
        for pattern in (f"*/{word}.py", f"{word}/*.py")
        for file in sorted(folder.glob(pattern))
        if word.isidentifier()
    ]
    return [".".join(file.parts) for file in dict.fromkeys(found)]


def _fitting(module: str, has: str) -> list[str]:
    """The attributes that a module of the lab defines and that fit; none if there is no such module.

    Only a module beside the lab's files is imported. Parts of installed packages have entry points.
    """
    file = Path(*module.split(".")) if module and module.replace(".", "_").isidentifier() else None
    folders = (Path.cwd(), lab.ROOT)
    ends = (f"{file}.py", f"{file}/__init__.py")
    if (
        _tell is not None
        or file is None
        or not any((folder / end).is_file() for folder in folders for end in ends)
    ):
        return []
    search_lab()
    found: dict[str, Any] = {}
    with suppress(Exception):  # what is wrong inside the module is said once it is named rightly
        found = vars(import_module(module))
    mine = {key: value for key, value in found.items() if not key.startswith("_")}
    return [key for key, value in mine.items() if _fits(value, has) and _defined_in(value, module)]


def _fits(value: Any, has: str) -> bool:
    return hasattr(value, has) if has else callable(value)


def _defined_in(value: Any, module: str) -> bool:
    """Whether a module defines an object. One that is neither class nor function may come from anywhere."""
    return not callable(value) or getattr(value, "__module__", module) == module
