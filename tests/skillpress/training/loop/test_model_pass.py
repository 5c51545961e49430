"""Steps become passes through the model, whose log-probabilities return to their tokens."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.trajectory import Step, Trajectory
from skillpress.models.policy.passes import FAN_OUT
from skillpress.models.policy.scoring import pack_responses
from skillpress.training.algorithms.batch import Batch
from skillpress.training.loop.minibatches import with_advantage
from skillpress.training.loop.model_pass import passes, sampled_steps, scored

tokens = st.lists(st.integers(1, 99), min_size=1, max_size=6).map(tuple)


def make_steps(rows: list[tuple[tuple[int, ...], tuple[int, ...]]]) -> list[Step]:
    return [
        Step(prompt, response, tuple(-float(t) for t in response), "", "", "", None, ())
        for prompt, response in rows
    ]


def make_samples(rows: list[tuple[tuple[int, ...], tuple[int, ...]]]) -> Batch:
    return Batch.of_steps(make_steps(rows), np.arange(1.0, len(rows) + 1), np.full(len(rows), 0.5))


@given(st.lists(st.tuples(tokens, tokens), min_size=1, max_size=8))
def test_what_the_loss_needs_follows_its_tokens(rows: list[tuple[tuple[int, ...], tuple[int, ...]]]) -> None:
    samples = make_samples(rows)
    targets = pack_responses(samples.pairs).targets
    tokens = scored(samples, torch.zeros(len(targets)))
    expected = [(float(n), token) for n, (_, response) in enumerate(rows, 1) for token in response]
    assert [*zip(tokens.advantages.tolist(), targets.tolist(), strict=True)] == expected
    torch.testing.assert_close(tokens.old_logprobs, -targets.float())
    assert tokens.weights.tolist() == [0.5] * len(expected)
    assert tokens.response.tolist() == [n for n, (_, response) in enumerate(rows) for _ in response]


@given(st.lists(st.tuples(tokens, tokens), min_size=1, max_size=12), st.integers(12, 40))
def test_passes_hold_every_sample_once_within_the_token_limit(
    rows: list[tuple[tuple[int, ...], tuple[int, ...]]], limit: int
) -> None:
    parts = passes(make_samples(rows), limit, "cpu")
    advantages = np.concatenate([np.unique(part.batch.advantages) for part in parts])
    assert sorted(advantages.tolist()) == [float(n) for n in range(1, len(rows) + 1)]
    for part in parts:
        assert part.rows is not None
        assert (part.rows + 1).tolist() == [*dict.fromkeys(part.batch.advantages)]
    assert all(part.responses.size <= limit for part in parts)


@given(st.integers(1, 30), st.integers(1, 6), st.integers(1, 60), st.integers(8, 40))
def test_a_shared_prompt_is_fanned_out_no_further_than_memory_is_promised(
    width: int, response: int, rows: int, limit: int
) -> None:
    """A shared prompt's tokens count once; its keys and values, and the logits, count for each response."""
    parts = passes(make_samples([((1,) * width, (2,) * response)] * rows), limit, "cpu")
    assert sum(len(part.responses.owner) for part in parts) == rows
    for responses in (part.responses for part in parts):
        held = len(responses.owner)
        if held > 1:
            assert len(responses.targets) <= limit
            assert response == 1 or held * (width + response - 1) <= FAN_OUT * limit


def test_steps_with_the_same_prompt_meet_in_one_pass_and_share_it() -> None:
    rows = [((1, 2, 3), (4, 5)), ((9, 9, 9), (7,)), ((1, 2, 3), (6,))]
    (part,) = passes(make_samples(rows), 100, "cpu")
    assert part.responses.prompts.tolist() == [[1, 2, 3], [9, 9, 9]]
    assert part.responses.owner.tolist() == [0, 0, 1]


def test_steps_that_go_on_from_one_another_are_one_sequence_of_a_pass() -> None:
    rows = [
        ((1, 2), (3,)),
        ((1, 2, 3, 4), (5, 6)),
        ((1, 2, 3, 4, 5, 6, 7), (8,)),
        ((1, 2), (9,)),
        ((1, 2, 9, 4), (5,)),
    ]
    parts = passes(make_samples(rows), 100, "cpu")
    longer, shorter = sorted(parts, key=lambda each: -each.responses.continuations.shape[1])
    assert longer.responses.continuations.tolist() == [[3, 4, 5, 6, 7]]
    assert longer.responses.targets.tolist() == [3, 5, 6, 8]
    assert longer.batch.advantages.tolist() == [1, 2, 2, 3]
    assert shorter.responses.continuations.tolist() == [[9, 4]]
    assert shorter.batch.advantages.tolist() == [4, 5]


