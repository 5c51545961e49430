"""How episodes are cut, what that costs, and which of them use a phrase, compared with the dictionary
itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from skillpress.core.rollout_files import write_rollouts
from skillpress.environments.section import projection_without_keys
from skillpress.reports.viewer.catalogue import RolloutCatalogue
from skillpress.reports.viewer.phrases import KnownPhrases
from skillpress.reports.viewer.query import parse
from skillpress.reports.viewer.records import ViewedEpisode
from skillpress.reports.viewer.source import SourceFiles
from tests.support.reports.viewer_samples import dictionary, ordinary, tasks

TASKS = {task.task_id: task for task in tasks()}
FITTED = dictionary()


@pytest.fixture(scope="module")
def episodes(catalogue: RolloutCatalogue) -> list[ViewedEpisode]:
    return [catalogue.episode(catalogue.name(place)) for place in range(len(ordinary()))]


def test_skills_are_those_of_the_environments_projection(episodes: list[ViewedEpisode]) -> None:
    projection = projection_without_keys("countdown")
    for told, played in zip(episodes, ordinary(), strict=True):
        taken = [decision.skills for decision in told.decisions if not decision.summary]
        assert tuple(taken) == projection(TASKS[played.task_id], played)
        assert all(decision.skills == () for decision in told.decisions if decision.summary)


def test_a_cut_covers_the_skills_with_as_few_phrases_as_the_dictionary_needs(
    episodes: list[ViewedEpisode],
) -> None:
    for told in episodes:
        steps = [decision for decision in told.decisions if not decision.summary]
        skills = [skill for decision in steps for skill in decision.skills]
        assert told.cut is not None
        assert [skill for phrase in told.cut for skill in phrase.skills] == skills
        assert sum(phrase.cost for phrase in told.cut) == told.cost == FITTED.cost(skills)
        for phrase in told.cut:
            assert FITTED.phrases[phrase.phrase] == phrase.skills
            inside = steps[phrase.first_step : phrase.last_step + 1]
            assert tuple(skill for decision in inside for skill in decision.skills) == phrase.skills


def test_a_phrase_finds_the_episodes_whose_cut_has_it(
    catalogue: RolloutCatalogue, episodes: list[ViewedEpisode]
) -> None:
    known = catalogue.dictionary()
    assert [phrase.phrase for phrase in (*known.singles, *known.phrases)] == [*range(len(FITTED.phrases))]
    for phrase in (*known.singles, *known.phrases):
        users = [told.id for told in episodes if any(each.phrase == phrase.phrase for each in told.cut or ())]
        page = catalogue.page(parse([("phrase", str(phrase.phrase)), ("source", "0"), ("limit", "500")]))
        assert [row.id for row in page.rows] == users
        assert phrase.uses == FITTED.counts[phrase.phrase]


def test_a_dictionary_of_other_skills_is_laid_aside(tmp_path: Path) -> None:
    other = replace(FITTED, alphabet=("a",), phrases=(("a",),), counts=(1,))
    write_rollouts(tmp_path / "some.parquet", ordinary()[:3])
    files = SourceFiles(name="some", rollouts=tmp_path / "some.parquet", tasks=TASKS)
    opened = RolloutCatalogue("some", [files], KnownPhrases(other))
    opened.wait()
    told = opened.episode("0-0")
    assert (told.cost, told.cut, opened.about().skills_progress) == (None, None, None)
    assert any(decision.skills for decision in told.decisions)


def test_without_tasks_there_are_no_skills(tmp_path: Path) -> None:
    write_rollouts(tmp_path / "some.parquet", ordinary()[:3])
    opened = RolloutCatalogue(
        "some", [SourceFiles(name="some", rollouts=tmp_path / "some.parquet")], KnownPhrases(FITTED)
    )
    told = opened.episode("0-1")
    assert (told.cost, told.cut, told.description, told.split) == (None, None, None, None)
    assert not opened.about().has.skills
    assert opened.page(parse([("min_cost", "0")])).total == 0


def test_episodes_of_unknown_tasks_are_shown_without_a_cost(tmp_path: Path) -> None:
    write_rollouts(tmp_path / "some.parquet", ordinary()[:8])
    known = {name: task for name, task in TASKS.items() if name != "task-000"}
    files = SourceFiles(name="some", rollouts=tmp_path / "some.parquet", tasks=known)
    opened = RolloutCatalogue("some", [files], KnownPhrases(FITTED))
    opened.wait()
    assert [row.cost is None for row in opened.page(parse([])).rows] == [True] * 4 + [False] * 4
    assert opened.about().skills_progress == 1.0


def test_a_phrases_life_has_every_step_of_training() -> None:
    learned = FITTED.learned[0]
    later = (FITTED.alphabet[0],) * 2
    assert later not in FITTED.phrases
    told = KnownPhrases(FITTED, {1: {learned: 3}, 2: {later: 5}}, {learned: 1.5}).told([])
    by_skills = {phrase.skills: phrase for phrase in told.phrases}
    assert by_skills[learned].history == ((1, 3), (2, 0)) and by_skills[learned].bits == 1.5
    assert by_skills[later].history == ((1, 0), (2, 5)) and by_skills[later].phrase == len(FITTED.phrases)
    assert all(phrase.history is None for phrase in told.singles)
