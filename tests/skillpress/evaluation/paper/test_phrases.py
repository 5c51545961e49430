"""Tables 10 and 11: phrases of the dictionary fitted to the successes and of the last training step's."""

from __future__ import annotations

import polars as pl
import pytest

from skillpress.core.rollout_files import ROLLOUT_SCHEMA
from skillpress.evaluation.paper.alfworld.tables import NAMED_SKILLS
from skillpress.evaluation.paper.layout import paper_row
from skillpress.evaluation.paper.method_episodes import MethodEpisodes
from skillpress.evaluation.paper.phrases import membership_lines, most_used, phrase_lines
from skillpress.evaluation.statistics import evaluation_steps

NOTHING = evaluation_steps(pl.DataFrame(schema=ROLLOUT_SCHEMA))

SHORT, LONG, OTHER = ("Transport", "Deliver"), ("Explore", "Take", "Transport", "Deliver"), ("Take", "Take")


@pytest.fixture
def methods():
    """GRPO on one seed, segcost on two, and a start without training."""
    none = MethodEpisodes(NOTHING, {})
    return {
        "vanilla": none,
        "grpo": MethodEpisodes(NOTHING, {}, last_dictionaries=[{OTHER: 3}]),
        "segcost": MethodEpisodes(NOTHING, {}, last_dictionaries=[{SHORT: 5, LONG: 1}, {SHORT: 2, OTHER: 6}]),
    }


FITTED = {"vanilla": ({}, 0), "grpo": ({LONG: 9}, 40), "segcost": ({SHORT: 7}, 50)}


def test_table_10_has_the_fitted_dictionary_and_beside_it_the_last_steps(methods):
    fitted, last = phrase_lines("alfworld", "ALFWorld", FITTED, methods)
    assert (
        fitted.cells["segcost"].text == "Transport → Deliver (7×)" and fitted.cells["segcost"].episodes == 50
    )
    assert last.cells["segcost"].text == (
        "Transport → Deliver (7×); Take → Take (6×); Explore → Take → Transport → Deliver (1×)"
    )
    assert last.cells["segcost"].episodes is None, "the buffer's sequences are not episodes"
    assert (fitted.cells["vanilla"].text, last.cells["vanilla"].text) == ("none", "")
    assert fitted.cells["round_length"].text == last.cells["round_length"].text == ""


def test_table_11_says_of_each_phrase_whether_it_is_in_the_two_dictionaries(methods):
    lines = {line.key: line for line in membership_lines("alfworld", tuple(NAMED_SKILLS), FITTED, methods)}
    assert len(lines) == 2 * 5

    def row(key):
        return {method: lines[key].cells[method].text for method in ("vanilla", "grpo", "segcost")}

    assert row("fitted_transport_deliver") == {"vanilla": "no", "grpo": "no", "segcost": "yes"}
    assert row("fitted_explore_take_transport_deliver") == {"vanilla": "no", "grpo": "yes", "segcost": "no"}
    assert row("last_step_transport_deliver") == {"vanilla": "", "grpo": "no", "segcost": "2 of 2 seeds"}
    long = lines["last_step_explore_take_transport_deliver"].cells["segcost"]
    assert (long.text, long.value) == ("1 of 2 seeds", 0.5)
    assert {line.cells["segcost"].paper for line in lines.values()} == {"yes"}


def test_the_five_phrases_are_table_11s():
    assert len(set(NAMED_SKILLS)) == 5
    for phrase in NAMED_SKILLS:
        assert paper_row(11, "alfworld", f"fitted_{'_'.join(phrase).lower()}")["segcost"] == "yes"


def test_phrases_of_equal_use_stand_in_the_order_of_their_skills():
    assert most_used({("B", "A"): 2, ("A", "B"): 2, ("A", "A"): 3}) == "A → A (3×); A → B (2×); B → A (2×)"
    assert most_used({}) == "none"
