"""The direct and indirect imports of a file, read from source files without importing anything."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PACKAGES = ("skillpress", "tasks", "flows", "benchmarks", "docs", "studies", "tests")
"""Packages of the repository; every other name belongs to a distribution."""


@dataclass(frozen=True)
class Import:
    """One name that a file imports."""

    module: str
    """The full module name with the imported name: ``skillpress.core.errors.UserError``."""
    at_once: bool
    """True for an import when the file is imported, False for one when a function is called."""


class ImportGraph:
    """The files of a repository and their imports, without imports for type checkers."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.imports = cache(self._imports)
        self.files = cache(self._files)

    def reached(self, files: Iterable[Path], functions: bool) -> set[Path]:
        """These files and all files of the repository that run when these are imported.

        Args:
            functions: also follow imports within functions.
        """
        found: set[Path] = set()
        waiting = [file for each in files for file in (each, *self._packages(each))]
        while waiting:
            file = waiting.pop()
            if file not in found:
                found.add(file)
                for each in self.imports(file):
                    if each.at_once or functions:
                        waiting += self.files(each.module)
        return found

    def foreign(self, files: Iterable[Path], functions: bool) -> set[str]:
        """The third-party top-level packages that these files import directly."""
        names = {
            each.module.partition(".")[0]
            for file in files
            for each in self.imports(file)
            if each.at_once or functions
        }
        return names - set(PACKAGES)

    def _packages(self, file: Path) -> Iterator[Path]:
        for folder in file.parents:
            if folder == self.root:
                return
            if (folder / "__init__.py").is_file():
                yield folder / "__init__.py"

    def _files(self, module: str) -> tuple[Path, ...]:
        """A module's file, after its packages' files; the last part may be a name that the module defines."""
        if module.partition(".")[0] not in PACKAGES:
            return ()
        found: list[Path] = []
        place = self.root
        for part in module.split("."):
            if (place / f"{part}.py").is_file():
                return (*found, place / f"{part}.py")
            place /= part
            if (place / "__init__.py").is_file():
                found.append(place / "__init__.py")
            elif not place.is_dir():
                break
        return tuple(found)

    def _imports(self, file: Path) -> tuple[Import, ...]:
        package = file.relative_to(self.root).parent.parts
        return tuple(_imports_of(ast.parse(file.read_bytes()).body, package, at_once=True))


def _imports_of(statements: Iterable[ast.AST], package: tuple[str, ...], at_once: bool) -> Iterator[Import]:
    for node in statements:
        match node:
            case ast.Import():
                yield from (Import(each.name, at_once) for each in node.names)
            case ast.ImportFrom():
                above = package[: len(package) - node.level + 1] if node.level else ()
                base = ".".join([*above, *([node.module] if node.module else [])])
                yield from (Import(f"{base}.{each.name}", at_once) for each in node.names)
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                yield from _imports_of(node.orelse, package, at_once)
            case _:
                runs = at_once and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                for part in ("body", "orelse", "handlers", "finalbody", "cases"):
                    yield from _imports_of(getattr(node, part, ()), package, runs)
