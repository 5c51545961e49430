"""Steps whose prompts extend one another, scored as one sequence and each by itself."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from skillpress.core.chains import Pair, Pairs, extends, in_chains
from skillpress.models.policy.agreement import check_agreement
from skillpress.models.policy.packing import PackedScorer
from skillpress.models.policy.passes import pass_rows
from skillpress.models.policy.scorers import Scorer, checkpoint_layers
from skillpress.models.policy.scoring import ResponseScorer, pack_responses
from tests.support.models.families import FAMILIES, family

Calls = list[tuple[Pair, int]]
"""Pairs in the order of time, and the number of each one's episode."""
Turns = list[tuple[tuple[int, ...], tuple[int, ...]]]

said = st.lists(st.integers(3, 59), min_size=1, max_size=4).map(tuple)
openings = st.sampled_from([(3,), (3, 4), (9, 8, 7, 6)])
episodes = st.tuples(openings, st.lists(st.tuples(said, said), min_size=1, max_size=4))


def steps_of(opening: tuple[int, ...], turns: Turns) -> list[Pair]:
    """An episode as steps: after each response the environment adds text, and the prompt grows by both."""
    steps, prompt = [], opening
    for response, observation in turns:
        steps.append((prompt, response))
        prompt += response + observation
    return steps


@st.composite
def trees(draw: st.DrawFn) -> Calls:
    """Episodes of calls. Each call begins with an opening, or with any earlier call of its episode."""
    calls: Calls = []
    for episode in range(draw(st.integers(1, 3))):
        own: list[Pair] = []
        for _ in range(draw(st.integers(1, 6))):
            parent = draw(st.sampled_from([None, *own]))
            start = draw(openings) if parent is None else sum(parent, ())
            own.append((start + draw(st.just(()) | said), draw(said)))
        calls += [(call, episode) for call in own]
    return calls


def growing(played: list[tuple[tuple[int, ...], Turns]]) -> Calls:
    """Episodes whose prompts each extend the previous one."""
    return [(step, number) for number, episode in enumerate(played) for step in steps_of(*episode)]


def ordered(calls: Calls) -> tuple[Pairs, np.ndarray]:
    """The pairs chain by chain, and the place of each in time."""
    pairs = Pairs.of([call for call, _ in calls])
    order = in_chains(pairs, np.array([episode for _, episode in calls]))
    return pairs.select(order), order


def sequence_tokens(pairs: Pairs) -> int:
    return sum(len(sum(pairs.rows[chain[-1]], ())) for chain in pairs.chains)


def by_itself(model: torch.nn.Module, steps: list[Pair], heat: float) -> torch.Tensor:
    """The definition: each step's own row through the model, and a softmax at every response token."""
    scores = []
    for prompt, response in steps:
        logprobs = torch.log_softmax(model(torch.tensor([prompt + response])).logits[0] / heat, dim=-1)
        scores += [logprobs[len(prompt) - 1 + i, token] for i, token in enumerate(response)]
    return torch.stack(scores)


@given(st.lists(episodes, min_size=1, max_size=4))
def test_the_steps_of_an_episode_are_one_chain_and_nothing_is_lost(played: list[tuple]) -> None:
    steps = [step for opening, turns in played for step in steps_of(opening, turns)]
    pairs = Pairs.of(steps)
    found = pairs.chains
    assert [row for chain in found for row in chain] == list(range(len(steps)))
    for chain in found:
        whole = steps[chain.start][0] + pairs.behind(chain)
        for row in chain:
            prompt, response = steps[row]
            assert whole[: len(prompt) + len(response)] == prompt + response
            assert row == chain.start or extends(prompt, steps[row - 1])
    opening, turns = played[0]
    assert Pairs.of(steps_of(opening, turns)).chains == [range(len(turns))]


