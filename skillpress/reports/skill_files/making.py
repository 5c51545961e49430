"""Makes a folder of skills from a log: chooses routines, reads their uses again, and writes files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from skillpress.logs.fields import Wanted
from skillpress.logs.log import Log
from skillpress.logs.projection import TraceProjection
from skillpress.reports.skill_files.choosing import FEWEST_TASKS, Choosing, ChosenRoutines, Found, choose
from skillpress.reports.skill_files.document import ARROW, RoutineSkill, SkillSource
from skillpress.reports.skill_files.evidence import SkillEvidence
from skillpress.reports.skill_files.origin import tool_version
from skillpress.reports.skill_files.private import cleaned
from skillpress.reports.skill_files.reading import Opening, hash_of_logs, openings, uses
from skillpress.reports.skill_files.situations import failures, situation
from skillpress.reports.skill_files.steps import Needed, steps_of
from skillpress.reports.skill_files.teacher import Teacher
from skillpress.reports.skill_files.writing import Written, names_for, write


@dataclass(frozen=True)
class SkillsMade:
    """The skills that were written, and the routines that were skipped."""

    choice: ChosenRoutines
    """The chosen routines and the rest."""
    written: Written
    """The changes of the folder."""


def make_skills(
    log: Log,
    wanted: Wanted,
    projection: TraceProjection,
    settings: Choosing,
    folder: Path,
    *,
    teacher: Teacher | None = None,
) -> SkillsMade:
    """Write the skills of a log into a folder, in a teacher's words if there is one.

    Raises:
        StorageError: the folder's manifest is damaged, or a file cannot be read or written.
    """
    begun = openings(log, wanted)
    choice = choose(log, [opening.task for opening in begun], settings)
    names = names_for(folder, choice.chosen)
    needed = Needed(settings.min_runs, FEWEST_TASKS)
    reading = _Reading(log=log, wanted=wanted, projection=projection, begun=begun, needed=needed)
    skills = [reading.skill(found, names[found.phrase]) for found in choice.chosen]
    source = SkillSource(tool_version(), hash_of_logs(log.files), len(log.files), len(log))
    return SkillsMade(choice, write(folder, skills, choice, source, teacher))


@dataclass(frozen=True)
class _Reading:
    """A log, and how its runs are read again."""

    log: Log
    wanted: Wanted
    projection: TraceProjection
    begun: list[Opening]
    needed: Needed

    def skill(self, found: Found, name: str) -> RoutineSkill:
        """Everything that a SKILL.md says about a routine."""
        read = uses(self.log, self.wanted, self.projection, found.phrase, found.holders)
        tasks = [opening.task for opening in self.begun]
        evidence = SkillEvidence.of(
            (self.log.traces[run].task for run in found.holders),
            (self.begun[run].said for run in found.holders),
        )
        return RoutineSkill(
            name,
            found,
            situation=situation(self.begun, found.holders),
            steps=tuple(steps_of(found.phrase, read, tasks, self.needed)),
            uses=tuple(read),
            failures=tuple(failures(read)),
            evidence=evidence,
        )


def passed_over_rows(choice: ChosenRoutines) -> list[dict[str, object]]:
    """The table of routines that became no skill."""
    return [
        {
            "routine": cleaned(ARROW.join(passed.found.phrase)),
            "why": cleaned(passed.why),
            "uses": passed.found.uses,
            "runs": len(passed.found.holders),
            "tasks": passed.found.tasks,
            "bits_saved": passed.found.bits_saved,
        }
        for passed in choice.passed_over
    ]
