"""The content of a Python file as far as a fingerprint needs it, read without running the file.

The digest of a file is a hash of its syntax tree, written as Python again, without docstrings (bare texts
used as a statement), comments, layout and the tables of a registry. So a comment, a docstring, a line break
or a line in a registry does not change the digest; everything else does.

All imports count, also those in functions, except those under ``if TYPE_CHECKING:``, which never run. A text
that is the name of a module counts as an import of it, because modules are started in other processes by
their name. A file that asks for its own place (``__file__``, ``importlib.resources``, ``PackageLoader``) may
read files next to it, which :mod:`closure` finds.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from skillpress.core.errors import UserError
from skillpress.core.storage import write_text

REGISTRY = "skillpress.core.registry"
"""The module that makes tables of names and looks names up in them."""
SECTIONS = "skillpress.core.sections"
"""The module whose ``ByName`` looks up a section's name."""
_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?::\w+)?")
_NEIGHBOUR = re.compile(r"[\w-]+(?:\.\w+)?")
_ASKS = frozenset({"importlib.resources", "PackageLoader", "__file__"})


class SourceError(UserError):
    """A Python file cannot be parsed."""


@dataclass(frozen=True)
class Table:
    """A registry as a file defines it."""

    parameter: str
    """The key of params.yaml that names an entry."""
    group: str
    entries: dict[str, str]
    """Name to ``module:attribute``."""


@dataclass(frozen=True)
class Source:
    """The facts about one file."""

    digest: str
    imports: tuple[tuple[str, tuple[str, ...]], ...]
    """(module, names imported from it); no names if the module itself is imported."""
    texts: tuple[str, ...]
    """Texts that may be the name of a module or, if ``asks``, of a file next to it."""
    asks: bool
    """Whether it asks for its own path, so it may read files next to it."""
    tables: Mapping[str, Table]
    """The registries that it defines."""
    looks_up: tuple[tuple[str, str], ...]
    """(module, table) of the registries in which it looks up a name."""
    lazy: Mapping[str, str]
    """Name to module, for names that its ``__getattr__`` imports on first use: those under TYPE_CHECKING."""


_SOURCE = TypeAdapter(Source)


