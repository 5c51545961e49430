"""The tables on a run's skill library: its skills with their reasons, and Table 11 measured on it."""

from __future__ import annotations

from collections.abc import Sequence

from skillpress.measure.analysis.mdl_report import ARROW
from skillpress.measure.paper.correspondence import Correspondence
from skillpress.show.report.tables import NOTHING, Row, Table, Value
from skillpress.skills.library.library import GENERAL, Skill, SkillLibrary

HEADS = ("Since step", "For", "Uses by successes", "Failures behind it", "Why")
PAIR_HEADS = ("In the dictionary", "In the skill library", "Closest skill by a teacher")


def library_table(library: SkillLibrary) -> Table:
    """One line per skill, the oldest first."""
    return Table(
        HEADS, tuple(_row(version.step, skill) for version in library.versions for skill in version.added)
    )


def correspondence_table(pairs: Sequence[Correspondence], library: SkillLibrary) -> Table:
    """One line per pair of the paper's Table 11."""
    return Table(PAIR_HEADS, tuple(_pair(pair, bool(library.versions)) for pair in pairs))


def _row(step: int, skill: Skill) -> Row:
    values = (
        Value(str(step)),
        Value("every task" if skill.task_class == GENERAL else skill.task_class),
        Value(f"{skill.uses:,}" if skill.phrase else NOTHING),
        Value(f"{len(skill.failures):,}"),
        Value(skill.why),
    )
    return Row(skill.text, values, ARROW.join(skill.phrase))


def _pair(pair: Correspondence, has_library: bool) -> Row:
    if pair.uses is None:
        known = Value("no dictionary")
    elif pair.rank is None:
        known = Value("no")
    else:
        known = Value(f"{pair.uses:,}×", f"place {pair.rank} by uses")
    if not has_library:
        return Row(ARROW.join(pair.phrase), (known, Value("no library"), Value(NOTHING)), pair.printed)
    made = Value("no") if pair.step is None else Value(f"since step {pair.step}", ", ".join(pair.classes))
    said = (
        Value(pair.closest, f"{pair.overlap:.0%} of the words in common") if pair.closest else Value(NOTHING)
    )
    return Row(ARROW.join(pair.phrase), (known, made, said), pair.printed)
