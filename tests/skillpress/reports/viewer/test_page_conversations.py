"""The calls of an agent that owns its loop, as a tree: sub-agents, a rewritten answer, and a compaction."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from playwright.sync_api import expect

from skillpress.core.rollout_files import write_rollouts
from skillpress.core.trajectory import Step, Trajectory
from skillpress.models.policy.scratch import word_tokenizer
from skillpress.reports.viewer.catalogue import RolloutCatalogue
from skillpress.reports.viewer.embedded import embedded
from skillpress.reports.viewer.page_file import self_contained
from skillpress.reports.viewer.phrases import KnownPhrases
from skillpress.reports.viewer.source import SourceFiles

CALLS = (
    ("you plan", "ask the cook"),
    ("the cook", "taste it"),
    ("the cook taste it more", "salt"),
    ("you taste", "it is good"),
    ("you plan ask the cook salt", "taste it again"),
    ("the cook taste it more salt good", "stop"),
    ("you plan ask the cook salt taste again bad", "more salt"),
    ("so far soup is good", "ready"),
    ("so far soup is good ready stop", "stop"),
    ("the cook taste it bad", "again"),
)
"""Prompt and response. Calls 1, 2 and 5 are one sub-agent's, 3 another's; 6 continues 4 with another text of
its response; 7 follows a compaction; 9 is a second branch of the first sub-agent."""
WORDS = tuple(dict.fromkeys(word for call in CALLS for text in call for word in text.split()))
PARENTS = [None, None, 1, None, 0, 2, 4, None, 7, 1]


def ids(text: str) -> tuple[int, ...]:
    return tuple(word_tokenizer(WORDS)(text)["input_ids"])


def episode(number: int, calls: Sequence[tuple[str, str]]) -> Trajectory:
    steps = tuple(
        Step(ids(prompt), ids(said), (-0.5,) * len(ids(said)), "", said, "", None, ())
        for prompt, said in calls
    )
    return Trajectory("soup", "g", number, steps, True, True, False, "won", 0, 0)


@pytest.fixture(scope="module")
def page_of_calls(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a document with two episodes: the calls above, and those of one conversation."""
    folder = tmp_path_factory.mktemp("calls")
    write_rollouts(folder / "rollouts.parquet", [episode(0, CALLS), episode(1, [CALLS[0], CALLS[4]])])
    word_tokenizer(WORDS).save_pretrained(folder / "tokenizer")
    files = SourceFiles(name="calls", rollouts=folder / "rollouts.parquet", tokenizer=folder / "tokenizer")
    opened = RolloutCatalogue("calls", [files], KnownPhrases())
    told = opened.episode("0-0").decisions
    assert [decision.continues for decision in told] == PARENTS
    assert [place for place, decision in enumerate(told) if decision.exactly] == [2, 4, 5, 8, 9]
    path = folder / "episodes.html"
    path.write_text(self_contained(embedded(opened, range(2))), encoding="utf-8")
    opened.close()
    return path.as_uri()


def test_every_conversation_has_a_lane_and_says_where_it_comes_from(page_of_calls, watch):
    """The second sub-agent is beside the first, which goes on after it. The compaction is in the first lane,
    and the second branch of the first sub-agent beside that sub-agent's."""
    watched = watch(page_of_calls)
    page = watched.go("episode/0-0")
    calls = page.locator(".timeline a")
    lanes = [kinds.split("lane-")[1][0] for kinds in calls.evaluate_all("all => all.map(a => a.className)")]
    assert "".join(lanes) == "0112010002"
    origins = calls.evaluate_all("all => all.map(a => a.querySelector('.from')?.innerText ?? '')")
    assert origins == ["", "new", "", "new", "after 0", "after 2", "after 4", "new", "", "after 1"]
    expect(page.locator(".headline")).to_contain_text("Conversations 4")


def test_a_call_links_to_what_it_continues_and_to_what_continues_it(page_of_calls, watch):
    watched = watch(page_of_calls)
    page = watched.go("episode/0-0/6")
    assert "Continues\nstep 4 with another text of its response" in "\n".join(watched.texts(".facts"))
    page.locator(".facts a").first.click()
    watched.until("location.hash === '#/episode/0-0/4'")
    facts = "\n".join(watched.texts(".facts"))
    assert "step 0" in facts and "another text" not in facts and "Continued by\nstep 6" in facts
    watched.go("episode/0-0/1")
    assert "begins a conversation\nContinued by\nstep 2 step 9" in "\n".join(watched.texts(".facts"))


def test_an_episode_in_line_has_no_lanes(page_of_calls, watch):
    watched = watch(page_of_calls)
    page = watched.go("episode/0-1")
    assert page.locator(".timeline a").count() == 2 and page.locator(".timeline .lane").count() == 0
    assert "Continues" not in "".join(watched.texts(".facts"))


@pytest.mark.parametrize("width", [1280, 400])
def test_lanes_need_no_room_beside_the_page(page_of_calls, watch, width):
    watched = watch(page_of_calls, width)
    watched.go("episode/0-0/6")
    assert watched.width <= width
