"""The training curve's metrics of whole actions."""

from __future__ import annotations

from math import log

import pytest
import torch

from skillpress.core.engine import Sampling
from skillpress.core.trajectory import Trajectory
from skillpress.models.macro_policy.enumeration import Enumeration
from skillpress.models.policy import Policy
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.training.loop.describing.action_metrics import STATES, ActionMetrics, DemonstratedState
from tests.support.episodes import made_step, made_trajectory
from tests.support.models.tiny import tiny_policy
from tests.support.training.thread_ranks import on_ranks

WORDS = ("up", "down", "stop")


def decided(likely: float) -> Policy:
    """A policy that says each of its three stop words with probability ``likely`` / 3, whatever the
    prompt."""
    policy = tiny_policy(stop=WORDS, response_words=2)
    head = policy.model.get_output_embeddings()
    others = head.weight.shape[0] - 3
    bias = torch.full((head.weight.shape[0],), log((1 - likely) / others))
    bias[sorted(policy.stop_token_ids)] = log(likely / 3)
    with torch.no_grad():
        head.weight.zero_()
    head.bias = torch.nn.Parameter(bias)
    return policy


def played(states: int, first: int = 2) -> list[Trajectory]:
    steps = tuple(
        made_step(prompt_ids=(first + state,), response_ids=(50,), logprobs=(0.0,), action="up")
        for state in range(states)
    )
    return [made_trajectory(steps)]


def metrics(policy: Policy, ranks: Ranks | None = None, **changes: object) -> ActionMetrics:
    def read(tokens: tuple[int, ...]) -> str:
        return {"down": "move", "up": "move"}.get(policy.decode(tokens), policy.decode(tokens))

    enumeration = Enumeration(policy.model, Sampling(max_new_tokens=1), policy.stop_token_ids, read, 0.01)
    shown = [DemonstratedState((5,), "stop"), DemonstratedState((6, 7), "move")]
    values = {"enumeration": enumeration, "ranks": ranks or Ranks(), "seed": 0, "demonstrated": shown}
    return ActionMetrics(**{**values, **changes})


def test_two_words_of_one_action_are_one_outcome() -> None:
    """Each word has probability 1/3, so H(v) = ln 3. Two words are read as one action, so H(A) is that of
    (2/3, 1/3)."""
    found = metrics(decided(1 - 1e-9))(played(10), 1)
    assert found["actions/response_entropy"] == pytest.approx(log(3), abs=1e-4)
    expected = -(2 / 3 * log(2 / 3) + 1 / 3 * log(1 / 3))
    assert found["actions/entropy"] == pytest.approx(expected, abs=1e-4)
    assert found["actions/left_out"] == pytest.approx(0, abs=1e-5)
    assert found["actions/oracle"] == pytest.approx((1 / 3 + 2 / 3) / 2, abs=1e-5)


def test_where_too_much_is_left_out_no_entropy_is_told() -> None:
    """52 words of 0.4% each have a fifth of the probability, and a cut of 1% leaves them out."""
    found = metrics(decided(0.8))(played(10), 1)
    assert found["actions/left_out"] == pytest.approx(0.2, abs=1e-4)
    assert set(found) == {"actions/left_out", "actions/oracle"}


def test_several_ranks_tell_the_mean_over_all_of_their_states() -> None:
    policies = [tiny_policy(seed, stop=WORDS, response_words=2) for seed in (0, 0)]

    def tell(ranks: Ranks) -> dict[str, float]:
        few = [DemonstratedState((5,), "stop")] if ranks.rank else []
        return metrics(policies[ranks.rank], ranks, demonstrated=few)(played(3, 2 + 3 * ranks.rank), 1)

    one, other = on_ranks(2, tell)
    alone = metrics(policies[0], demonstrated=[DemonstratedState((5,), "stop")])(played(6), 1)
    assert one == other == pytest.approx(alone)


def test_the_states_are_few_and_depend_on_seed_and_step_alone() -> None:
    policy, asked = decided(1 - 1e-9), []

    class Listed(Enumeration):
        def __call__(self, prompts):  # type: ignore[no-untyped-def]
            asked.append(list(prompts))
            return super().__call__(prompts)

    listed = Listed(policy.model, Sampling(max_new_tokens=1), policy.stop_token_ids, policy.decode, 0.01)
    describe = metrics(policy, enumeration=listed, demonstrated=())
    random = torch.get_rng_state()
    for step in (1, 1, 2):
        describe(played(48), step)
    assert torch.equal(random, torch.get_rng_state())
    assert len(asked[0]) == STATES and asked[0] == asked[1] != asked[2]


def test_a_step_in_which_nothing_was_sampled_has_no_entropy() -> None:
    assert set(metrics(decided(1 - 1e-9))([], 1)) == {"actions/oracle"}
    assert metrics(decided(1 - 1e-9), demonstrated=())([], 1) == {}
