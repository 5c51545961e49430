"""Find problems without running a program: undefined names, unused values, and unreachable statements.

It runs in the examiner's sandbox, since a text can be written that crashes a parser.
"""

from __future__ import annotations

import ast
import builtins
import itertools

END = (ast.Return, ast.Raise, ast.Break, ast.Continue)


def lint(source: str) -> tuple[str | None, list[str]]:
    """Return (why it does not parse, its problems); the first is None if it parses."""
    try:
        compile(source, "program.py", "exec")
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"{type(error).__name__}: {error}"[:300], []
    return None, sorted({*_undefined(tree), *_unused(tree), *_unreached(tree)})


def _undefined(tree: ast.Module) -> list[str]:
    """Names that are read but bound nowhere in the file."""
    bound = {*dir(builtins), "__name__", "__file__"}
    for node in ast.walk(tree):
        match node:
            case ast.Name(ctx=ast.Store() | ast.Del()):
                bound.add(node.id)
            case ast.FunctionDef() | ast.ClassDef() | ast.AsyncFunctionDef():
                bound.add(node.name)
            case ast.arg():
                bound.add(node.arg)
            case ast.alias():
                bound.add((node.asname or node.name).split(".")[0])
            case ast.ExceptHandler(name=str(name)):
                bound.add(name)
    star = any(isinstance(node, ast.alias) and node.name == "*" for node in ast.walk(tree))
    return [] if star else [
        f"undefined name {node.id}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in bound
    ]  # fmt: skip


def _unused(tree: ast.Module) -> list[str]:
    """Names that a function binds by a plain assignment but that are read nowhere in the file."""
    read = {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    return [
        f"unused variable {target.id}"
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id not in read
    ]


def _unreached(tree: ast.Module) -> list[str]:
    """Statements that come after the end of their block."""
    found = []
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, [])
            if isinstance(block, list):
                found += [
                    f"unreachable code in line {after.lineno}"
                    for statement, after in itertools.pairwise(block)
                    if isinstance(statement, END)
                ]
    return found
