"""A catalogue's answers about its files, about an episode, and about related episodes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from skillpress.core.rollout_files import rollout_frame, write_rollouts
from skillpress.core.trajectory import Trajectory, WeightSpan
from skillpress.reports.viewer import catalogue as catalogues
from skillpress.reports.viewer import search
from skillpress.reports.viewer.catalogue import RolloutCatalogue
from skillpress.reports.viewer.phrases import KnownPhrases
from skillpress.reports.viewer.query import parse
from skillpress.reports.viewer.records import SAME_TASK, Has, PageLimits
from skillpress.reports.viewer.source import SourceFiles
from skillpress.training.loop.describing.trained_episodes import ADVANTAGE_SCHEMA, TrainedEpisodes
from tests.support.reports.viewer_samples import HOSTILE, hostile, ordinary, tasks

EPISODES = [(0, each) for each in ordinary()] + [(1, each) for each in hostile()]


def test_what_is_open_is_said_with_all_values_to_filter_by(catalogue: RolloutCatalogue) -> None:
    about = catalogue.about()
    played = [each for _, each in EPISODES]
    assert [source.episodes for source in about.sources] == [len(ordinary()), len(HOSTILE)]
    assert [source.steps for source in about.sources] == [
        sum(len(each.steps) for each in part) for part in (ordinary(), hostile())
    ]
    assert [source.environment for source in about.sources] == ["countdown", "countdown"]
    assert about.policies == tuple(sorted({each.policy for each in played}))
    assert about.outcomes == tuple(sorted({each.outcome for each in played}))
    assert about.strata == tuple(sorted({task.stratum for task in tasks()}))
    assert (about.versions, about.splits) == ((0, 30), ("test", "train"))
    assert about.has == Has(skills=True, dictionary=True, advantages=False, tokens=True)


def test_siblings_are_its_group_and_the_others_of_its_task_stand_apart(catalogue: RolloutCatalogue) -> None:
    names = [catalogue.name(place) for place in range(len(EPISODES))]
    for place, (source, played) in enumerate(EPISODES):
        told = catalogue.episode(names[place])
        same = [
            (names[other], (at, each.policy, each.group_id) == (source, played.policy, played.group_id))
            for other, (at, each) in enumerate(EPISODES)
            if each.task_id == played.task_id and other != place
        ]
        assert [row.id for row in told.siblings] == [name for name, sibling in same if sibling]
        assert [row.id for row in told.same_task] == [name for name, sibling in same if not sibling][
            :SAME_TASK
        ]


def test_an_episode_is_told_as_it_was_played(catalogue: RolloutCatalogue) -> None:
    for place, played in enumerate(ordinary()):
        told = catalogue.episode(catalogue.name(place))
        assert told.first_observation == played.first_observation
        for found, decision in zip(told.decisions, played.decisions, strict=True):
            assert (found.thought, found.action or "") == (decision.thought, decision.action)
            assert (found.observation, found.invalid) == (decision.observation, decision.invalid)
            assert tuple(token for _, token, _ in found.response_tokens) == decision.response_ids
            assert [part.value for part in found.reward_parts] == [p.value for p in decision.reward_parts]
            assert found.reward == pytest.approx(decision.reward)
            assert [s.version for s in found.weight_spans] == [s.version for s in decision.weight_spans]
        assert [found.summary for found in told.decisions].count(True) == len(played.summaries)
        prompts = catalogue.prompts(catalogue.name(place), PageLimits())
        asked = [tuple(token for _, token in prompt.tokens) for prompt in prompts]
        assert asked == [decision.prompt_ids for decision in played.decisions]


@pytest.mark.parametrize(
    ("played_by", "spans", "told"), [(4, [0, 0], []), (4, [3, 4], [3, 4]), (4, [0, 4], [0, 4]), (0, [0], [0])]
)
def test_an_engine_that_was_given_its_weights_once_says_nothing_of_their_step(
    played_by: int, spans: list[int], told: list[int], tmp_path: Path
) -> None:
    first = ordinary()[0]
    step = replace(
        first.steps[0],
        weight_spans=tuple(WeightSpan(each, place, place + 1) for place, each in enumerate(spans)),
    )
    episode = replace(first, steps=(step,), summaries=(), policy_version=played_by)
    write_rollouts(tmp_path / "one.parquet", [episode])
    files = SourceFiles(name="one", rollouts=tmp_path / "one.parquet")
    found = RolloutCatalogue("one", [files], KnownPhrases()).episode("0-0")
    assert [span.version for span in found.decisions[0].weight_spans] == told
    assert found.version == played_by


def test_texts_are_cut_at_the_limit_with_their_length(catalogue: RolloutCatalogue) -> None:
    longest = next(place for place, (_, each) in enumerate(EPISODES) if len(each.first_observation) > 10**6)
    told = catalogue.episode(catalogue.name(longest))
    assert (len(told.first_observation), told.first_observation_cut) == (100_000, 1_048_576)
    for decision in told.decisions:
        assert {len(decision.thought), len(decision.action or ""), len(decision.observation)} == {100_000}
        assert {decision.thought_cut, decision.action_cut, decision.observation_cut} == {1_048_576}


def test_a_search_that_is_not_at_its_end_says_so(
    catalogue: RolloutCatalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "STRETCH", 20)
    monkeypatch.setattr(search, "MOMENT", 0.0)
    query = parse([("text", "helps towards"), ("source", "0"), ("limit", "500")])
    pages = [catalogue.page(query)]
    while not pages[-1].complete:
        pages.append(catalogue.page(query))
    assert len(pages) > 2
    totals, progress = [page.total for page in pages], [page.progress for page in pages]
    assert totals == sorted(totals) and progress == sorted(progress)
    assert (totals[-1], progress[-1]) == (len(ordinary()), 1.0)


def test_few_searches_are_kept(catalogue: RolloutCatalogue) -> None:
    for number in range(catalogues.SEARCHES_KEPT + 5):
        catalogue.page(parse([("text", f"text {number}")]))
    assert len(catalogue._searches) == catalogues.SEARCHES_KEPT


def trained(folder: Path, episodes: list[Trajectory]) -> TrainedEpisodes:
    """Each decision has its position as its advantage."""
    files = TrainedEpisodes(folder / "training.parquet", folder / "training_advantages.parquet")
    rows = rollout_frame(episodes)
    known = {"advantage": pl.int_range(pl.len()).cast(pl.Float64)}
    lessons = [known.get(name, pl.col(name) if name in rows.columns else pl.lit(None, kind)).alias(name)
               for name, kind in ADVANTAGE_SCHEMA.items()]  # fmt: skip
    files.write(episodes, rows.select(lessons))
    return files


def test_every_decision_has_the_advantage_of_its_row(tmp_path: Path) -> None:
    played = ordinary()[:9]
    files = trained(tmp_path, played)
    source = SourceFiles(name="training", rollouts=files.rollouts, advantages=files.advantages)
    opened = RolloutCatalogue("training", [source], KnownPhrases())
    assert opened.about().has.advantages
    first = 0
    for place, each in enumerate(played):
        told = opened.episode(opened.name(place))
        expected = [float(row) for row in range(first, first + len(each.decisions))]
        assert [decision.advantage for decision in told.decisions] == expected
        assert told.advantage == sum(expected) / len(expected)
        first += len(each.decisions)
