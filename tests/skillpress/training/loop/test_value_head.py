"""The value head's values, its learning, and the targets of a batch's states."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import PreTrainedModel

from skillpress.core.trajectory import Step, Trajectory
from skillpress.models.policy.packing import PackedScorer
from skillpress.models.policy.scoring import ResponseScorer, pack_responses
from skillpress.rollouts.workers.distributed import Ranks, free_port, join_ranks
from skillpress.training.algorithms.batch import Batch, batch_of, one_process
from skillpress.training.algorithms.ppo import explained_variance
from skillpress.training.loop.learner import Learner, Passing
from skillpress.training.loop.model_pass import sampled
from skillpress.training.loop.optimizer import AdamW
from skillpress.training.loop.policy_loss import PolicyLoss
from skillpress.training.loop.state_values import StateValues, with_targets
from skillpress.training.loop.value_head import ValuedScorer, ValueHead
from tests.support.models.families import family
from tests.support.models.tiny import tiny_policy
from tests.support.training.batches import PPO, algorithm, batch
from tests.support.training.thread_ranks import on_ranks

PAIRS = [((3, 4, 5), (6, 7)), ((3, 4, 5, 6, 7, 8), (9,)), ((3, 4, 5), (2, 3, 4)), ((11,), (12, 2))]
"""The second extends the first; the third shares the first one's prompt."""


LONGEST = 8
MADE = torch.tensor([0.0, 1.0, 4.0, 8.0])
"""Number of steps made before each of them."""


def head_of(model: PreTrainedModel) -> ValueHead:
    """A head with weights other than zero."""
    head, random = ValueHead(model, LONGEST), torch.Generator().manual_seed(0)
    head.weight.data.copy_(torch.randn(head.weight.shape, generator=random))
    head.bias.data.fill_(0.5)
    head.time.data.copy_(torch.tensor([1.0, 2.0, -3.0]))
    return head


@pytest.mark.parametrize("scorer", [ResponseScorer, PackedScorer])
def test_a_value_is_the_heads_at_the_models_own_hidden_state_at_the_end_of_the_prompt(scorer: type) -> None:
    """The value also depends on the time: cos(pi j k / 8) for j = 1, 2, 3 is (1, 1, 1) at k = 0, (0, -1, 0)
    at 4 and (-1, 1, -1) at 8. Multiplied by (1, 2, -3) and summed, these are 0, -2 and 4."""
    angle = math.pi / 8
    times = [0.0, math.cos(angle) + 2 * math.cos(2 * angle) - 3 * math.cos(3 * angle), -2.0, 4.0]
    model = family("Llama").eval()
    head = head_of(model)
    with torch.no_grad():
        _, _, values = ValuedScorer(scorer(model), head)(pack_responses(PAIRS), 1.0, made=MADE)
        for (prompt, _), value, time in zip(PAIRS, values, times, strict=True):
            hidden = model(torch.tensor([prompt]), output_hidden_states=True).hidden_states[-1][0, -1]
            torch.testing.assert_close(value, hidden @ head.weight + 0.5 + time, atol=1e-5, rtol=1e-5)


def test_the_head_starts_at_zero_and_changes_no_score_and_no_gradient_of_the_policy() -> None:
    model = tiny_policy().model
    head, responses = ValueHead(model, LONGEST), pack_responses(PAIRS)
    plain = ResponseScorer(model)(responses, 0.7)
    logprobs, entropies, values = ValuedScorer(ResponseScorer(model), head)(responses, 0.7)
    assert torch.equal(logprobs, plain[0]) and torch.equal(entropies, plain[1])
    assert (values == 0).all()
    (values - 3).square().sum().backward()
    assert all(weight.grad is None or not weight.grad.any() for weight in model.parameters())
    assert head.weight.grad is not None and head.weight.grad.any()


