"""One skill as the text of its SKILL.md: instructions first, then the evidence."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from skillpress.reports.skill_files.choosing import ChosenRoutines, Found
from skillpress.reports.skill_files.evidence import SkillEvidence
from skillpress.reports.skill_files.private import cleaned
from skillpress.reports.skill_files.reading import Use
from skillpress.reports.skill_files.situations import Situation
from skillpress.reports.skill_files.steps import RoutineStep
from skillpress.skills.library.files import EVIDENCE_FILE

LONGEST_NAME, LONGEST_DESCRIPTION = 64, 1024
"""The limits of the format."""
LONGEST_FORM = 400
MOST_FOLLOWERS, MOST_VARIANTS = 3, 5
EVIDENCE = "## Evidence"
ARROW = " → "


@dataclass(frozen=True)
class SkillSource:
    """The source of the evidence."""

    version: str
    """The version of skillpress, with the commit if it is known."""
    logs: str
    """The hash of the logs."""
    files: int
    runs: int


@dataclass(frozen=True)
class RoutineSkill:
    """Everything that a SKILL.md says."""

    name: str
    found: Found
    situation: Situation
    steps: tuple[RoutineStep, ...]
    uses: tuple[Use, ...]
    """The uses whose steps were read again from the log."""
    failures: tuple[str, ...]
    evidence: SkillEvidence
    """Hashes by which a trial recognises the tasks of its runs."""
    words: str = ""
    """The teacher's description; empty for the computed one."""
    worded_by: str = ""
    """The model that worded name or description; empty if both are computed."""


def name_of(phrase: Sequence[str], taken: set[str]) -> str:
    """A name by the rules of the format: a-z, 0-9 and single hyphens, and none that is taken."""
    joined = "-".join(cleaned(skill) for skill in phrase).lower()
    name = re.sub(r"[^a-z0-9]+", "-", joined).strip("-") or "routine"
    name = _cut(name, LONGEST_NAME)
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{_cut(name, LONGEST_NAME - 1 - len(str(number)))}-{number}"
    return found


def _cut(name: str, most: int) -> str:
    if len(name) <= most:
        return name
    return (name[: most + 1].rpartition("-")[0] or name[:most]).strip("-")


def document(skill: RoutineSkill, choice: ChosenRoutines, source: SkillSource) -> str:
    """The text of the file."""
    body = "\n".join([*_instructions(skill), *_evidence(skill, choice, source), ""])
    described = json.dumps(skill.words or description(skill), ensure_ascii=False)
    front = f"---\nname: {skill.name}\ndescription: {described}\n---\n\n"
    return front + cleaned(body)


def description(skill: RoutineSkill) -> str:
    """What the routine does and when to use it, within the format's limit; without tags, which some agents
    refuse in a description."""
    said = f"The routine {ARROW.join(skill.found.phrase)}. {' '.join(_when(skill.situation))}"
    return re.sub(r"\[?<\w+>\]?", "…", cleaned(said))[:LONGEST_DESCRIPTION].strip()


def _when(situation: Situation) -> Iterator[str]:
    if situation.form:
        yield f"Use it for tasks such as: {_plain(situation.form).rstrip('.!?')}."
    elif situation.words:
        yield f"Use it where a task speaks of {', '.join(situation.words)}."
    else:
        yield "The first messages of its runs had nothing in common: judge by the steps."


def _instructions(skill: RoutineSkill) -> Iterator[str]:
    yield f"# {_plain(ARROW.join(skill.found.phrase))}\n"
    yield "## When to use it\n"
    yield from (f"{sentence}" for sentence in _when(skill.situation))
    yield "\n## Steps\n"
    yield "A name in angle brackets is a place to fill; square brackets mean that some uses leave it out.\n"
    for number, step in enumerate(skill.steps, 1):
        yield f"{number}. {_plain(step.skill)}{_code(step.form)}"
        yield from (f"   - {count} uses{_code(form)}" for form, count in step.forms)
    yield "\n## Variants and what followed\n"
    variants = skill.found.variants[:MOST_VARIANTS]
    yield from (f"- {_plain(ARROW.join(it.phrase))}: {it.uses} uses" for it in variants)
    followed = Counter(use.follows or "the end of the run" for use in skill.uses)
    ranked = sorted(followed.items(), key=lambda entry: (-entry[1], entry[0]))[:MOST_FOLLOWERS]
    told = ", ".join(f"{_plain(name)} {count} times" for name, count in ranked)
    yield f"- Of {len(skill.uses)} uses that were read, this came next: {told or 'unknown'}"
    if skill.failures:
        yield "\n## What failed uses did differently\n"
        yield from (f"- {sentence}" for sentence in skill.failures)


def _evidence(skill: RoutineSkill, choice: ChosenRoutines, source: SkillSource) -> Iterator[str]:
    found = skill.found
    yield f"\n{EVIDENCE}\n"
    yield (
        f"- **Uses:** {found.uses} in {len(found.holders)} of {source.runs} runs, of {found.tasks} distinct "
        f"tasks. With the steps of each run in random order, {found.by_chance:.1f} uses would be expected "
        f"where {found.observed} were counted (each task and sequence once)."
    )
    yield (
        f"- **Description length:** {found.bits_saved:.1f} bits saved, over {choice.pairs} distinct pairs of "
        "a task and a sequence."
    )
    if choice.certificate is not None:
        ours, single = choice.certificate.learned, choice.certificate.singles
        yield (
            f"- **Bound:** with all routines of these logs a further run takes at most {ours.bound:.1f} bits "
            f"on average (95%), with single steps at most {single.bound:.1f}; on the judged half they took "
            f"{ours.seen:.1f} and {single.seen:.1f}."
        )
    else:
        yield "- **Bound:** none, since there are fewer than two tasks."
    yield f"- **Success:** {_success(found)}"
    words = f"; the model {_plain(skill.worded_by)} worded name and description" if skill.worded_by else ""
    yield f"- **Made by:** skillpress {source.version}{words or ', without a model'}."
    files = "1 file" if source.files == 1 else f"{source.files} files"
    yield (
        f"- **Logs:** {files}, hash {source.logs} (SHA-256 of the sorted SHA-256 of each file). "
        f"`{EVIDENCE_FILE}` knows the tasks of these uses by their hashes."
    )


def _success(found: Found) -> str:
    success = found.success
    if success is None:
        return "unknown, of the runs with it or of those without it."
    shares = [won / runs for won, runs in zip(success.won, success.runs, strict=True)]
    (won, other), (runs, others) = success.won, success.runs
    points = [100 * end for end in (shares[0] - shares[1], success.low, success.high)]
    return (
        f"{shares[0]:.0%} of runs with it ({won} of {runs}), {shares[1]:.0%} of those without it ({other} of "
        f"{others}): a difference of {points[0]:+.0f} points ({points[1]:+.0f} to {points[2]:+.0f}, 95% for "
        "this skill alone). That is no proof of a cause."
    )


def _plain(text: str) -> str:
    """Text of a log within a line of Markdown: markup of its own is taken out."""
    return " ".join(re.sub(r"[`*#\[\]|\\]", " ", cleaned(text)).split())[:LONGEST_FORM]


def _code(form: str) -> str:
    shown = " ".join(form.replace("`", "'").split())[:LONGEST_FORM]
    return f": `{shown}`" if shown else ""
