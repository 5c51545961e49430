"""The context of a routine in a log's runs: their first messages, and the calls of each use."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from skillpress.environments.calls.rules import RuleProjection
from skillpress.environments.calls.steps import TraceStep, text_of
from skillpress.logs.fields import Wanted
from skillpress.logs.log import Log
from skillpress.logs.projection import TraceProjection
from skillpress.logs.reading_again import traces_at
from skillpress.logs.trace import Trace
from skillpress.reports.skill_files.private import cleaned
from skillpress.skills.dictionary import Skills

AT_ONCE = 500
"""Number of runs in memory at once."""
MOST_RUNS = 200
"""The largest number of a routine's runs that are read for its steps, spread evenly over the log."""
LONGEST_MESSAGE = 2000
_CONTEXT = re.compile(
    r"<(?:environment_context|user_instructions|system-reminder|local-command-\w+|command-\w+)>"
    r"|# AGENTS\.md instructions|Caveat: The messages below"
)
"""How messages begin that Codex and Claude Code send as the user's; a project's sessions share them."""


@dataclass(frozen=True)
class Opening:
    """How a run began."""

    task: str
    """The log's own name for the task, else one made from the first message; empty if both are missing."""
    message: str
    """The first message of the user, cleaned, in one line."""
    said: str = ""
    """The first message as in the log, not cleaned."""


@dataclass(frozen=True)
class Use:
    """One place where a run used a routine."""

    run: int
    steps: tuple[TraceStep, ...]
    """The call or the command behind each skill."""
    success: bool | None
    follows: str
    """The skill that follows the use; empty at the end of the run."""
    failed_step: bool
    """Whether a step was refused, or failed."""


def openings(log: Log, wanted: Wanted) -> list[Opening]:
    """The beginning of each run of a log."""
    found = [Opening(trace.task, "") for trace in log.traces]
    for begun in range(0, len(log), AT_ONCE):
        which = range(begun, min(begun + AT_ONCE, len(log)))
        for position, trace in traces_at(log, wanted, which):
            said = first_message(trace)
            line = " ".join(said.split())
            task = log.traces[position].task or (line and f"message {_hash(line)}")
            found[position] = Opening(task, cleaned(line[:LONGEST_MESSAGE]), said[:LONGEST_MESSAGE])
    return found


def first_message(trace: Trace) -> str:
    """The first message that the user wrote; empty if the log keeps none."""
    turns = trace.dialogue.turns[trace.dialogue.shown :] if trace.dialogue is not None else ()
    said = (text_of(turn.words).strip() for turn in turns if turn.role == "user")
    return next((text for text in said if text and not _CONTEXT.match(text)), "")


def uses(
    log: Log, wanted: Wanted, projection: TraceProjection, phrase: Skills, holders: Sequence[int]
) -> list[Use]:
    """The uses of a routine, in the log's order."""
    chosen = holders[:: -(-len(holders) // MOST_RUNS)] if holders else []
    found: dict[int, list[Use]] = {}
    for position, trace in traces_at(log, wanted, chosen):
        found[position] = list(_uses_in(position, trace, _named(projection, trace, log.renamed), phrase))
    return [use for position in sorted(found) for use in found[position]]


def _named(
    projection: TraceProjection, trace: Trace, renamed: Mapping[str, str]
) -> list[tuple[str, TraceStep]]:
    """The skills of a run with the call behind each."""
    if isinstance(projection, RuleProjection):
        pairs = [pair for found in projection.named(trace.steps) for pair in found]
    else:
        labels = projection(trace.steps)
        pairs = [(name, step) for step, names in zip(trace.steps, labels, strict=True) for name in names]
    return [(renamed[label], step) for label, step in pairs if label in renamed]


def _uses_in(
    position: int, trace: Trace, named: Sequence[tuple[str, TraceStep]], phrase: Skills
) -> Iterator[Use]:
    skills, place = tuple(skill for skill, _ in named), 0
    while place + len(phrase) <= len(skills):
        end = place + len(phrase)
        if skills[place:end] != phrase:
            place += 1
            continue
        steps = tuple(step for _, step in named[place:end])
        yield Use(
            position,
            steps=steps,
            success=trace.success,
            follows=skills[end] if end < len(skills) else "",
            failed_step=any(step.refused for step in steps),
        )
        place = end


def hash_of_logs(files: Sequence[Path]) -> str:
    """A hash of the files' bytes, whatever their names and order; sixteen digits."""
    hashes = []
    whole = (sorted(path.iterdir()) if path.is_dir() else [path] for path in files)
    for path in (file for several in whole for file in several if file.is_file()):
        digest = sha256()
        with path.open("rb") as file:
            while part := file.read(1 << 20):
                digest.update(part)
        hashes.append(digest.hexdigest())
    return sha256("".join(sorted(hashes)).encode()).hexdigest()[:16]


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
