"""The report's section on a skill library, for runs that have one, and for pairs that the paper names."""

from __future__ import annotations

import dataclasses

from skillpress.evaluation.paper.alfworld.tables import NAMED_SKILLS
from skillpress.evaluation.paper.correspondence import correspondences
from skillpress.reports.report.data import ReportData
from skillpress.reports.report.page import render_report
from skillpress.skills.library.library import GENERAL, Skill, SkillLibrary, Version

SKILL = Skill("look <b>, then take", GENERAL, uses=3, phrase=("Look", "Take"), why="because", failures=("a",))
LIBRARY = SkillLibrary((Version(step=5, failures=("a",), added=(SKILL,)),))


def test_the_page_shows_what_the_library_holds_and_why(experiment: ReportData) -> None:
    page = render_report(dataclasses.replace(experiment, library=LIBRARY))
    assert "1 evolution added 1 skill." in page and "look &lt;b&gt;, then take" in page and "because" in page
    assert "Closest skill by a teacher" not in page, "the paper names no pairs of Countdown"


def test_where_the_paper_names_pairs_a_run_without_a_library_says_that_it_has_none(
    experiment: ReportData,
) -> None:
    assert 'id="library"' not in render_report(experiment)
    pairs = correspondences(NAMED_SKILLS, {("Transport", "Deliver"): 2}, SkillLibrary())
    page = render_report(dataclasses.replace(experiment, correspondences=pairs))
    assert page.count("no library") == 5 and "Carry-and-place" in page and "place 1 by uses" in page
