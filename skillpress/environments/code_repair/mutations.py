"""One-line bugs and their repairs as a list: every small change of a program that a table of rules contains.

A rule looks at one node of the syntax tree and lists its possible replacements: another comparison, another
operator, a number that is one larger or smaller, another variable. The list is used in two ways. Applied to a
correct program, a change is a bug, from which tasks are made. Listed for a faulty program, the changes are
the choices of a policy trained from scratch. Each change is one replacement in the text, so the rest of the
text stays unchanged.
"""

from __future__ import annotations

import ast
import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from skillpress.environments.code_repair.programs import PARSING

COMPARISONS = {
    ast.Lt: ("<", ("<=", ">")),
    ast.LtE: ("<=", ("<", ">=", "==")),
    ast.Gt: (">", (">=", "<")),
    ast.GtE: (">=", (">", "<=", "==")),
    ast.Eq: ("==", ("!=", "<=", ">=")),
    ast.NotEq: ("!=", ("==",)),
    ast.In: ("in", ("not in",)),
    ast.NotIn: ("not in", ("in",)),
    ast.Is: ("is", ("is not",)),
    ast.IsNot: ("is not", ("is",)),
}
OPERATORS = {
    ast.Add: ("+", ("-", "*")),
    ast.Sub: ("-", ("+", "%")),
    ast.Mult: ("*", ("**", "+")),
    ast.Div: ("/", ("//", "*")),
    ast.FloorDiv: ("//", ("/", "-")),
    ast.Mod: ("%", ("//", "-")),
    ast.Pow: ("**", ("*",)),
    ast.BitXor: ("^", ("&", "|")),
    ast.BitAnd: ("&", ("|", "^")),
    ast.BitOr: ("|", ("&",)),
}
CONNECTIVES = {ast.And: ("and", ("or",)), ast.Or: ("or", ("and",))}
ASSIGNMENTS = {
    "+=": ("-=", "*="), "-=": ("+=", "//="), "*=": ("+=",), "/=": ("//=",), "//=": ("-=", "/="),
    "^=": ("&=",), "&=": ("^=",), "|=": ("&=",), "%=": ("-=",),
}  # fmt: skip
TWINS = (
    ("min", "max"), ("lower", "upper"), ("islower", "isupper"), ("startswith", "endswith"),
    ("floor", "ceil"), ("any", "all"), ("lower", "swapcase"), ("append", "extend"),
)  # fmt: skip
"""Names of functions that are often confused."""
KINDS = (
    "comparison", "operator", "connective", "assignment", "number", "constant", "offset", "variable",
    "arguments", "function", "negation",
)  # fmt: skip
PLACES = (
    "return", "if", "while", "for", "assign", "augment", "call", "yield", "lambda", "comprehension", "other",
)  # fmt: skip
"""The kind of statement that contains the change."""
_STATEMENTS: dict[type[ast.stmt], str] = {
    ast.Return: "return", ast.If: "if", ast.While: "while", ast.For: "for",
    ast.Assign: "assign", ast.AnnAssign: "assign", ast.AugAssign: "augment",
}  # fmt: skip
MOST_CHANGES = 160
"""Maximum number of changes of one program; later ones in its text are not listed."""


@dataclass(frozen=True)
class Change:
    """One replacement in a program's text."""

    kind: str
    """One of ``KINDS``."""
    place: str
    """One of ``PLACES``."""
    line: int
    """Line number, counted from 1."""
    start: int
    """Index of the character in the text at which it begins."""
    before: str
    after: str

    def apply(self, text: str) -> str:
        """Return the changed program."""
        assert text[self.start : self.start + len(self.before)] == self.before, "the change is of this text"
        return text[: self.start] + self.after + text[self.start + len(self.before) :]

    def __str__(self) -> str:
        return f"line {self.line}: {self.before} -> {self.after}"