@given(st.lists(st.integers(1, 12), min_size=1, max_size=12), st.integers(1, 80))
def test_sequences_of_a_pass_differ_less_than_twofold_and_stay_within_the_limit(
    lengths: list[int], limit: int
) -> None:
    rows = []
    for number, steps in enumerate(lengths):
        prompt = (7, number)
        for step in range(steps):
            rows.append((prompt, (step + 1,)))
            prompt = (*prompt, step + 1, 99)
    parts = passes(make_samples(rows), limit, "cpu")
    assert sum(len(part.responses.targets) for part in parts) == sum(lengths)
    assert sum(len(part.responses.owner) for part in parts) == len(lengths)
    for responses in (part.responses for part in parts):
        widths = responses.continuation_lengths
        assert len(widths) == 1 or responses.size <= limit
        assert widths.max() < 2 * max(1, int(widths.min()))


def test_every_sampled_step_carries_its_advantage_and_others_are_no_samples() -> None:
    def played(*responses: tuple[int, ...]) -> Trajectory:
        steps = tuple(Step((1,), r, (-0.5,) * len(r), "", "", "", None, ()) for r in responses)
        return Trajectory("t", "g", 0, steps, False, False, True, "timeout", 0, 0)

    trajectories = [played((2,), (), (3, 4)), played(()), played((5,))]
    samples = Batch.of_steps(sampled_steps(trajectories), np.array([1.0, 3.0, 5.0]))
    assert samples.pairs.rows == (((1,), (2,)), ((1,), (3, 4)), ((1,), (5,)))
    assert samples.advantages.tolist() == [1.0, 3.0, 3.0, 5.0]
    assert samples.logprobs.tolist() == [-0.5] * 4


def test_an_advantage_may_differ_from_token_to_token() -> None:
    steps = make_steps([((1,), (2, 3)), ((1,), (4,)), ((1,), (5, 6, 7))])
    credit = np.array([[0.1, 0.2, 9.0], [0.0, 9.0, 9.0], [0.4, 0.5, 0.6]])  # 9 is padding
    samples = Batch.of_steps(steps, credit, np.ones(3))
    np.testing.assert_allclose(samples.advantages, [0.1, 0.2, 0.0, 0.4, 0.5, 0.6])
    some = np.array([[0.0, 1.0, 0.0], [0.0, 9.0, 9.0], [1.0, 0.0, 0.0]])
    teaching = with_advantage(Batch.of_steps(steps, some, np.ones(3)), False)
    assert teaching.tolist() == [0, 2]
    assert not len(with_advantage(Batch.of_steps(()), False))


def test_where_trajectories_stay_whole_one_advantage_makes_all_of_a_trajectory_teach() -> None:
    steps = make_steps([((1,), (2,))] * 5)
    advantages, numbers = np.array([0.0, 0.0, 0.0, -2.0, 0.0]), np.array([7, 7, 4, 4, 9])
    samples = Batch.of_steps(steps, advantages, np.ones(5), trajectory=numbers)
    teaching = with_advantage(samples, True)
    assert teaching.tolist() == [2, 3] and samples.cut(teaching).trajectory.tolist() == [4, 4]
    assert Batch.joined([samples, samples]).trajectory.tolist() == [*numbers, *(numbers + 10)], "others"


@given(st.lists(st.tuples(tokens, tokens), min_size=1, max_size=8), st.data())
def test_selected_rows_are_the_samples_of_those_decisions(
    rows: list[tuple[tuple[int, ...], tuple[int, ...]]], data: st.DataObject
) -> None:
    """Rows may come in any order, without some of the samples, and from a selection of a selection."""
    order = data.draw(st.permutations(range(len(rows))))
    some = order[: data.draw(st.integers(0, len(rows)))]
    again = [place for place in range(len(some)) if data.draw(st.booleans())]
    found = make_samples(rows).cut(np.array(some, np.int64)).cut(np.array(again, np.int64))
    steps, wanted = make_steps(rows), [some[place] for place in again]
    expected = Batch.of_steps(
        [steps[row] for row in wanted], np.array(wanted) + 1.0, np.full(len(wanted), 0.5)
    )
    assert found.pairs.rows == expected.pairs.rows
    for name in ("logprobs", "advantages", "weights"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
