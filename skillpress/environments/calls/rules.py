"""φ from a table of rules in YAML: for logs (``skillpress skills --rules``) and for programs
(``environment.rules``).

    rules:
      - [open *, Explore]                                    # the action's words, * for one or more
      - {tool: bash, finds: '^(cat|ls|grep)\\b', skill: Inspect}
      - {tool: edit, argument: command, finds: '^view', skill: Inspect}
      - {tool: edit, skill: Edit}
      - {tool: pytest, after: Edit, skill: Test}
      - {tool: pytest, skill: Reproduce}

The first rule that fits names the step, so the most specific rules come first. A step that fits no rule has
no skill. All conditions of a rule must hold:

- ``tool``: the called tool, with ``*`` for any letters; without it the rule does not check the tool.
- ``words``: the whole action in words, ``*`` for one or more words; for a call, the tool's name comes first.
- ``finds``: a regular expression that is searched in the action (a call's only argument, or all of them as
  JSON), or with ``argument`` in that argument.
- ``after``: an earlier step that was not refused had this skill, and with ``until`` no step since then had
  that one.

A table may also say which tools run command lines of a shell:

    shell: {bash: command, terminal: input}    # a tool (with ``*``) and its argument

Their calls are split into the commands that they run (``shell.py``), and each command is matched as a step
that has this argument alone, so ``finds: '^ls\\b'`` finds the ``ls`` in ``cd /repo && ls | head``. Such a
step has as many skills as commands with a rule.

The alphabet is the skills in the table's order, so it is fixed before a log is read or an episode is played.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from fnmatch import translate
from functools import cached_property
from pathlib import Path
from typing import Any

from skillpress.core.errors import UserError
from skillpress.core.trajectory import Skills
from skillpress.core.yaml_files import read_yaml_file
from skillpress.environments.calls.shell import commands, text_of_command
from skillpress.environments.calls.steps import MOST_CHARACTERS, TraceStep, action_of, arguments_of, text_of
from skillpress.environments.text.rules import RuleTable


class RulesError(UserError):
    """A file that is not a table of rules; the message names the file, the rule and the remedy."""


@dataclass(frozen=True)
class Rule:
    """One row of a table; None means no condition."""

    skill: str
    tool: re.Pattern[str] | None = None
    words: RuleTable | None = None
    finds: re.Pattern[str] | None = None
    argument: str | None = None
    after: str | None = None
    until: str | None = None

    def fits(self, seen: Seen, latest: Mapping[str, int]) -> bool:
        """Whether the rule fits the step; ``latest`` has the number of the last step of each skill so far."""
        if self.tool is not None and (seen.tool is None or not self.tool.match(seen.tool)):
            return False
        if self.after is not None and latest.get(self.after, -1) <= latest.get(self.until or "", -1):
            return False
        if self.words is not None and self.words.skill(seen.words) is None:
            return False
        return self.finds is None or self.finds.search(seen.text(self.argument)) is not None


@dataclass(frozen=True)
class Shell:
    """The tools whose calls are command lines of a shell."""

    tool: re.Pattern[str]
    argument: str

    def parts(self, step: TraceStep) -> list[TraceStep]:
        """A step for each command that the line runs, with this argument alone."""
        arguments = arguments_of(step)
        line = text_of_command(arguments.get(self.argument) if arguments else step.content)
        return [step._replace(content={self.argument: run}) for run in commands(line[:MOST_CHARACTERS])]


class Seen:
    """One step as rules see it: each text is made at most once, and only if a rule needs it."""

    def __init__(self, step: TraceStep) -> None:
        self._step = step
        self.tool = step.tool

    @cached_property
    def action(self) -> str:
        """The action of the step."""
        return action_of(self._step)

    @cached_property
    def words(self) -> str:
        """The action in words, after the tool's name if there is one."""
        return self.action if self.tool is None else f"{self.tool} {self.action}"

    @cached_property
    def _arguments(self) -> Mapping[str, Any]:
        return arguments_of(self._step)

    def text(self, argument: str | None) -> str:
        """One argument, or the action if no argument is named."""
        return self.action if argument is None else text_of(self._arguments.get(argument))[:MOST_CHARACTERS]