@functools.lru_cache(4096)
def changes(text: str) -> tuple[Change, ...]:
    """Every change that the rules allow, in the order of the text, without changes that give the same result.

    Raises:
        SyntaxError: the text is not a program.
    """
    found: dict[str, Change] = {}
    with PARSING:
        listed = sorted(_Program(text).changes(), key=lambda change: (change.start, KINDS.index(change.kind)))
        for change in listed:
            result = change.apply(text)
            if result != text and _parses(result):
                found.setdefault(result, change)
    return tuple(found.values())[:MOST_CHANGES]


def repair(text: str, correct: str) -> Change | None:
    """The listed change that turns the program into the correct one, apart from spacing and comments; None if
    there is none."""
    wanted = shape(correct)
    return next((change for change in changes(text) if shape(change.apply(text)) == wanted), None)


def shape(text: str) -> str:
    """A program without its layout: its tree without string statements.

    Raises:
        SyntaxError: the text is not a program.
    """
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)):
            node.body = [part for part in node.body if not _is_text(part)] or [ast.Pass()]
    return ast.dump(tree)


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


class _Program:
    """One program's text and tree."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tree = ast.parse(text)
        self._lines = [0]
        for line in text.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self._rows = text.splitlines(keepends=True)

    def changes(self) -> Iterator[Change]:
        """The changes of all functions. Each function uses only its own variables."""
        for function in ast.walk(self._tree):
            if isinstance(function, ast.FunctionDef):
                names = _variables(function)
                for statement in _statements(function.body):
                    yield from self._of(statement, names)

    def _of(self, statement: ast.stmt, names: tuple[str, ...]) -> Iterator[Change]:
        place = _place(statement)
        if isinstance(statement, ast.AugAssign):
            before, sides = (
                self._between(statement.target, statement.value).strip(),
                [statement.target, statement.value],
            )
            yield from self._operators("assignment", place, sides, (before, ASSIGNMENTS.get(before, ())))
        for node in _expressions(statement):
            inner = "comprehension" if node.in_comprehension else place
            inner = "lambda" if isinstance(node.parent, ast.Lambda) else inner
            yield from self._rules(node.node, inner, names, node.parent)

    def _rules(self, node: ast.expr, place: str, names: tuple[str, ...], parent: ast.AST) -> Iterator[Change]:
        match node:
            case ast.Compare():
                sides = [node.left, *node.comparators]
                for operator, pair in zip(node.ops, itertools.pairwise(sides), strict=True):
                    yield from self._operators("comparison", place, pair, COMPARISONS[type(operator)])
            case ast.BinOp() if type(node.op) in OPERATORS:
                sides = [node.left, node.right]
                yield from self._operators("operator", place, sides, OPERATORS[type(node.op)])
                if isinstance(node.op, (ast.Add, ast.Sub)) and _is_small(node.right):
                    yield self._replace("offset", place, node, self._source(node.left))
            case ast.BoolOp():
                for pair in itertools.pairwise(node.values):
                    yield from self._operators("connective", place, pair, CONNECTIVES[type(node.op)])
            case ast.UnaryOp(op=ast.Not()):
                yield self._replace("negation", place, node, self._source(node.operand))
            case ast.Constant(value=bool()):
                yield self._replace("constant", place, node, str(not node.value))
            case ast.Constant(value=int(number)):
                for other in (number + 1, number - 1):
                    yield self._replace("number", place, node, str(other))
            case ast.Call(args=[first, second], keywords=[]):
                swapped = f"{self._source(second)}{self._between(first, second)}{self._source(first)}"
                before = self._text[self._start(first) : self._end(second)]
                yield self._change("arguments", place, self._start(first), before, swapped)
            case ast.Name(id=name) if isinstance(node.ctx, ast.Load):
                kind, others = (
                    ("variable", tuple(other for other in names if other != name))
                    if name in names
                    else ("function", _twins(name))
                )
                for after in others:
                    yield self._replace(kind, place, node, after)
            case ast.Attribute(attr=name) if _twins(name):
                for after in _twins(name):
                    yield self._replace("function", place, node, f"{self._source(node.value)}.{after}")
        if _is_position(node, parent):
            for sign in "+-":
                yield self._replace("offset", place, node, f"{self._source(node)} {sign} 1")

    def _operators(
        self, kind: str, place: str, sides: Sequence[ast.expr], rule: tuple[str, tuple[str, ...]]
    ) -> Iterator[Change]:
        """Replacements of the operator between two operands, which may be in parentheses."""
        (left, right), (before, others) = sides, rule
        start = self._end(left)
        between = self._text[start : self._start(right)]
        found = re.search(rf"(?<![-+*/%<>=!&|^\w]){re.escape(before)}(?![*/<>=\w])", between)
        if found is not None:  # None for such as a comment between the two
            for after in others:
                yield self._change(kind, place, start + found.start(), before, after)

    def _replace(self, kind: str, place: str, node: ast.expr, after: str) -> Change:
        return self._change(kind, place, self._start(node), self._source(node), after)

    def _change(self, kind: str, place: str, start: int, before: str, after: str) -> Change:
        line = self._text.count("\n", 0, start) + 1
        return Change(kind=kind, place=place, line=line, start=start, before=before, after=after)

    def _source(self, node: ast.expr) -> str:
        return self._text[self._start(node) : self._end(node)]

    def _between(self, left: ast.expr, right: ast.expr) -> str:
        return self._text[self._end(left) : self._start(right)]

    def _start(self, node: ast.expr) -> int:
        return self._character(node.lineno, node.col_offset)

    def _end(self, node: ast.expr) -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._character(node.end_lineno, node.end_col_offset)

    def _character(self, line: int, byte: int) -> int:
        """Convert a byte position within a line, as used by the tree, to a character position in the text."""
        return self._lines[line - 1] + len(self._rows[line - 1].encode()[:byte].decode())


@dataclass(frozen=True)
class _Place:
    node: ast.expr
    parent: ast.AST
    in_comprehension: bool


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements of a function, including nested ones. Functions within it are left out, since they are
    visited separately."""
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            continue
        yield statement
        for field in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(statement, field, []))