def test_values_are_float32_in_a_bfloat16_model() -> None:
    model = family("Llama", torch.bfloat16).eval()
    head = head_of(model)
    hidden = torch.randn(50, head.weight.shape[0]).bfloat16()
    found = head(hidden, torch.full((50,), 4.0))
    assert head.weight.dtype == torch.bfloat16 and found.dtype == torch.float32
    torch.testing.assert_close(found, hidden.float() @ head.weight.float() + 0.5 - 2.0)


def learner_with(model: PreTrainedModel, head: ValueHead, rate: float) -> Learner:
    method = algorithm(PPO)
    parts = [PolicyLoss(method), StateValues(method, head)]
    return Learner(model, parts, AdamW(rate), Passing(1.0, 200), Ranks())


@pytest.fixture(scope="module")
def learner() -> Learner:
    join_ranks(Ranks(), free_port())
    model = tiny_policy().model
    return learner_with(model, ValueHead(model, LONGEST), 3e-3)


def samples() -> Batch:
    """States whose value is a fifth of their last number, 0 to 1.8."""
    random = np.random.default_rng(0)
    prompts = [tuple(map(int, random.integers(2, 12, 4))) for _ in range(60)]
    steps = tuple(Step(prompt, (3,), (-3.5,), "", "", "", None, ()) for prompt in prompts)
    returns = np.array([(prompt[-1] - 2) / 5 for prompt in prompts])
    return targeted(steps, returns)


def targeted(steps: Sequence[Step], returns: np.ndarray, **columns: np.ndarray) -> Batch:
    """Steps whose values are to be these."""
    weights = np.full(len(steps), 1 / len(steps))
    return Batch.of_steps(
        steps, values=np.zeros(len(steps)), value_targets=returns, value_weights=weights, **columns
    )


def test_a_value_head_learns_what_states_are_worth(learner: Learner) -> None:
    """The old values are computed again before each update, as in a training step."""
    batch = samples()
    explained = []
    for update in range(61):
        values = learner.scoring.values(batch)
        explained.append(explained_variance(values, batch.value_targets, one_process))
        learner.begin_step(update + 1)
        learner.update(replace(batch, values=values))
    assert explained[0] == 0
    assert explained[10] < explained[30] < explained[60]
    assert explained[60] > 0.9


def test_samples_without_targets_are_refused_by_a_learner_with_a_value_head(learner: Learner) -> None:
    with pytest.raises(ValueError, match="value_targets must be given"):
        learner.update(replace(samples(), value_targets=None))


def test_targets_stay_with_their_samples() -> None:
    batch = samples()
    rows = np.array([7, 0, 31])
    chosen, joined = batch.cut(rows), Batch.joined([batch.cut(rows), batch.cut(rows[:1])])
    assert batch.value_targets is not None
    np.testing.assert_array_equal(chosen.value_targets, batch.value_targets[rows])
    np.testing.assert_array_equal(joined.value_targets, batch.value_targets[[7, 0, 31, 7]])
    assert joined.made.tolist() == [0] * 4


def episode(length: int) -> Trajectory:
    steps = (Step((1,), (2,), (-1.0,), "", "", "", None, ()),) * length
    return Trajectory(
        task_id="", group_id="", rollout_index=0, steps=steps, won=False, terminated=False, truncated=True,
        outcome="timeout", policy_version=0, seed=0,
    )  # fmt: skip


def test_values_of_states_that_differ_in_time_alone_come_apart(learner: Learner) -> None:
    """The return falls from 1 to 0 as time passes; only the head sees the time."""
    made = np.arange(40) % LONGEST
    step = Step((3, 4), (3,), (-3.5,), "", "", "", None, ())
    returns = 1.0 - made / LONGEST
    batch = targeted((step,) * 40, returns, made=made)
    for update in range(60):
        values = learner.scoring.values(batch)
        learner.begin_step(update + 1)
        learner.update(replace(batch, values=values))
    explained = explained_variance(learner.scoring.values(batch), returns, one_process)
    assert explained is not None and explained > 0.5
    alike = learner.scoring.values(replace(batch, made=np.zeros_like(made)))
    assert np.ptp(alike) < 1e-5


