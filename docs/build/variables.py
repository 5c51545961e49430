"""Which environment variables the code reads: found in its syntax, wherever ``os.environ`` is looked into."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGES = ("skillpress", "tasks", "flows", "benchmarks")
READERS = frozenset({"get", "setdefault", "pop"})


def read_by_code(root: Path) -> dict[str, set[str]]:
    """Variable to the files that read it, from the root.

    A name that is not a text in the code must be a constant of some module. A function argument, or a name
    that comes out of a table, is not found here.
    """
    trees = {
        path: ast.parse(path.read_text(encoding="utf-8"))
        for package in PACKAGES
        for path in sorted((root / package).rglob("*.py"))
    }
    anywhere = {name: value for tree in trees.values() for name, value in _constants(tree)}
    found: dict[str, set[str]] = {}
    for path, tree in trees.items():
        constants = anywhere | dict(_constants(tree))
        for node in ast.walk(tree):
            for key in _keys(node):
                name = key.value if isinstance(key, ast.Constant) else constants.get(getattr(key, "id", ""))
                if isinstance(name, str):
                    found.setdefault(name, set()).add(str(path.relative_to(root)))
    return found


def _constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id, node.value.value


def _keys(node: ast.AST) -> Iterator[ast.expr]:
    """What is looked up in ``os.environ`` by this expression."""
    if isinstance(node, ast.Subscript) and _is_environ(node.value) and isinstance(node.ctx, ast.Load):
        yield node.slice
    if isinstance(node, ast.Compare) and any(map(_is_environ, node.comparators)):
        yield node.left
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        of_environ = _is_environ(node.func.value) and node.func.attr in READERS
        if of_environ or node.func.attr == "getenv":
            yield node.args[0]


def _is_environ(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "environ"
