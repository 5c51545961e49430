"""Algorithms and selections in the form before 0.2, whose keys were a class beside them, in the present form.

class Keys(AlgorithmParameters): ...          class Keys(Algorithm): ...

@dataclass(frozen=True)                  ->   class Mine(Keys):
class Mine(Algorithm):                            ...  # self.key
    Parameters: ClassVar[...] = Keys
    ...  # self.parameters.key
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

_PLACE = "skillpress.training.algorithms."
_GONE = {"PolicyLoss": "object"}
"""Names without a present one, and the name that replaces them."""
_METHODS = {"__call__": "kept", "loss": "policy_loss", "importance": "importance_weights"}
_LOSS = '''
{indent}def loss(self, tokens):
{indent}    """What an update minimises."""
{indent}    return self.policy_loss(tokens)
'''
Edit = tuple[int, int, str]
"""First byte, byte behind the last, and the text between them from now on."""


def with_present_classes(text: str) -> str:
    """The text of a module, with each algorithm and selection as the section that it is now.

    Other files are returned unchanged, also those that are not Python.
    """
    source = text.encode("utf-8", errors="surrogateescape")
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError):
        return text
    edits = sorted(_Module(source, module).edits(), reverse=True)
    for start, end, replacement in edits:
        source = source[:start] + replacement.encode() + source[end:]
    return source.decode("utf-8", errors="surrogateescape")


class _Module:
    """A module as parsed, and what changes in it."""

    def __init__(self, source: bytes, module: ast.Module) -> None:
        self.tree = module
        self.lines = [0]
        for line in source.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))
        self.empty = [not line.strip() for line in source.splitlines()]
        self.imports = [node for node in ast.walk(module) if _of_algorithms(node)]
        self.names = {name.name: _present(name.name) for node in self.imports for name in node.names}
        self.sections = set(self.names.values()) - {"object"}

    def edits(self) -> Iterator[Edit]:
        """All edits; none overlaps another."""
        changed = {former for former, present in self.names.items() if present != former}
        for node in self.imports:
            if changed.intersection(name.name for name in node.names):
                yield self._whole(node, _import(node))
        edited: set[int] = set()
        for part in [node for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef)]:
            bases = {self.names.get(base, base) for base in map(ast.unparse, part.bases)}
            keys = self._keys(part)
            if keys is not None:
                edited.update(id(node) for each in (*part.bases, *_fields(part)) for node in ast.walk(each))
                yield from self._bases(part, keys)
                yield from self._without(part)
            if keys is not None or bases & self.sections:
                self.sections.add(part.name)
                yield from self._section(part)
        for name in ast.walk(self.tree):
            if isinstance(name, ast.Name) and name.id in changed and id(name) not in edited:
                yield self._whole(name, self.names[name.id])

    def _keys(self, part: ast.ClassDef) -> str | None:
        """The present name of the class that has this class's keys; None if it has its own."""
        for field in _fields(part):
            if isinstance(value := getattr(field, "value", None), ast.Name):
                keys = self.names.get(value.id, value.id)
                if keys in self.sections:
                    return keys
        return None

    def _without(self, part: ast.ClassDef) -> Iterator[Edit]:
        """Neither of the two fields, and no empty line before them."""
        fields = _fields(part)
        for field in fields:
            first = field.lineno - 1
            while self.empty[first - 1]:
                first -= 1
            alone = len(fields) == len(part.body) and field is fields[0]
            text = f"{' ' * field.col_offset}pass\n" if alone else ""
            yield self.lines[first], self.lines[field.end_lineno or 0], text

    def _section(self, part: ast.ClassDef) -> Iterator[Edit]:
        for decorator in part.decorator_list:
            if "dataclass" in ast.unparse(decorator):
                yield self.lines[decorator.lineno - 1], self.lines[decorator.end_lineno or 0], ""
        for node in ast.walk(part):
            if isinstance(node, ast.FunctionDef):
                yield from self._function(node)
            elif isinstance(node, ast.Attribute) and ast.unparse(node) == "self.parameters":
                yield self._whole(node, "self")

    def _bases(self, part: ast.ClassDef, keys: str) -> Iterator[Edit]:
        """The class derives from its keys first; ``Algorithm`` and ``Selection`` are among their bases."""
        bases = [self.names.get(base, base) for base in map(ast.unparse, part.bases)]
        others = [base for base in bases if base not in ("Algorithm", "Selection", keys)]
        if part.bases:
            first, last = self._whole(part.bases[0], ""), self._whole(part.bases[-1], "")
            yield first[0], last[1], ", ".join([keys, *others])
        else:
            named = self.lines[part.lineno - 1] + part.col_offset + len(f"class {part.name}")
            yield named, named, f"({keys})"

    def _function(self, node: ast.FunctionDef) -> Iterator[Edit]:
        start = self.lines[node.lineno - 1] + node.col_offset + len("def ")
        former = node.name in _METHODS and (node.name == "__call__" or bool(node.decorator_list))
        if former:
            yield start, start + len(node.name), _METHODS[node.name]
        if former and node.name == "loss":
            end = self.lines[node.end_lineno or 0]
            yield end, end, _LOSS.format(indent=" " * node.col_offset)
        arguments = [argument.arg for argument in node.args.args]
        if node.name == "token_weights" and "longest" not in arguments:
            end = self._whole(node.args.args[-1], "")[1]
            yield end, end, ", longest: int"
        there = {"token_weights": "longest"}.get(node.name, "batch.longest_response")
        for inner in ast.walk(node):
            if isinstance(inner, ast.Attribute) and ast.unparse(inner) == "self.longest_response":
                yield self._whole(inner, there)

    def _whole(self, node: ast.expr | ast.stmt | ast.arg, text: str) -> Edit:
        start, end = self.lines[node.lineno - 1], self.lines[(node.end_lineno or 1) - 1]
        return start + node.col_offset, end + (node.end_col_offset or 0), text


def _of_algorithms(node: ast.AST) -> TypeGuard[ast.ImportFrom]:
    return isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(_PLACE)


def _present(name: str) -> str:
    """``GRPOParameters`` is ``GRPO`` now, and ``ClippedAlgorithm`` is ``Clipped``."""
    if name in _GONE:
        return _GONE[name]
    if name == "AlgorithmParameters":
        return "Algorithm"
    return name.removesuffix("Parameters").removesuffix("Algorithm") or name


def _import(node: ast.ImportFrom) -> str:
    names = {_present(name.name): name.asname for name in node.names if name.name not in _GONE}
    module = f"{_PLACE}algorithm" if node.module == f"{_PLACE}parameters" else node.module
    kept = [name + (f" as {other}" if other else "") for name, other in names.items()]
    return f"from {module} import {', '.join(kept)}" if kept else "pass"


def _fields(part: ast.ClassDef) -> list[ast.stmt]:
    """The statements ``Parameters = Keys`` and ``parameters: Keys`` of a class, annotated or not."""
    found: list[ast.stmt] = []
    for statement in part.body:
        targets = (
            statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        )
        if any(
            isinstance(target, ast.Name) and target.id in ("Parameters", "parameters") for target in targets
        ):
            found.append(statement)
    return found