class RuleProjection:
    """φ(τ) by the first rule that fits."""

    def __init__(self, rules: Sequence[Rule], shells: Sequence[Shell] = ()) -> None:
        self._rules, self._shells = tuple(rules), tuple(shells)
        self.alphabet = tuple(dict.fromkeys(rule.skill for rule in rules))

    def __call__(self, steps: Sequence[TraceStep]) -> list[Skills]:
        """The skills of each step of one trace, in order."""
        return [tuple(skill for skill, _ in found) for found in self.named(steps)]

    def named(self, steps: Sequence[TraceStep]) -> list[list[tuple[str, TraceStep]]]:
        """The skills of each step of one trace, in order, with the step or the command that each names."""
        latest: dict[str, int] = {}
        number = 0
        labels: list[list[tuple[str, TraceStep]]] = []
        for step in steps:
            found = []
            for part in self._parts(step):
                seen, number = Seen(part), number + 1
                label = next((rule.skill for rule in self._rules if rule.fits(seen, latest)), None)
                if label is not None:
                    found.append((label, part))
                    if not step.refused:
                        latest[label] = number
            labels.append(found)
        return labels

    def _parts(self, step: TraceStep) -> Sequence[TraceStep]:
        for shell in self._shells:
            if step.tool is not None and shell.tool.match(step.tool):
                return shell.parts(step) or (step,)
        return (step,)

    def settle(self, counts: Mapping[str, int]) -> dict[str, str]:
        """The table's own skills, whether they occur or not."""
        return {skill: skill for skill in self.alphabet}


def read_rules(path: Path) -> RuleProjection:
    """The table of a YAML file.

    Raises:
        YamlError: it cannot be read.
        RulesError: the file is not such a table; the message names the rule and the remedy.
    """
    content = read_yaml_file(path)
    rows = content.get("rules") if isinstance(content, Mapping) else None
    if not isinstance(rows, list) or not rows or not content.keys() <= {"rules", "shell"}:
        raise RulesError(f"{path}: not a table of rules; it needs rules (a list of rules) and may have shell")
    rules = [_rule(row, f"{path}: rule {number}") for number, row in enumerate(rows, 1)]
    skills = {rule.skill for rule in rules}
    for number, rule in enumerate(rules, 1):
        for name in ("after", "until"):
            if (named := getattr(rule, name)) is not None and named not in skills:
                raise RulesError(f"{path}: rule {number}: {name}: no rule gives the skill {named!r}")
    return RuleProjection(rules, _shells(content.get("shell") or {}, path))


def _shells(content: Any, path: Path) -> list[Shell]:
    shells = []
    for tool, argument in content.items() if isinstance(content, Mapping) else [(content, None)]:
        if not (isinstance(tool, str) and tool and isinstance(argument, str) and argument):
            raise RulesError(
                f"{path}: shell: must map each tool to the argument that contains its commands, such as "
                "{bash: command}"
            )
        shells.append(Shell(re.compile(translate(tool)), argument))
    return shells


_KEYS = tuple(field.name for field in fields(Rule))


def _rule(row: Any, place: str) -> Rule:
    if isinstance(row, list) and len(row) == 2:
        row = {"words": row[0], "skill": row[1]}
    if not isinstance(row, Mapping) or not row.keys() <= set(_KEYS) or "skill" not in row:
        raise RulesError(
            f"{place}: {row!r} is neither [words, skill] nor a skill with some of {', '.join(_KEYS[1:])}"
        )
    for key, value in row.items():
        if not isinstance(value, str) or not value.strip():
            raise RulesError(f"{place}: {key}: {value!r} must be a text")
    if len(row["skill"]) > 80:
        raise RulesError(f"{place}: skill: the name has more than 80 letters; shorten it")
    if "argument" in row and "finds" not in row:
        raise RulesError(f"{place}: argument is set, but finds is missing; add it")
    if "until" in row and "after" not in row:
        raise RulesError(f"{place}: until is set, but after is missing; add it")
    try:
        finds = re.compile(row["finds"]) if "finds" in row else None
    except re.error as error:
        raise RulesError(f"{place}: finds: {row['finds']!r} is not a regular expression: {error}") from error
    return Rule(
        row["skill"],
        tool=re.compile(translate(row["tool"])) if "tool" in row else None,
        words=RuleTable(((row["words"], row["skill"]),)) if "words" in row else None,
        finds=finds,
        argument=row.get("argument"),
        after=row.get("after"),
        until=row.get("until"),
    )
