"""A table of rules, drafted from a log: what its tools are, what its shell runs, and how its editor is used.

The draft names every call of a tool: by the command that a shell tool runs, by an argument that divides a
tool into kinds, or else by the tool. If the log has no calls, it names the first words of actions. It is only
a start: the user edits it, and gives one skill to steps that do the same.

An argument divides a tool into kinds if it has few distinct first words over many calls, and if it either
bears a usual name (``KIND_NAMES``) or decides which other arguments a call has, as ``command`` of an editor
does. A tool is a shell if its name says so, or if most of its commands are known programs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from skillpress.environments.calls.shell import commands, program, text_of_command
from skillpress.environments.calls.steps import MOST_CHARACTERS, TraceStep, action_of, arguments_of
from skillpress.logs.projection import NAMES_HELD, WORDS, name_of
from skillpress.logs.trace import Trace

KIND_NAMES = frozenset(
    ["command", "action", "operation", "op", "mode", "method", "subcommand", "kind", "type"]
)
SHELL_ARGUMENTS = ("command", "cmd", "commands", "script", "input", "keystrokes", "commandline", "code")
"""The arguments that may hold a command line; the first that a call has is read."""
FEWEST_CALLS, MOST_KINDS, CALLS_PER_KIND = 10, 12, 5
"""Below ten calls, above twelve kinds, or below five calls for each, an argument divides nothing."""
MOST_ARGUMENTS, MOST_VALUES = 24, 64
"""Maximum number of counted arguments of a tool, and of counted values of each."""
KNOWN = frozenset(
    """
    ls cat head tail grep rg find sed awk python python3 pytest pip git echo mkdir rm cp mv touch chmod wc
    sort uniq diff patch curl wget tar make npm node npx yarn cargo go gcc g++ cmake java mvn docker which pwd
    cd tree nl tee xargs ps kill sleep env export source bash sh apt apt-get pip3 ruby perl php jq less
    """.split()  # noqa: SIM905  a list of sixty words is longer, and no clearer
)
_SHELL_NAME = re.compile(
    r"(?:^|[_.-])(?:bash|shell|terminal|zsh|sh|cmd|powershell)(?:$|[_.-])|run_?command", re.I
)
_FIRST = re.compile(r"\s*([A-Za-z][\w-]{0,39})(?![\w-])")


@dataclass
class Argument:
    """The values of one argument in the calls of a tool."""

    calls: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    """The values' first words, at most ``MOST_VALUES`` of them."""
    others: int = 0
    """Values without a first word, and those beyond ``MOST_VALUES``."""
    beside: dict[str, frozenset[str]] = field(default_factory=dict)
    """Maps a first word to the other arguments of its first call."""

    def add(self, value: Any, names: frozenset[str]) -> None:
        """Count one call's value."""
        self.calls += 1
        found = _FIRST.match(value) if isinstance(value, str) else None
        if found is None or (found[1] not in self.kinds and len(self.kinds) >= MOST_VALUES):
            self.others += 1
            return
        self.kinds[found[1]] += 1
        self.beside.setdefault(found[1], names)


@dataclass
class Tool:
    """What the calls of one tool look like."""

    calls: int = 0
    arguments: dict[str, Argument] = field(default_factory=dict)
    lines: Counter[str] = field(default_factory=Counter)
    """Maps the arguments that held a command line to their number of calls."""
    programs: Counter[str] = field(default_factory=Counter)
    """The programs that these lines ran."""
    run: int = 0
    """Number of commands in these lines."""
    without_command: int = 0
    """Number of calls without a command."""

    def add(self, step: TraceStep) -> None:
        """Count one call."""
        self.calls += 1
        arguments = arguments_of(step)
        names = frozenset(arguments)
        for name, value in arguments.items():
            if name in self.arguments or len(self.arguments) < MOST_ARGUMENTS:
                self.arguments.setdefault(name, Argument()).add(value, names - {name})
        self._add_line(arguments or {"command": step.content})

    def _add_line(self, arguments: Mapping[str, Any]) -> None:
        held = next((name for name in SHELL_ARGUMENTS if text_of_command(arguments.get(name))), None)
        self.lines.update([held] if held is not None else [])
        run_here = commands(text_of_command(arguments[held])[:MOST_CHARACTERS]) if held is not None else []
        self.without_command += not run_here
        self.run += len(run_here)
        for run in run_here:
            name = program(run.split(maxsplit=1)[0])
            if name in self.programs or len(self.programs) < NAMES_HELD:
                self.programs[name] += 1

    def line_argument(self, name: str) -> str | None:
        """The argument that holds command lines, if the tool of this name is a shell."""
        if not self.lines:
            return None
        known = sum(count for found, count in self.programs.items() if found in KNOWN)
        is_shell = _SHELL_NAME.search(name) is not None or known * 2 >= max(self.run, 1)
        return self.lines.most_common(1)[0][0] if is_shell else None

    def kind_argument(self) -> str | None:
        """The argument that divides the tool into kinds; None if there is none."""
        fitting = [name for name, argument in self.arguments.items() if self._divides(name, argument)]
        return min(fitting, key=lambda name: (name not in KIND_NAMES, fitting.index(name)), default=None)

    def _divides(self, name: str, argument: Argument) -> bool:
        kinds = len(argument.kinds)
        return (
            self.calls >= FEWEST_CALLS
            and 2 <= kinds <= MOST_KINDS
            and argument.calls - argument.others >= 0.9 * self.calls
            and self.calls >= CALLS_PER_KIND * kinds
            and (name in KIND_NAMES or len(set(argument.beside.values())) > 1)
        )


@dataclass
class Verb:
    """For actions that begin with one word: how often they are this word alone, have more words, or begin
    differently.
    """

    alone: int = 0
    more: int = 0
    odd: int = 0


class Draft:
    """Counts the steps of traces."""

    def __init__(self) -> None:
        self.traces = self.steps = self.in_words = self.nameless = 0
        self.tools: dict[str, Tool] = {}
        self.verbs: dict[str, Verb] = {}

    def add(self, trace: Trace) -> None:
        """Count one trace."""
        self.traces += 1
        self.steps += len(trace.steps)
        for step in trace.steps:
            if step.tool is None:
                self._add_words(step)
            elif not step.tool:
                self.nameless += 1
            elif step.tool in self.tools or len(self.tools) < NAMES_HELD:
                self.tools.setdefault(step.tool, Tool()).add(step)

    def _add_words(self, step: TraceStep) -> None:
        self.in_words += 1
        name = name_of(step).removeprefix(WORDS)
        if step.refused or not name or (name not in self.verbs and len(self.verbs) >= NAMES_HELD):
            return
        verb, first, rest = self.verbs.setdefault(name, Verb()), *_split(action_of(step))
        verb.odd += first != name
        verb.alone += first == name and not rest
        verb.more += first == name and bool(rest)

    def by_calls(self) -> Iterator[tuple[str, Tool]]:
        """The tools, most called first."""
        yield from sorted(self.tools.items(), key=lambda entry: (-entry[1].calls, entry[0]))

    def by_count(self) -> Iterator[tuple[str, Verb, int]]:
        """The first words with their number of actions, most frequent first."""
        counts = {name: verb.alone + verb.more + verb.odd for name, verb in self.verbs.items()}
        for name in sorted(counts, key=lambda name: (-counts[name], name)):
            yield name, self.verbs[name], counts[name]


def _split(action: str) -> tuple[str, str]:
    first, _, rest = " ".join(action[:200].lower().split()).partition(" ")
    return first, rest
