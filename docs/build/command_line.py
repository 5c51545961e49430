"""The page of the command line: every command's own parser, as a table of its options."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NoReturn

from skillpress.cli.command import COMMANDS

MODULES = {
    "python -m flows.ablation": "flows.ablation",
    "python -m flows.run": "flows.run",
    "python -m flows.study": "flows.study",
    "python -m tasks": "tasks.__main__",
}
"""What is started by its module."""

HEAD = """# Command line

Made from the parsers themselves. `.venv/bin/skillpress` is there after `make run` or `make test`. Every
command exits with 0 when it is done, with 2 where the user can put something right (one line says what), with
130 after Ctrl-C, and with 1 and a traceback for anything else.
"""


class _ParserFoundError(Exception):
    """Carries a parser out of a program that was about to read its arguments."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        super().__init__(parser)
        self.parser = parser


def page() -> str:
    """The page, in Markdown."""
    parts = [HEAD]
    for name, command in COMMANDS.items():
        parts.append(table(f"skillpress {name}", parser_of(command.module), command.summary))
    for name, module in MODULES.items():
        parts.append(table(name, parser_of(module)))
    return "\n".join(parts)


def parser_of(module: str) -> argparse.ArgumentParser:
    """The parser that a program makes.

    Raises:
        ValueError: it reads its arguments in another way.
    """
    with _stopped_at_its_parser():
        try:
            import_module(module).main([])
        except _ParserFoundError as found:
            return found.parser
    raise ValueError(f"{module}: main() made no parser")


@contextmanager
def _stopped_at_its_parser() -> Iterator[None]:
    def stop(parser: argparse.ArgumentParser, *arguments: Any) -> NoReturn:
        raise _ParserFoundError(parser)

    read = argparse.ArgumentParser.parse_args
    argparse.ArgumentParser.parse_args = stop  # type: ignore[assignment]
    try:
        yield
    finally:
        argparse.ArgumentParser.parse_args = read  # type: ignore[method-assign]


def options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """The parser's options except ``--help``."""
    return [action for action in parser._actions if not isinstance(action, argparse._HelpAction)]


def table(name: str, parser: argparse.ArgumentParser, summary: str = "") -> str:
    """One command."""
    idea = summary or (parser.description or "").strip().splitlines()[0].rstrip(".")
    about = idea[:1].upper() + idea[1:] + "."
    rows = [f"| {_spelled(action)} | {_explained(parser, action)} |" for action in options(parser)]
    head = "| option | |\n|---|---|\n"
    return f"## `{name}`\n\n{about}\n\n" + (head + "\n".join(rows) + "\n" if rows else "It has no options.\n")


def _spelled(action: argparse.Action) -> str:
    names = action.option_strings or [str(action.metavar or action.dest.upper())]
    if action.nargs == 0:
        value = ""
    elif action.choices and not action.metavar:
        value = " " + " ".join(map(str, action.choices)) if action.option_strings else ""
    else:
        value = f" {action.metavar or action.dest.upper()}" if action.option_strings else ""
    many = " ..." if action.nargs in ("+", "*") else ""
    return f"`{', '.join(map(str, names))}{value}{many}`".replace("|", r"\|")


def _explained(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    about = parser._get_formatter()._expand_help(action) if action.help else ""
    said = " ".join(about.split()).replace("|", r"\|").replace("<", r"\<")
    notes = ["needed"] if action.required and action.option_strings else []
    notes += (
        ["may be repeated"] if isinstance(action, argparse._AppendAction) and "repeat" not in said else []
    )
    return said + (f" ({', '.join(notes)})" if notes else "")
