"""The code that a module would run with an experiment's names, found without importing it.

Modules are found where the import system finds them: skillpress in this repository, in a workspace's copy or
where it is installed; a lab's own modules in its folder. Other packages are not followed;
``Closure.libraries`` lists those that are imported. A module brings

- the modules that it imports, also inside of functions, and the packages around it that import any; - where
it looks a name of params.yaml up in a registry, the part that is named, and none of its siblings; - the
modules that it names in a text, since processes are started by such a name; - if it asks for its own path,
the files next to it that are not Python, and those Python files and folders beside it that it names.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from skillpress.core.names import OURS, Part, Registry
from skillpress.pipeline.sources import Source, Sources

Chosen = Callable[[str], Collection[str]]
"""The names that an experiment gives for each parameter; empty for parameters that it does not read."""
_INIT = "__init__.py"


@dataclass
class Closure:
    """The code that a piece of work would run."""

    files: dict[str, str] = field(default_factory=dict)
    """The digest of each file; file names begin with the top-level package."""
    modules: set[str] = field(default_factory=set)
    libraries: set[str] = field(default_factory=set)
    """Top-level packages that are imported and not followed."""
    parts: dict[str, list[Part]] = field(default_factory=dict)
    """The parts that each parameter names."""


class Code:
    """The code that can be run from a folder."""

    def __init__(
        self, folder: Path, sources: Sources | None = None, followed: Collection[str] = (OURS,)
    ) -> None:
        """Look for code.

        Args:
            folder: the lab's; modules in it are followed, and it is searched first.
            followed: further top-level packages that are followed, wherever they are installed.
        """
        self._folder, self.sources, self._followed = folder.resolve(), sources or Sources(), followed
        self._place = cache(self._find_place)
        self._file = cache(self._find_file)
        self._source = cache(self._read)

    def closure(self, starts: Iterable[str], chosen: Chosen, without: Collection[str] = ()) -> Closure:
        """What these modules run.

        Args:
            chosen: the names by which parts are chosen.
            without: modules that are left out, with the modules that only they import.

        Raises:
            SourceError: a file is not Python.
        """
        found, waiting = Closure(), list(starts)
        while waiting:
            module = waiting.pop()
            if module in found.modules or module in without:
                continue
            source = self._source(module)
            if source is None:
                if (
                    self._place(top := module.partition(".")[0]) is None
                    and top not in sys.stdlib_module_names
                ):
                    found.libraries.add(top)
                continue
            found.modules.add(module)
            found.files[self.name(module)] = source.digest
            waiting += self._imported(source)
            waiting += self._around(module)
            waiting += self._named_in_texts(module, source)
            waiting += [part.module for part in self._chosen_parts(source, chosen, found)]
            if source.asks:
                found.files.update(self._beside(module, source))
        return found

    def name(self, module: str) -> str:
        """A module's file, relative to the folder that holds its top-level package."""
        file = self._file(module)
        assert file is not None
        return self._relative(file, module)

    def _relative(self, file: Path, module: str) -> str:
        base = self._place(module.partition(".")[0])
        assert base is not None
        return file.relative_to(base.parent).as_posix()

    def _imported(self, source: Source) -> Iterator[str]:
        for module, names in source.imports:
            if self._place(module.partition(".")[0]) is None:
                yield module
                continue
            there = self._source(module)
            for name in names or ("",):
                if name and self._file(f"{module}.{name}") is not None:
                    yield f"{module}.{name}"
                elif there is not None:
                    yield there.lazy.get(name, module)

    def _around(self, module: str) -> Iterator[str]:
        """The packages around a module that import anything of what is followed. One that imports its public
        names when they are asked for is left out: who asks for a name is followed to where it is."""
        while module := module.rpartition(".")[0]:
            source = self._source(module)
            if source is None or source.lazy:
                continue
            if any(self._place(each.partition(".")[0]) for each, _ in source.imports):
                yield module

    def _named_in_texts(self, module: str, source: Source) -> Iterator[str]:
        for text in source.texts:
            named = text.partition(":")[0]
            if "." in named and named != module and self._file(named) is not None:
                yield named

    def _chosen_parts(self, source: Source, chosen: Chosen, found: Closure) -> Iterator[Part]:
        for module, name in source.looks_up:
            home = self._source(module)
            if home is None or name not in home.tables:
                continue
            table = home.tables[name]
            registry = Registry(table.group, table.parameter, table.entries)
            for asked in chosen(table.parameter):
                part = registry.find(asked)
                if part is not None:
                    known = found.parts.setdefault(table.parameter, [])
                    if part not in known:
                        known.append(part)
                    yield part

    def _beside(self, module: str, source: Source) -> Iterator[tuple[str, str]]:
        """(file, digest) of each file that a module may read next to itself, because it asks for its own
        path.
        """
        own = self._file(module)
        assert own is not None
        packages = {module if own.name == _INIT else module.rpartition(".")[0]}
        packages |= {text for text in source.texts if "." in text}  # as in files("my_lab.words")
        for package in sorted(packages):
            file = self._file(package)
            for path in _data(file.parent) if file is not None and file.name == _INIT else ():
                yield self._relative(path, package), self.sources.content(path)
        for text in source.texts:
            for path in _python(own.parent / text):
                name = self._relative(path, module)
                yield name, self.sources.source(path, name.removesuffix(".py").replace("/", ".")).digest

    def _read(self, module: str) -> Source | None:
        file = self._file(module)
        return None if file is None else self.sources.source(file, module)

    def _find_place(self, top: str) -> Path | None:
        """The folder or file of a top-level module that is followed; None of any other."""
        if top in sys.stdlib_module_names:
            return None
        own = self._folder / top
        if own.is_dir() and any(own.glob("*.py")):
            return own
        if own.with_suffix(".py").is_file():
            return own.with_suffix(".py")
        if top not in self._followed:
            return None
        spec = find_spec(top)
        if spec is None:
            return None
        folders = list(spec.submodule_search_locations or ())
        return Path(folders[0] if folders else str(spec.origin)).resolve()

    def _find_file(self, module: str) -> Path | None:
        """The file of a module that is followed."""
        top, *rest = module.split(".")
        place = self._place(top)
        if place is None:
            return None
        if place.is_file():
            return None if rest else place
        path = place.joinpath(*rest)
        if rest and path.with_name(f"{path.name}.py").is_file():
            return path.with_name(f"{path.name}.py")
        return path / _INIT if (path / _INIT).is_file() else None


def _data(folder: Path) -> Iterator[Path]:
    """The files below a package's folder that are not Python and lie in no package below it."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith((".", "_")):
            continue
        if path.is_file() and path.suffix != ".py":
            yield path
        elif path.is_dir() and not (path / _INIT).is_file():
            yield from _data(path)


def _python(path: Path) -> Iterator[Path]:
    """The Python files that a path next to a module names."""
    if path.suffix == ".py" and path.is_file():
        yield path
    elif path.is_dir():
        yield from sorted(path.rglob("*.py"))