def _expressions(statement: ast.stmt) -> Iterator[_Place]:
    """The statement's own expressions, without those of statements inside it."""

    def below(node: ast.AST, comprehension: bool) -> Iterator[_Place]:
        inside = comprehension or isinstance(
            node, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)
        )
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                continue
            if isinstance(child, ast.expr):
                yield _Place(child, node, inside)
            if not isinstance(child, ast.JoinedStr):  # positions inside differ from those in the text
                yield from below(child, inside)

    yield from below(statement, False)


def _place(statement: ast.stmt) -> str:
    match statement:
        case ast.Expr(value=ast.Call()):
            return "call"
        case ast.Expr(value=ast.Yield() | ast.YieldFrom()):
            return "yield"
        case _:
            return _STATEMENTS.get(type(statement), "other")


def _variables(function: ast.FunctionDef) -> tuple[str, ...]:
    """A function's parameters and the names it assigns, in the order of the text."""
    parameters = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    assigned = sorted(
        (node.lineno, node.col_offset, node.id)
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )
    return tuple(dict.fromkeys([*parameters, *(name for _, _, name in assigned)]))


def _twins(name: str) -> tuple[str, ...]:
    return tuple(second if name == first else first for first, second in TWINS if name in (first, second))


def _is_small(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and abs(node.value) <= 2


def _is_position(node: ast.expr, parent: ast.AST) -> bool:
    """Whether the expression may be a position: a subscript, a bound of a slice, an argument of a function
    that is called by its name (above all ``range``), or an element of a tuple."""
    if isinstance(node, (ast.Constant, ast.Slice, ast.Tuple, ast.Starred, ast.JoinedStr, ast.GeneratorExp)):
        return False
    if isinstance(parent, ast.Slice):
        return True
    if isinstance(parent, ast.Subscript):
        return node is parent.slice
    if isinstance(parent, ast.Tuple):  # such as table[i, j - 1]
        return isinstance(node, ast.Name) and isinstance(parent.ctx, ast.Load)
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name):
        return node in parent.args and isinstance(node, (ast.Name, ast.BinOp, ast.Call))
    return False
