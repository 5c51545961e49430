"""The dictionary's figures draw the numbers of the MDL report and of the history."""

from __future__ import annotations

import pytest

from skillpress.evaluation.analysis.drift import drift
from skillpress.evaluation.analysis.mdl_report import parts
from skillpress.reports.report.data import ReportData
from skillpress.reports.report.dictionary_figures import bits, lifetimes, savings, similarity
from skillpress.reports.report.dictionary_section import panels

AB, BC = ("A", "B"), ("B", "C")


def test_the_two_parts_add_up_to_the_description_length(experiment):
    dictionary = experiment.dictionary
    stored, spent = bits(parts(dictionary)).data
    assert stored.x[1] + spent.x[1] == pytest.approx(dictionary.description_length)
    assert stored.y[1] == f"{len(dictionary.phrases)} phrases"


def test_every_learned_phrase_has_one_bar_of_what_it_saves(experiment):
    learned = experiment.phrases.filter(experiment.phrases["length"] > 1)
    bars = [
        (rank, height)
        for trace in savings(learned).data
        for rank, height in zip(trace.x, trace.y, strict=True)
    ]
    assert [rank for rank, _ in sorted(bars)] == list(range(1, len(learned) + 1))
    assert [height for _, height in sorted(bars)] == sorted(learned["bits_saved"], reverse=True)


def test_a_bar_spans_the_steps_that_a_phrase_lives_through():
    figure = lifetimes({1: {AB: 1, BC: 1}, 2: {AB: 1}, 3: {AB: 1, BC: 1}})
    (bars,) = figure.data
    assert figure.layout.yaxis.ticktext == ("A → B", "B → C")
    spans = sorted(zip(bars.y, bars.base, bars.x, strict=True))
    assert spans == [(0, 0.5, 3), (1, 0.5, 1), (1, 2.5, 1)]


def test_steps_without_a_neighbour_are_left_out_of_the_similarity():
    (previous,) = similarity(drift({1: {AB: 1}, 2: {AB: 1}, 4: {AB: 1}})).data
    assert (previous.x, previous.y) == ((2,), (1.0,))


def test_without_data_there_are_no_panels(experiment):
    assert list(panels(ReportData("title", experiment.policies))) == []


def test_a_dictionary_without_learned_phrases_and_a_history_of_none_are_shown_too(experiment):
    data = ReportData("title", experiment.policies, dictionary=experiment.dictionary, history={1: {}, 2: {}})
    assert [panel.name for panel in panels(data)] == ["bits", "coverage", "similarity"]
