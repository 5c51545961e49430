"""Episodes that attack the page read like any others: nothing runs, is requested or moves."""

from __future__ import annotations

import json

import pytest

from skillpress.reports.viewer.page_file import self_contained
from tests.support.reports.viewer_browser import SIZES
from tests.support.reports.viewer_samples import HOSTILE

HARMLESS = "[...document.querySelectorAll('a')].every(a => a.getAttribute('href').startsWith('#/'))"
"""A link leads to another place on this page, and nowhere else."""
FOREIGN = "main :is(script, img, b:not(dd > b, .why > b), iframe, object, embed, form, style, link, base)"


def unhurt(watched) -> None:
    """No part of an episode has become part of the page."""
    page = watched.page
    assert "owned" not in page.title()
    assert page.evaluate(HARMLESS)
    assert page.locator(FOREIGN).count() == 0
    assert watched.width <= page.viewport_size["width"]


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_an_episode_that_attacks_is_only_read(both, watch, number):
    watched = watch(both)
    page = watched.go(f"episode/1-{number}")
    watched.press("v", "j")
    page.get_by_role("button", name="Tokens", exact=True).click()
    unhurt(watched)
    shown = page.locator(".part.action .text bdi").text_content()
    expected = HOSTILE[number].splitlines()[0][:8]
    assert shown.startswith(expected) or page.locator(".part.action .unsafe").count() > 0


@pytest.mark.parametrize("width", SIZES)
@pytest.mark.parametrize(
    "place", ["episodes?source=1", "compare/1-0/1-5/1-6/1-9/1-11", "episode/1-11/1", "episode/1-9"]
)
def test_no_text_widens_the_page(both, watch, width, place):
    watched = watch(both, width)
    watched.go(place)
    unhurt(watched)


def test_words_of_an_attack_can_be_searched_and_are_only_marked(both, watch):
    watched = watch(both)
    page = watched.go("episodes")
    page.get_by_role("searchbox").fill("<script>")
    watched.until("location.hash.includes('text=')")
    watched.until("document.querySelector('.total').innerText === '3 episodes'")
    page.locator("a.row").first.click()
    watched.settled()
    assert page.locator("mark").first.inner_text() == "<script>"
    unhurt(watched)


def test_a_megabyte_of_one_letter_is_read_in_portions(served, catalogue, watch):
    episode = catalogue.episode("1-11")
    assert episode.decisions[0].observation_cut == 1_048_576
    watched = watch(served, 400)
    page = watched.go("episode/1-11/1")
    observation = page.locator(".part", has=page.get_by_role("heading", name="Observation", exact=True))
    assert len(observation.locator("bdi").text_content()) == 4_000
    for _ in range(5):
        observation.get_by_role("button", name="Show more").click()
    assert len(observation.locator("bdi").text_content()) == 100_000
    assert observation.locator(".cut").inner_text() == "Cut here: 100,000 of 1,048,576 characters."
    unhurt(watched)


def test_the_direction_of_a_text_stays_within_it(alone, watch):
    page = watch(alone).go("episode/1-6")
    directions = page.evaluate(
        "[...document.querySelectorAll('bdi, .text')].map(each => getComputedStyle(each).unicodeBidi)"
    )
    assert set(directions) == {"isolate"}
    assert "RLO" in page.locator(".part.action .unsafe").all_inner_texts()


def test_an_address_that_attacks_is_only_read(both, watch):
    for place in (
        "episode/<img src=x onerror=alert(1)>",
        "phrase/%3Cscript%3Ealert(1)%3C%2Fscript%3E",
        "compare/javascript:alert(1)/%00",
        "episodes?text=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E",
        "%E0%A4%A",
    ):
        watched = watch(both)
        watched.page.goto(f"{watched.address}#/{place}")
        watched.settled()
        unhurt(watched)
        watched.wrong = [trouble for trouble in watched.wrong if "404" not in trouble]


def test_markup_that_did_get_in_could_not_run(alone, watch):
    """The purpose of the policy: if the page did make markup from a text, the browser would refuse it."""
    watched = watch(alone)
    page = watched.go("episodes")
    attempts = {
        "markup of a string": "document.querySelector('main').innerHTML = '<img src=x>'",
        "a handler": "document.querySelector('main').setAttribute('onclick', 'document.title = 1')",
        "a script": "document.createElement('script').text = 'document.title = 1'",
        "a document of its own": "document.createElement('iframe').srcdoc = '<script>1</script>'",
    }
    for attempt in attempts.values():
        tried = f"() => {{ try {{ {attempt}; }} catch (error) {{ return error.name; }} }}"
        assert page.evaluate(tried) == "TypeError"
    assert len(watched.wrong) == len(attempts)
    watched.wrong.clear()


def test_a_record_in_disguise_is_only_data(watch, tmp_path):
    markup = {"type": "script", "props": {"dangerouslySetInnerHTML": {"__html": "<b>x</b>"}}}
    about = {
        **{
            name: []
            for name in ("sources", "policies", "outcomes", "strata", "reasons", "splits", "versions")
        },
        "has": dict.fromkeys(("skills", "dictionary", "advantages", "tokens"), False),
        "title": json.dumps(markup),
        "note": "__proto__",
        "skills_progress": None,
    }
    data = {"about": about, "episodes": [], "tokens": [], "dictionary": {"phrases": [], "singles": []}}
    path = tmp_path / "episodes.html"
    path.write_text(self_contained(data), encoding="utf-8")
    watched = watch(path.as_uri())
    watched.go("episodes")
    unhurt(watched)