def test_values_belong_to_their_steps_in_whatever_order_the_samples_are(learner: Learner) -> None:
    """Nothing was sampled at the second step. The head has learned, so no two states are worth the same."""
    prompts = [(3, 4), (), (5, 6), (3, 4, 3, 7), (5, 6, 3, 8)]
    said = [
        Step(prompt, (3,) if prompt else (), (-1.0,) * bool(prompt), "", "", "", None, ())
        for prompt in prompts
    ]
    played = batch_of([replace(episode(0), steps=tuple(said))], [0], 10.0, 4)
    rows = sampled(played)
    assert rows.tolist() == [0, 3, 2, 4]
    expected = learner.judge(played, np.array([0, 2, 3, 4])).values
    found = learner.judge(played, rows).values
    assert expected is not None and found is not None
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert expected[1] == 0 and len(set(expected.round(4))) == 5


def test_the_head_has_a_learning_rate_of_its_own() -> None:
    """Adam's first update moves every weight by the learning rate."""
    join_ranks(Ranks(), free_port())
    model, batch = tiny_policy().model, samples()
    head, before = ValueHead(model, LONGEST, rate=7.0), model.lm_head.weight.detach().clone()
    learner = learner_with(model, head, 1e-3)
    learner.begin_step(1)
    learner.update(replace(batch, advantages=np.ones(len(batch)), weights=np.full(len(batch), 1 / 60)))
    assert abs(float(head.bias.detach())) == pytest.approx(7e-3, rel=1e-3)
    assert float((model.lm_head.weight.detach() - before).abs().max()) == pytest.approx(1e-3, rel=1e-3)


def test_what_states_are_to_learn_leaves_out_steps_without_a_prompt_and_weighs_the_others_alike() -> None:
    played = batch([[0.0, 0.0, 10.0], [0.0]], [0, 1])
    played = replace(played, tokens=np.array([2, 0, 2, 2]), values=np.array([0.5, 0.0, 0.25, 0.75]))
    found = with_targets(played, algorithm(PPO), one_process).cut(np.array([0, 2, 3]))
    assert found.made.tolist() == [0, 2, 0] and found.values is not None
    assert found.values.tolist() == [0.5, 0.25, 0.75]
    np.testing.assert_allclose(found.value_targets, [1.0, 1.0, 0.0])
    np.testing.assert_allclose(found.value_weights, [1 / 3] * 3)


def test_two_ranks_find_together_what_one_finds() -> None:
    """Weights of targets, metrics and advantages are equal, although the ranks hold different numbers of
    states."""
    lengths = [3, 1, 2, 4]
    random = np.random.default_rng(3)
    rewards = [random.normal(size=length).tolist() for length in lengths]
    values = np.split(random.normal(size=10), np.cumsum(lengths)[:-1])
    method = algorithm(PPO, gae_lambda=0.7)

    def part(ranks: Ranks) -> tuple[list[float], dict[str, float], np.ndarray]:
        mine = slice(0, 1 if ranks.size > 1 else 4) if ranks.rank == 0 else slice(1, 4)
        count = len(rewards[mine])
        played = replace(batch(rewards[mine], range(count)), values=np.concatenate(values[mine]))
        weights = with_targets(played, method, ranks.sum).value_weights
        assert weights is not None
        advantages = method.advantages(played, ranks.sum)
        return weights.tolist(), method.describe(played, ranks.sum), advantages

    (whole,), halves = on_ranks(1, part), on_ranks(2, part)
    assert halves[0][0] + halves[1][0] == pytest.approx(whole[0]) and sum(whole[0]) == pytest.approx(1)
    assert [half[1] for half in halves] == [pytest.approx(whole[1])] * 2
    np.testing.assert_allclose(np.concatenate([half[2] for half in halves]), whole[2])
