"""Turn :class:`Content` into the text of one HTML page that loads nothing and runs no script.

Jinja escapes every text, and ``visible.py`` makes hidden characters visible. A policy in the page forbids
scripts, so that even markup that slipped through could not run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from skillpress.core.visible import line, visible
from skillpress.evaluation.analysis.mdl_report import coverage, parts
from skillpress.reports.skills_page.comparison import GroupComparison, PhraseContrast
from skillpress.reports.skills_page.content import Content
from skillpress.reports.skills_page.episodes import CONTRASTS, ROUTINES, TraceEpisode
from skillpress.reports.skills_page.understood import left_out, outcome_lines, skill_names
from skillpress.reports.skills_page.written import WrittenSkill
from skillpress.skills.dictionary import Skills

_SHOW = Path(str(files("skillpress.reports")))  # a path, which Jinja's loader of several folders needs
COLORS = 8
"""The number of cell fills in ``skills.css``; the alphabet's skills take them in turn."""
LONGEST_CELL = 28
BAD_SHOWN, UNLABELLED_SHOWN, FILES_SHOWN, TOOLS_SHOWN = 20, 12, 12, 12

TEMPLATES = Environment(
    loader=FileSystemLoader((_SHOW / "skills_page" / "templates", _SHOW / "report" / "templates")),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


@dataclass(frozen=True)
class Cell:
    """One skill of a phrase."""

    name: str
    color: int


@dataclass(frozen=True)
class Bar:
    """An interval between -1 and 1 on an axis from ``-reach`` to ``reach``, in percent of its width."""

    left: float
    width: float
    point: float


def render(
    content: Content,
    episodes: Sequence[TraceEpisode],
    title: str,
    projected_by: str,
    viewer: str | None,
    *,
    written: Sequence[WrittenSkill] = (),
) -> str:
    """The page, as the text of an HTML file.

    Args:
        episodes: the traces that the page shows.
        title: the name of the traces.
        projected_by: the source of the steps' skills, in words.
        viewer: address of a viewer of the same rollout files; None if there is none.
        written: the skills that were written as SKILL.md.
    """
    log = content.log
    passed_over = {passed.file for passed in log.passed_over}
    files = [line(str(path), 160) for path in log.files if str(path) not in passed_over]
    color = {skill: number % COLORS for number, skill in enumerate(log.alphabet)}
    known = {episode.position: episode for episode in episodes}
    return TEMPLATES.get_template("skills.html.j2").render(
        content=content,
        log=log,
        title=line(title, 120),
        projected_by=line(projected_by, 120),
        viewer=viewer,
        cells=lambda phrase: _cells(phrase, color),
        cell=lambda skill: _cells((skill,), color)[0],
        bar=_bar,
        reach=_reach,
        number=_number,
        percent=_percent,
        points=_points,
        line=line,
        visible=visible,
        known=known,
        episodes=episodes,
        written=written,
        routines=content.routines[:ROUTINES],
        most_bits=max((routine.bits_saved for routine in content.routines), default=1.0),
        contrasts_shown=CONTRASTS,
        parts=list(parts(content.dictionary).iter_rows(named=True)),
        lengths=list(coverage(content.dictionary).iter_rows(named=True)),
        windows=_windows(content),
        counts=skill_names(log),
        tools=[(line(name, 60) or "(no name)", count) for name, count in log.tools.most_common(TOOLS_SHOWN)],
        outcomes=outcome_lines(log),
        left_out=list(left_out(log)),
        warnings=[line(warning, 400) for warning in log.warnings],
        steps=log.steps,
        successes=sum(trace.success is True for trace in log.traces),
        failures=sum(trace.success is False for trace in log.traces),
        bad_shown=log.bad[:BAD_SHOWN],
        unlabelled=[(name, count) for name, count in log.unlabelled.most_common(UNLABELLED_SHOWN)],
        files=files[:FILES_SHOWN],
        files_read=len(files),
        passed_over=log.passed_over[:FILES_SHOWN],
    )


def _cells(phrase: Skills, color: dict[str, int]) -> list[Cell]:
    return [Cell(line(skill, LONGEST_CELL), color.get(skill, 0)) for skill in phrase]


def _reach(comparison: GroupComparison) -> float:
    """The longest distance of a shown interval from 0."""
    shown = comparison.contrasts[:CONTRASTS]
    return max((max(abs(c.low), abs(c.high)) for c in shown), default=1.0) or 1.0


def _bar(contrast: PhraseContrast, reach: float) -> Bar:
    def place(value: float) -> float:
        return round(50 + 50 * value / reach, 2)

    return Bar(
        place(contrast.low), round(place(contrast.high) - place(contrast.low), 2), place(contrast.difference)
    )


def _windows(content: Content) -> list[dict[str, object]]:
    if content.over_time is None:
        return []
    rows = content.over_time.changes.iter_rows(named=True)
    return [{**row, "traces": traces} for row, traces in zip(rows, content.over_time.traces, strict=True)]


def _number(value: float, digits: int = 0) -> str:
    return f"{value:,.{digits}f}".replace("-", "−")


def _percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f}%".replace("-", "−")


def _points(difference: float) -> str:
    """A difference between shares, in percentage points with its sign."""
    text = f"{100 * difference:+.1f}"
    return text.replace("-", "−")