def test_a_chain_goes_on_over_steps_that_are_left_out_and_ends_where_a_prompt_begins_anew() -> None:
    first, second, third = steps_of((3, 4), [((5,), (6,)), ((7, 8), (9,)), ((10,), (11,))])
    assert Pairs.of([first, third]).chains == [range(2)]
    anew = ((3, 4, 9), (7,))
    assert Pairs.of([first, second, anew, third]).chains == [range(2), range(2, 3), range(3, 4)]
    assert Pairs.of([second, first]).chains == [range(1), range(1, 2)]
    assert Pairs.of([first, first]).chains == [range(1), range(1, 2)]


@given(st.lists(episodes, min_size=1, max_size=3), st.data())
def test_pairs_that_are_taken_from_others_have_the_chains_that_they_have_by_themselves(
    played: list[tuple], data: st.DataObject
) -> None:
    """Also where pairs meet that extend one another and were not neighbours before."""
    steps = [step for opening, turns in played for step in steps_of(opening, turns)]
    order = np.array(data.draw(st.lists(st.sampled_from(range(len(steps))))), np.int64)
    chosen = Pairs.of(steps).select(order)
    assert chosen.rows == tuple(steps[row] for row in order)
    assert chosen.chains == Pairs.of([steps[row] for row in order]).chains
    cut = data.draw(st.integers(0, len(order)))
    joined = Pairs.joined([chosen.select(np.arange(cut)), chosen.select(np.arange(cut, len(order)))])
    assert (joined.rows, joined.chains) == (chosen.rows, chosen.chains)


def test_a_chain_is_one_sequence_and_shares_its_first_prompt_with_others() -> None:
    one = steps_of((3, 4, 5), [((6, 7), (8,)), ((9,), (1,))])
    other = steps_of((3, 4, 5), [((6,), (8,))])
    responses = pack_responses([*one, *other])
    assert responses.prompts.tolist() == [[3, 4, 5]] and responses.owner.tolist() == [0, 0]
    assert responses.continuations.tolist() == [[6, 7, 8], [0, 0, 0]]
    assert responses.continuation_lengths.tolist() == [3, 0]
    assert responses.targets.tolist() == [6, 7, 9, 6]
    assert responses.predicting.tolist() == [0, 2, 4, 1]


@given(trees())
def test_calls_that_extend_any_earlier_call_of_their_episode_are_put_behind_it(calls: Calls) -> None:
    chained, order = ordered(calls)
    assert sorted(order) == [*range(len(calls))]
    assert [calls[row][1] for row in order] == [episode for _, episode in calls], "episodes stay apart"
    heads = {order[chain.start] for chain in chained.chains}
    for row in heads:
        (prompt, _), episode = calls[row]
        taken = {order[row] for chain in chained.chains for row in chain[:-1]}
        extended = {n for n in range(row) if calls[n][1] == episode and extends(prompt, calls[n][0])}
        assert extended <= taken, "a call begins a sequence only if others go on with all that it extends"


@given(trees())
def test_trees_never_have_more_tokens_than_chains_of_neighbours(calls: Calls) -> None:
    chained, _ = ordered(calls)
    assert sequence_tokens(chained) <= sequence_tokens(Pairs.of([call for call, _ in calls]))


@given(trees() | st.lists(episodes, min_size=1, max_size=4).map(growing))
def test_where_chains_are_neighbours_the_order_stays(calls: Calls) -> None:
    _, order = ordered(calls)
    distant = [
        row
        for row, ((prompt, _), episode) in enumerate(calls)
        if not (row and extends(prompt, calls[row - 1][0]) and calls[row - 1][1] == episode)
        and any(other == episode and extends(prompt, call) for call, other in calls[:row])
    ]
    assert distant or order.tolist() == [*range(len(calls))]


def test_sub_agents_that_take_turns_are_a_sequence_each_and_a_second_branch_is_another() -> None:
    """a and b take turns; the second branch of a begins a sequence of its own."""
    a = steps_of((3, 4), [((5,), (6,)), ((7,), (8,)), ((9,), (10,))])
    b = steps_of((20,), [((21,), (22,)), ((23,), (24,))])
    branch = ((*a[1][0], *a[1][1], 11), (12,))
    calls = [a[0], b[0], a[1], b[1], a[2], branch]
    chained, order = ordered([(call, 0) for call in calls])
    assert order.tolist() == [0, 2, 4, 1, 3, 5]
    assert chained.chains == [range(3), range(3, 5), range(5, 6)]
    assert len(Pairs.of(calls).chains) == 6