def read_source(text: str, module: str, is_package: bool) -> Source:
    """The facts about a module's text. Raises ``SyntaxError`` if it is not Python."""
    tree = ast.parse(text)
    package = module if is_package else module.rpartition(".")[0]
    tables = {name: table for statement in tree.body for name, table in _tables(statement)}
    runs = list(_running(tree))
    imports = tuple(found for node in runs for found in _imports(node, package))
    names = {alias for _, taken in imports for alias in taken} | {each for each, _ in imports}
    asked = {node.id for node in runs if isinstance(node, ast.Name)}
    texts = {node.value for node in runs if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    asks = bool(_ASKS & (names | asked))
    shape = _NEIGHBOUR.fullmatch if asks else _MODULE.fullmatch
    entries = {target for table in tables.values() for target in table.entries.values()}
    kept = {text for text in texts if len(text) < 120 and (shape(text) or _MODULE.fullmatch(text))}
    return Source(
        digest=_digest(tree),
        imports=imports,
        texts=tuple(sorted(kept - entries)),
        asks=asks,
        tables=tables,
        looks_up=tuple(_looks_up(imports, tables, module)),
        lazy=_lazy(tree, package),
    )


def _looks_up(
    imports: tuple[tuple[str, tuple[str, ...]], ...], tables: Mapping[str, Table], module: str
) -> Iterator[tuple[str, str]]:
    taken = {name for source, names in imports if source in (REGISTRY, SECTIONS) for name in names}
    if not taken & {"lookup", "ByName"}:
        return
    yield from ((REGISTRY, name) for name in sorted(taken) if name.isupper())
    yield from ((module, name) for name in tables)


def _running(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes except those that only a type checker reads and those that no program reads."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and _is_type_checking(child.test):
            for other in child.orelse:
                yield other
                yield from _running(other)
        elif not _is_text(child):
            yield child
            yield from _running(child)


def _is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _imports(node: ast.AST, package: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    if isinstance(node, ast.Import):
        yield from ((alias.name, ()) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        source = ".".join([*above, *([node.module] if node.module else [])])
        yield source, tuple(alias.name for alias in node.names)


def _lazy(tree: ast.Module, package: str) -> dict[str, str]:
    """The names under TYPE_CHECKING of a package with ``__getattr__, __dir__ = lazy_names(__name__)``."""
    made = (target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets)
    names = (part.id for target in made for part in ast.walk(target) if isinstance(part, ast.Name))
    if "__getattr__" not in names:
        return {}
    checked = [node for node in tree.body if isinstance(node, ast.If) and _is_type_checking(node.test)]
    found = (each for block in checked for node in ast.walk(block) for each in _imports(node, package))
    return {name: module for module, names in found for name in names}


def _tables(statement: ast.stmt) -> Iterator[tuple[str, Table]]:
    """The registry that a statement defines: ``NAME = Registry("group", "parameter", {...})``."""
    if not (isinstance(statement, ast.Assign) and isinstance(made := statement.value, ast.Call)):
        return
    if (
        isinstance(made.func, ast.Name)
        and made.func.id == "Registry"
        and isinstance(target := statement.targets[0], ast.Name)
    ):
        try:
            group, parameter, entries = map(ast.literal_eval, made.args[:3])
        except ValueError:  # not made of constants, so it cannot be read here
            return
        yield target.id, Table(parameter, group, entries)


class _Bare(ast.NodeTransformer):
    """Removes texts used as statements, such as docstrings."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if not getattr(node, "body", True) and not isinstance(node, ast.Module):
            node.body = [ast.Pass()]  # type: ignore[attr-defined]  # the class had only its docstring
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if _is_text(node) else self.generic_visit(node)


def _digest(tree: ast.Module) -> str:
    tree.body = [statement for statement in tree.body if not any(_tables(statement))]
    return digest_of(ast.unparse(_Bare().visit(tree)).encode())


def digest_of(content: bytes) -> str:
    """A hash of 16 hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()[:16]


class Sources:
    """Reads files, and each file only once while its time and size stay the same."""

    def __init__(self, cache: Path | None = None) -> None:
        """``cache`` is a file that passes what was read to later processes; None keeps nothing."""
        self._cache, self._changed = cache, False
        self._made_by = f"{sys.version_info[:2]} {digest_of(Path(__file__).read_bytes())}"
        self._read: dict[str, Any] = {}
        if cache is not None and cache.is_file():
            try:
                kept = json.loads(cache.read_bytes())
            except ValueError:  # a damaged cache counts as empty
                kept = {}
            if kept.get("made_by") == self._made_by:
                self._read = kept["files"]

    def source(self, path: Path, module: str) -> Source:
        """What a Python file says; ``SourceError`` if it is not Python, or not UTF-8."""
        kept = self._kept(path)
        if kept is None:
            try:
                found = read_source(path.read_text(encoding="utf-8"), module, path.name == "__init__.py")
            except (SyntaxError, UnicodeDecodeError) as error:
                line = f":{error.lineno}" if isinstance(error, SyntaxError) else ""
                raise SourceError(f"{path}{line}: is not Python ({error}); correct it") from error
            kept = self._keep(path, asdict(found))
        return _SOURCE.validate_python(kept)

    def content(self, path: Path) -> str:
        """The digest of the content of a file that is not Python."""
        kept = self._kept(path)
        return str(kept if kept is not None else self._keep(path, digest_of(path.read_bytes())))

    def save(self) -> None:
        """Keep what was read for later processes."""
        if self._cache is not None and self._changed:
            self._cache.parent.mkdir(parents=True, exist_ok=True)
            write_text(self._cache, json.dumps({"made_by": self._made_by, "files": self._read}))
            self._changed = False

    def _kept(self, path: Path) -> Any:
        stamp, content = self._read.get(str(path), (None, None))
        return content if stamp == _stamp(path) else None

    def _keep(self, path: Path, content: Any) -> Any:
        self._read[str(path)] = (_stamp(path), content)
        self._changed = True
        return content


def _stamp(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_mtime_ns, status.st_size]
