"""Log ratios of two policies: sums over turns, the worth of weights, and a plain forward pass."""

from __future__ import annotations

from math import exp
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.trajectory import Step, Summary, TokenIds, Trajectory
from skillpress.evaluation.analysis.trajectory_ratio import (
    Spread,
    by_turn,
    effective_size,
    of_trajectories,
    of_turns,
    turn_table,
)
from skillpress.evaluation.analysis.turn_logprobs import TurnScorer
from skillpress.reports.report.trajectory_figure import _form, _ticks, draw
from tests.support.episodes import made_step, made_trajectory
from tests.support.models.tiny import tiny_policy


def turn(prompt: TokenIds, response: TokenIds) -> Step:
    return made_step(prompt_ids=prompt, response_ids=response, logprobs=(0.0,) * len(response), action="up")


def played(name: str, *turns: Step, summaries: tuple[Summary, ...] = ()) -> Trajectory:
    return made_trajectory(turns, won=True, task_id=name, group_id=f"run-0/{name}", summaries=summaries)


LONG = played("long", turn((3, 4), (5, 6)), turn((3, 4, 5, 6, 7), (8,)), turn((), ()))
SUMMED_UP = played("summed", turn((9,), (4,)), summaries=(Summary(0, turn((9, 9), (7, 7, 7))),))
TRAJECTORIES = (LONG, SUMMED_UP)
TURNS = [step for trajectory in TRAJECTORIES for step in trajectory.decisions]


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_a_turns_log_probability_is_that_of_a_plain_forward_pass(temperature: float) -> None:
    policy = tiny_policy(3)
    found = TurnScorer(policy, temperature)(TURNS)
    for step, logprob in zip(TURNS, found, strict=True):
        if not step.response_ids:
            assert logprob == 0
            continue
        with torch.no_grad():
            logits = policy.model(torch.tensor([step.prompt_ids + step.response_ids])).logits[0]
        places = range(len(step.prompt_ids) - 1, len(step.prompt_ids + step.response_ids) - 1)
        logprobs = torch.log_softmax(logits[list(places)].double() / temperature, dim=-1)
        expected = logprobs[range(len(step.response_ids)), list(step.response_ids)].sum()
        assert logprob == pytest.approx(float(expected), abs=1e-5)


def test_a_policy_against_itself_has_the_ratio_1_and_against_another_the_sign_turns() -> None:
    one, other = TurnScorer(tiny_policy(1), 1.0)(TURNS), TurnScorer(tiny_policy(2), 1.0)(TURNS)
    itself = turn_table(TRAJECTORIES, one, one)
    assert itself["log_ratio"].to_list() == [0.0] * 5
    assert of_trajectories(itself).effective == 2 and of_turns(itself).effective == 5
    there, back = turn_table(TRAJECTORIES, one, other), turn_table(TRAJECTORIES, other, one)
    assert (there["log_ratio"] + back["log_ratio"]).to_list() == [0.0] * 5
    assert there["log_ratio"].abs().max() > 0.01


def test_turns_add_up_to_the_whole_trajectory_and_summaries_are_turns() -> None:
    table = turn_table(TRAJECTORIES, np.array([1.0, 2.0, 0.0, 4.0, 8.0]), np.array([0.5, 0.0, 0.0, 1.0, 1.0]))
    assert table["task_id"].to_list() == ["long"] * 3 + ["summed"] * 2
    assert table["turn"].to_list() == [0, 1, 2, 0, 1]
    assert table["tokens"].to_list() == [2, 1, 0, 3, 1]
    assert table["log_ratio_so_far"].to_list() == [0.5, 2.5, 2.5, 3.0, 10.0]
    whole = of_trajectories(table)
    assert (whole.count, whole.mean) == (2, (2.5 + 10) / 2)
    turns = by_turn(table)
    assert [spread.count for spread in turns] == [2, 2, 1]
    assert [spread.mean for spread in turns] == [1.75, 6.25, 2.5]
    assert turns[2].deviation == 0 and turns[0].deviation == pytest.approx(2.5 / 2**0.5)


def test_two_trajectories_of_unequal_weight_are_worth_less_than_two() -> None:
    """Weights 1 and 3: 4^2 / (1 + 9)."""
    spread = Spread.of(np.log([1.0, 3.0]))
    assert spread.effective == pytest.approx(1.6) and spread.effective_share == pytest.approx(0.8)
    assert spread.quantiles["p50"] == pytest.approx(np.log(3) / 2)


@given(st.lists(st.floats(-600, 600), min_size=1, max_size=30), st.floats(-500, 500))
def test_the_effective_size_lies_between_one_and_all_and_knows_no_common_factor(
    logs: list[float], factor: float
) -> None:
    size = effective_size(np.array(logs))
    assert 1 - 1e-9 <= size <= len(logs) + 1e-9
    assert effective_size(np.array(logs) + factor) == pytest.approx(size, rel=1e-6)


def test_weights_of_whole_trajectories_are_worth_less_than_those_of_turns() -> None:
    """Ten turns with independent normal log ratios of deviation s: about exp(-s^2) of the turns remain, and
    exp(-10 s^2) of the trajectories."""
    ratios = np.random.default_rng(0).normal(0, 0.4, 40_000)
    many = [played(str(number), *[turn((3,), (4,))] * 10) for number in range(4_000)]
    table = turn_table(many, ratios, np.zeros(40_000))
    assert of_turns(table).effective_share == pytest.approx(exp(-0.16), rel=0.05)
    assert of_trajectories(table).effective_share == pytest.approx(exp(-1.6), rel=0.25)
    deviations = [spread.deviation for spread in by_turn(table)]
    np.testing.assert_allclose(deviations, 0.4 * np.sqrt(np.arange(1, 11)), rtol=0.05)


@pytest.mark.parametrize("turns", [1, 2, 30])
def test_the_figure_is_an_image_of_every_turn(turns: int) -> None:
    spreads = [Spread.of(np.random.default_rng(k).normal(-k, 1 + k, 50)) for k in range(turns)]
    root = ElementTree.fromstring(draw(spreads))
    svg = "{http://www.w3.org/2000/svg}"
    lines = [path for path in root.iter(f"{svg}path") if path.get("stroke-width") == "2.4"]
    dots = list(root.iter(f"{svg}circle"))
    if turns == 1:
        assert len(dots) == 2 and not lines
    else:
        assert [path.get("d", "").count("L") + 1 for path in lines] == [turns, turns]
    heights = [float(dot.get("cy", "")) for dot in dots]
    heights += [float(place.split()[1]) for line in lines for place in line.get("d", "M")[1:].split(" L")]
    assert all(40 <= height <= 400 for height in heights)


def test_ratios_of_nothing_but_ones_are_drawn_too() -> None:
    ElementTree.fromstring(draw([Spread.of(np.zeros(4))] * 3))


def test_ticks_of_a_figure_differ_however_little_the_ratio_moves() -> None:
    for low, high in ((-3e-8, 2e-8), (-0.0004, 0.0), (-40.0, 3.0), (-123456.0, 0.0)):
        labels = [_form(low, high).format(tick) for tick in _ticks(low, high)]
        assert 2 < len(labels) == len(set(labels))


def test_the_table_of_no_trajectory_has_the_schema() -> None:
    assert turn_table([], np.zeros(0), np.zeros(0)).schema["turn"] == pl.Int32