def test_equal_calls_are_each_gone_on_with_by_one() -> None:
    first = ((3, 4), (5,))
    second, third = ((3, 4, 5, 6), (7,)), ((3, 4, 5, 8), (9,))
    chained, order = ordered([(call, 0) for call in (first, first, second, third)])
    assert order.tolist() == [0, 3, 1, 2] and len(chained.chains) == 2


@pytest.mark.parametrize("packed", [False, True])
@settings(deadline=None, max_examples=20)
@given(trees(), st.sampled_from([8, 1000]))
def test_calls_of_a_tree_score_and_teach_as_each_call_by_itself(
    packed: bool, calls: Calls, limit: int
) -> None:
    """The scores are compared in the order of time; a small limit spreads a tree over several passes."""
    model = family("Llama", torch.float64)  # so that only another result can differ, and not its rounding
    pairs = [call for call, _ in calls]
    weights = torch.linspace(-1, 1, sum(len(response) for _, response in pairs))
    expected = by_itself(model, pairs, 0.7)
    (expected * weights).sum().backward()
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    scorer: Scorer = PackedScorer(model) if packed else ResponseScorer(model)
    chained, order = ordered(calls)
    weight, found = weights.split([len(response) for _, response in pairs]), [torch.empty(0)] * len(pairs)
    for rows in pass_rows(chained, limit, scorer.shares_prompts):
        some = chained.select(rows)
        scores, _ = scorer(pack_responses(some), 0.7)
        (scores * torch.cat([weight[row] for row in order[rows]])).sum().backward()
        for row, score in zip(order[rows], scores.split(some.response_lengths.tolist()), strict=True):
            found[row] = score.detach()
    torch.testing.assert_close(torch.cat(found), expected.detach().float(), atol=1e-5, rtol=1e-5)
    for parameter, gradient in zip(model.parameters(), gradients, strict=True):
        scale = 1 + float(gradient.abs().max())
        torch.testing.assert_close(parameter.grad, gradient, atol=1e-5 * scale, rtol=0)


@pytest.mark.parametrize("packed", [False, True])
@settings(deadline=None, max_examples=20)
@given(st.lists(episodes, min_size=1, max_size=3), st.sampled_from([0.7, 1.0]))
def test_scores_and_gradients_are_those_of_every_step_by_itself(
    packed: bool, played: list[tuple], temperature: float
) -> None:
    model = family("Llama", torch.float64)  # so that only another result can differ, and not its rounding
    steps = [step for opening, turns in played for step in steps_of(opening, turns)]
    weights = torch.linspace(-1, 1, sum(len(response) for _, response in steps))
    expected = by_itself(model, steps, temperature)
    (expected * weights).sum().backward()
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    scorer: Scorer = PackedScorer(model) if packed else ResponseScorer(model)
    found, _ = scorer(pack_responses(steps), temperature)
    (found * weights).sum().backward()
    torch.testing.assert_close(found, expected.float(), atol=1e-5, rtol=1e-5)
    for parameter, gradient in zip(model.parameters(), gradients, strict=True):
        scale = 1 + float(gradient.abs().max())
        torch.testing.assert_close(
            parameter.grad, gradient, atol=1e-4 * scale, rtol=0
        )  # float32, and padding


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_scores_a_chain_as_its_own_forward_pass_does(name: str, checkpointing: bool) -> None:
    """The chain is longer than a sliding window, which then slides within it."""
    model = family(name)
    if checkpointing:
        checkpoint_layers(model)
    draw = torch.Generator().manual_seed(0)
    words = torch.randint(3, 60, (40,), generator=draw).tolist()
    turns = [(tuple(words[i : i + 3]), tuple(words[i + 3 : i + 5])) for i in range(0, 35, 5)]
    check_agreement(model, [*steps_of((3, 4), turns), *steps_of((3, 4), turns[4:]), ((5,) * 11, (7, 8))])
