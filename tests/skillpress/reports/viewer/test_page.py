"""The page in a user's hands, whether a server or the document itself supplies the data."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

EFFECTS_COME_LATE = """
    window.requestAnimationFrame = () => 0;
    const later = window.setTimeout;
    window.setTimeout = (run, pause, ...rest) => later(run, pause === 35 ? 400 : pause, ...rest);
"""
"""A browser that draws late: preact runs its passive effects after a frame, or else after 35 ms."""


def test_the_list_shows_every_episode_with_its_facts(both, watch):
    watched = watch(both)
    page = watched.go("episodes")
    assert watched.texts(".total") == ["108 episodes"]
    assert watched.texts(".pages span:not(.button)") == ["1–50 of 108"]
    first = page.locator("table.episodes tbody tr").first
    expect(first).to_contain_text("task-000")
    assert page.locator("table.episodes tbody tr").count() == 50


def test_an_address_without_a_place_opens_on_the_trained_policy_and_one_with_a_place_there(both, watch):
    watched = watch(both)
    watched.page.goto(both)
    watched.settled()
    assert watched.place.startswith("episodes?") and "policy=trained" in watched.place
    shown = watched.page.locator("table.episodes tbody tr").all_inner_texts()
    assert shown and all("trained" in row for row in shown)
    watched.go("episodes")
    assert watched.texts(".total") == ["108 episodes"]


def test_ticked_values_are_in_the_address_and_a_chip_takes_each_away(both, watch):
    watched = watch(both)
    page = watched.go("episodes")
    page.get_by_role("group", name="Policy").get_by_label("trained").check()
    page.get_by_label("Steps, at least").fill("3")
    page.get_by_label("Steps, at least").blur()
    watched.until("location.hash.includes('min_steps=3')")
    watched.settled()
    assert watched.place == "episodes?policy=trained&min_steps=3"
    assert [text.split(" ×")[0] for text in watched.texts(".chips button")] == [
        "policy trained", "steps ≥ 3", "Clear all",
    ]  # fmt: skip
    page.locator(".chips button").first.click()
    watched.until("!location.hash.includes('policy')")
    assert watched.place == "episodes?min_steps=3"


def test_a_heading_sorts_and_sorts_the_other_way(both, watch):
    watched = watch(both)
    page = watched.go("episodes?policy=trained")
    heading = page.get_by_role("columnheader", name="Steps")
    for direction, order in (("descending", lambda found: -found), ("ascending", lambda found: found)):
        heading.get_by_role("button").click()
        expect(heading).to_have_attribute("aria-sort", direction)
        watched.settled()
        steps = page.locator("table.episodes tbody tr td:nth-child(8)").all_inner_texts()
        assert [int(each) for each in steps] == sorted(map(int, steps), key=order)


def test_words_are_found_while_they_are_typed_and_marked_where_they_stand(both, watch):
    watched = watch(both)
    page = watched.go("episodes?policy=trained")
    page.get_by_role("searchbox").fill("SOLVED")
    watched.until("location.hash.includes('text=SOLVED')")
    watched.settled()
    watched.until("!document.querySelector('.total').innerText.includes('48')")
    page.locator("a.row").first.click()
    watched.settled()
    last = page.locator(".timeline a").last
    last.click()
    expect(page.locator("mark").first).to_have_text("Solved")


def test_a_step_shows_all_that_is_known_of_it(both, watch):
    watched = watch(both)
    page = watched.go("episode/0-1/5")
    assert watched.texts(".chosen h2") == ["Step 5"]
    assert watched.texts(".part h3")[-4:] == ["Thought", "Action", "Observation", "Response, token by token"]
    assert watched.texts(".why") == ["Invalid: missing_action"]
    page.get_by_role("button", name="Prompt").click()
    watched.settled()
    prompt = page.locator(".prompt .text").inner_text()
    page.get_by_role("button", name="Tokens", exact=True).click()
    tokens = page.locator(".prompt .tokens bdi").all_text_contents()
    assert len(tokens) == 12 and "".join(tokens) == prompt
    facts = " ".join(watched.texts(".facts"))
    assert "−0.125" in facts and "step 0 (tokens 0–0), then step 1 (tokens 1–1)" in facts


def test_tokens_have_their_probability_in_a_table_too(both, watch):
    watched = watch(both)
    page = watched.go("episode/0-1/5")
    assert page.locator(".words .tokens .token").count() == 2
    assert "least likely" in watched.texts(".part .summary")[0]
    page.get_by_role("button", name="As a table").click()
    assert page.locator(".figures tbody tr").count() == 2
    assert page.locator(".figures thead th").all_inner_texts() == [
        "Place", "Token", "Number", "log p", "Probability",
    ]  # fmt: skip


def test_a_summary_is_a_decision_of_its_own(both, watch):
    watched = watch(both)
    watched.go("episode/0-1/s6")
    assert watched.texts(".chosen h2") == ["Summary before step 6"]
    assert "Summary of the past" in watched.texts(".part h3") and "Action" not in watched.texts(".part h3")


def test_the_strip_has_a_box_per_phrase_and_a_cell_per_step(both, catalogue, watch):
    watched = watch(both)
    page = watched.go("episode/0-1")
    episode = catalogue.episode("0-1")
    assert page.locator(".strip .box").count() == episode.cost == len(episode.cut)
    assert page.locator(".strip .cell").count() == episode.steps
    page.locator(".strip .box a[href*=phrase]").first.click()
    watched.settled()
    assert watched.texts("h1") == [f"Phrase {episode.cut[0].phrase}"]


def test_a_group_stands_side_by_side_in_the_order_of_its_rollouts(both, watch):
    watched = watch(both)
    page = watched.go("episode/0-2")
    page.get_by_role("link", name="All 4 side by side").click()
    watched.settled()
    assert watched.place == "group/0-2"
    assert watched.texts(".beside thead a") == [f"Episode 0-{number}" for number in range(4)]
    assert page.locator(".beside .parting").count() == 1


def test_two_policies_stand_side_by_side_on_the_same_task(both, watch):
    watched = watch(both)
    page = watched.go("episode/0-2")
    page.get_by_role("region", name="The same task, played by others").get_by_role(
        "link", name="side by side"
    ).first.click()
    watched.settled()
    assert watched.place == "compare/0-2/0-48"
    assert page.locator(".beside tr", has_text="Policy").locator("td").all_inner_texts() == [
        "start",
        "trained",
    ]


def test_the_dictionary_tells_of_every_phrase_and_its_life(both, catalogue, watch):
    watched = watch(both)
    page = watched.go("dictionary")
    known = catalogue.dictionary()
    assert page.locator("table.phrases tbody tr").count() == len(known.phrases) + len(known.singles)
    life = page.locator("table.phrases svg").last.get_attribute("aria-label")
    assert life == "in the dictionary at 3 of 6 training steps, first at 0, last at 4" or "6 of 6" in life
    page.get_by_label("Skill", exact=True).fill("rollback")
    assert all("Rollback" in row for row in watched.texts("table.phrases tbody th"))
    page.locator("a.row").first.click()
    watched.settled()
    assert page.locator("table.episodes tbody tr").count() > 0


@pytest.mark.parametrize(
    "place",
    ["episodes?policy=trained&sort=steps&descending=1", "episode/0-1/5", "group/0-2", "compare/0-2/0-48",
     "dictionary", "phrase/0"],
)  # fmt: skip
def test_every_address_shows_the_same_after_reloading(both, watch, place):
    watched = watch(both)
    page = watched.go(place)
    before = page.locator("main").inner_text()
    page.reload()
    watched.settled()
    assert watched.place == place
    assert page.locator("main").inner_text() == before


def test_the_way_back_leads_to_the_list_as_it_was(both, watch):
    watched = watch(both)
    page = watched.go("episodes?outcome=stuck&sort=steps")
    page.locator("a.row").nth(3).click()
    watched.settled()
    watched.press("j", "j")
    page.go_back()
    watched.settled()
    assert watched.place == "episodes?outcome=stuck&sort=steps"


def test_what_there_is_not_is_said_in_words(alone, watch):
    for place, words in {
        "episode/9-9": 'There is no episode "9-9" here.',
        "phrase/9999": "The dictionary has no such phrase.",
        "episodes?colour=red": 'there is no filter "colour"',
        "episodes?min_steps=many": 'min_steps must be a number, not "many"',
        "nowhere": "No such page",
        "episodes?text=nothing+like+it": "No episode passes these filters.",
        "episode/0-1/99": "This episode has no step 99; here is its first.",
    }.items():
        assert words in watch(alone).go(place).locator("main").inner_text()


def test_a_server_that_is_gone_is_said_in_words(served, browser, watch):
    watched = watch(served)
    page = watched.go("episodes")
    page.route("**/api/**", lambda route: route.abort())
    page.locator("a.row").first.click()
    expect(page.get_by_role("alert")).to_contain_text("The server does not answer.")
    assert all("ERR_FAILED" in trouble for trouble in watched.wrong)
    watched.wrong.clear()


def test_keys_lead_through_the_list(both, watch):
    watched = watch(both)
    page = watched.go("episodes?policy=trained")

    def focused():
        return page.evaluate("document.activeElement.closest('tr')?.dataset.id")

    watched.press("j", "j", "ArrowDown", "k")
    assert focused() == "0-49"
    watched.press("Enter", to="episode/0-49")
    for key, place in {"n": "0-50", "p": "0-49"}.items():
        watched.press(key, to=f"episode/{place}")
    watched.press("p", to="episode/0-48")
    watched.press("Escape", to="episodes?policy=trained")
    assert focused() == "0-48"


def test_a_key_that_comes_before_the_browser_has_drawn_finds_the_state_of_the_last_one(served, watch):
    watched = watch(served)
    watched.page.add_init_script(EFFECTS_COME_LATE)
    page = watched.go("episodes?policy=trained")
    watched.press("j", "j", "Enter", to="episode/0-49")
    watched.press("n", to="episode/0-50")
    watched.press("p", to="episode/0-49")
    watched.press("p", to="episode/0-48")
    watched.press("Escape", to="episodes?policy=trained")
    assert page.evaluate("document.activeElement.closest('tr')?.dataset.id") == "0-48"


def test_the_next_episode_may_stand_on_the_next_page(both, watch):
    watched = watch(both)
    page = watched.go("episodes")
    page.locator("a.row").last.click()
    watched.settled()
    watched.press("n", to="episode/0-50")
    watched.press("p", to="episode/0-49")


def test_keys_turn_pages(both, watch):
    watched = watch(both)
    watched.go("episodes")
    watched.press("n", "n", "n", to="episodes?offset=100")
    watched.press("p", to="episodes?offset=50")


def test_keys_lead_through_the_steps_without_filling_the_history(both, watch):
    watched = watch(both)
    page = watched.go("episode/0-1")
    entries = page.evaluate("history.length")
    watched.press("j", "ArrowRight", "ArrowLeft", "j", "k", to="episode/0-1/1")
    watched.press(*["j"] * 12, to="episode/0-1/6")
    assert page.evaluate("history.length") == entries
    watched.press("v")
    assert page.locator(".prompt .text").count() == 1
    for key, place in {"c": "group/0-1", "d": "dictionary", "e": "episodes"}.items():
        watched.press(key, to=place)


def test_keys_do_nothing_in_fields_and_help_closes(both, watch):
    watched = watch(both)
    page = watched.go("episodes")
    watched.press("/")
    page.keyboard.type("jn?")
    assert page.get_by_role("searchbox").input_value() == "jn?"
    watched.press("Escape")
    assert page.evaluate("document.activeElement === document.body")
    watched.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    watched.press("d")
    assert not watched.place.startswith("dictionary")
    watched.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_new_view_begins_at_its_heading(both, watch):
    watched = watch(both)
    page = watched.go("episodes")
    page.get_by_role("link", name="Dictionary").click()
    watched.until(
        "document.activeElement.innerText === 'Dictionary' && document.activeElement.tagName === 'H1'"
    )


def test_a_search_that_goes_on_is_asked_again_until_it_is_complete(served, watch):
    """The samples are searched in one go, so the first answers are changed to look like a long search's."""
    watched = watch(served)
    early = [0.37, 0.8]

    def hold_back(route):
        answer = route.fetch()
        told = answer.json() | ({"complete": False, "progress": early.pop(0)} if early else {})
        route.fulfill(response=answer, json=told)

    watched.page.route("**/api/episodes?*", hold_back)
    page = watched.go("episodes?text=solved")
    watched.until("/^[0-9]+ episodes$/.test(document.querySelector('.total').innerText)")
    assert early == []
    assert page.locator("table.episodes tbody tr").count() > 0


def test_skills_that_are_being_worked_out_are_said_to_be_and_then_shown(served, watch):
    watched = watch(served)
    early = [0.5]

    def hold_back(route):
        answer = route.fetch()
        told = answer.json() | ({"skills_progress": early.pop()} if early else {})
        route.fulfill(response=answer, json=told)

    watched.page.route("**/api/about", hold_back)
    page = watched.go("episodes")
    expect(page.get_by_text("Computing skills: 50% …")).to_be_visible()
    expect(page.get_by_text("Computing skills")).to_have_count(0)
    assert early == []
