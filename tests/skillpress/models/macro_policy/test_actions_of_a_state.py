"""Probabilities of actions, compared with the sum over every token sequence of a small vocabulary."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from itertools import product
from math import exp, log

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from skillpress.core.engine import Sampling
from skillpress.core.interface import ScratchVocabulary
from skillpress.core.trajectory import TokenIds
from skillpress.models.engines.local.engine import LocalEngine
from skillpress.models.macro_policy.actions import MacroPolicy, entropy
from skillpress.models.macro_policy.enumeration import Enumeration, next_logits
from skillpress.models.macro_policy.sampling import SampledMacroPolicy, sample_actions
from skillpress.models.policy import Policy
from skillpress.models.policy.scratch import build_scratch_policy
from skillpress.rollouts.agents.parsing import plain

PROMPTS: list[TokenIds] = [(2, 3), (3, 3, 2, 4), (4,)]
LONGEST = 3


def six_tokens(seed: int = 0, sharpness: float = 8.0) -> Policy:
    """A random model over <pad>, <unk>, a, b and the stop words go and halt; its distribution is far from
    uniform."""
    vocabulary = ScratchVocabulary(("a", "b", "go", "halt"), ("go", "halt"), {}, state_words=4)
    policy = build_scratch_policy(vocabulary, 16, 1, 2, LONGEST, seed)
    with torch.no_grad():
        policy.model.get_output_embeddings().weight.mul_(sharpness)
    return policy


def last_word(policy: Policy, response: TokenIds) -> str:
    """A parser that takes all words before the last as a thought; it reads nothing after a word b."""
    words = policy.decode(response).split()
    return "" if not words or "b" in words else words[-1]


@torch.no_grad()
def every_response(policy: Policy, prompt: TokenIds, sampling: Sampling) -> dict[TokenIds, float]:
    """Maps each response to its probability, by the definition: the model computes each of them
    completely."""
    found = {}
    stop = policy.stop_token_ids
    for length in range(1, LONGEST + 1):
        responses = [
            tokens
            for tokens in product(range(6), repeat=length)
            if (tokens[-1] in stop or length == LONGEST) and not stop.intersection(tokens[:-1])
        ]
        rows = torch.tensor([prompt + tokens for tokens in responses])
        logits = policy.model(rows).logits[:, len(prompt) - 1 : -1].double()
        logprobs = torch.log_softmax(logits / sampling.temperature, -1)
        chosen = logprobs.gather(2, rows[:, len(prompt) :, None])[..., 0]
        found |= dict(zip(responses, chosen.sum(1).exp().tolist(), strict=True))
    return found


def summed(policy: Policy, responses: dict[TokenIds, float]) -> dict[str, float]:
    actions: dict[str, float] = defaultdict(float)
    for tokens, probability in responses.items():
        actions[last_word(policy, tokens)] += probability
    return dict(actions)


def enumerated(policy: Policy, sampling: Sampling, cut: float) -> list[MacroPolicy]:
    read = partial(last_word, policy)
    return Enumeration(policy.model, sampling, policy.stop_token_ids, read, cut)(PROMPTS)


@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_without_a_cut_it_is_the_sum_over_all_token_sequences(temperature: float) -> None:
    policy, sampling = six_tokens(), Sampling(temperature, max_new_tokens=LONGEST)
    for prompt, found in zip(PROMPTS, enumerated(policy, sampling, 1e-30), strict=True):
        responses = every_response(policy, prompt, sampling)
        expected = summed(policy, responses)
        assert len(expected) == 4 and sum(expected.values()) == pytest.approx(1)  # go, halt, a, nothing
        assert found.probabilities == pytest.approx(expected, abs=1e-6)
        assert found.left_out == 0 and found.responses == len(responses)
        assert found.entropy == pytest.approx(-sum(p * log(p) for p in expected.values()), abs=1e-5)
        assert found.response_entropy == pytest.approx(-sum(p * log(p) for p in responses.values()), abs=1e-5)
        assert found.entropy_bounds.low == found.entropy_bounds.high == found.entropy


@settings(max_examples=30)
@given(st.integers(0, 5), st.sampled_from([0.3, 0.1, 0.03, 0.01, 1e-3]), st.sampled_from([2.0, 8.0, 20.0]))
def test_what_is_left_out_bounds_every_probability_and_the_entropy(
    seed: int, cut: float, sharpness: float
) -> None:
    policy, sampling = six_tokens(seed, sharpness), Sampling(max_new_tokens=LONGEST)
    for prompt, found in zip(PROMPTS, enumerated(policy, sampling, cut), strict=True):
        responses = every_response(policy, prompt, sampling)
        truth = summed(policy, responses)
        assert sum(found.probabilities.values()) + found.left_out == pytest.approx(1, abs=1e-5)
        for action in {*truth, *found.probabilities}:
            bounds = found.probability(action)
            assert bounds.low - 1e-6 <= truth.get(action, 0.0) <= bounds.high + 1e-6
        bounds = found.entropy_bounds
        assert bounds.low - 1e-5 <= entropy(truth.values()) <= bounds.high + 1e-5
        assert bounds.low - 1e-9 <= found.entropy <= bounds.high + 1e-9
        if found.left_out:
            assert exp(found.log_responses_left) >= len(responses) - found.responses - 1e-6


@pytest.mark.parametrize("budget", [0, 4, 7, 12, 40])
def test_a_budget_of_tokens_leaves_out_more_and_the_bounds_still_hold(budget: int) -> None:
    policy, sampling = six_tokens(), Sampling(max_new_tokens=LONGEST)
    read, sizes = partial(last_word, policy), []

    def counted(module: object, values: object, named: dict[str, torch.Tensor]) -> None:
        sizes.append(int(named["attention_mask"].sum()) if named["attention_mask"] is not None
                     else named["input_ids"].numel())  # fmt: skip

    hook = policy.model.register_forward_pre_hook(counted, with_kwargs=True)
    tree = Enumeration(policy.model, sampling, policy.stop_token_ids, read, 1e-30, budget)
    found = tree(PROMPTS)
    hook.remove()
    assert sum(sizes) <= budget
    for prompt, macro in zip(PROMPTS, found, strict=True):
        responses = every_response(policy, prompt, sampling)
        truth = summed(policy, responses)
        for action, probability in truth.items():
            bounds = macro.probability(action)
            assert bounds.low - 1e-6 <= probability <= bounds.high + 1e-6
        bounds = macro.entropy_bounds
        assert bounds.low - 1e-5 <= entropy(truth.values()) <= bounds.high + 1e-5
        assert exp(macro.log_responses_left) >= len(responses) - macro.responses - 1e-6
    if budget == 4:  # not enough for the two longest prompts of 2, 4 and 1 tokens and any further token
        assert sum(macro.responses > 0 for macro in found) >= 1


def test_several_token_sequences_of_one_action_are_added_up() -> None:
    policy, sampling = six_tokens(), Sampling(max_new_tokens=LONGEST)
    (found, *_) = enumerated(policy, sampling, 1e-30)
    responses = every_response(policy, PROMPTS[0], sampling)
    ways = [p for tokens, p in responses.items() if last_word(policy, tokens) == "go"]
    assert len(ways) == 1 + 3 + 9  # go after zero, one or two of <pad>, <unk> and a
    assert found.probabilities["go"] == pytest.approx(sum(ways), abs=1e-6) and sum(ways) > max(ways)
    assert found.response_entropy > found.entropy


def test_only_what_top_k_keeps_is_possible() -> None:
    policy = six_tokens()
    (found, *_) = enumerated(policy, Sampling(top_k=1, max_new_tokens=LONGEST), 1e-4)
    assert found.responses == 1 and sum(found.probabilities.values()) == pytest.approx(1)
    (greedy, *_) = enumerated(policy, Sampling(temperature=0, max_new_tokens=LONGEST), 1e-4)
    assert greedy.probabilities == pytest.approx(dict(found.probabilities)) and greedy.entropy == 0


def test_the_lower_bound_of_the_entropy_is_reached() -> None:
    """q = (0.5, 0.3) with 0.2 left: the entropy is smallest if the 0.2 belong to the first action, as (0.7,
    0.3)."""
    found = MacroPolicy({"a": 0.5, "b": 0.3}, 0.2, log(2), 2, 0.0)
    assert found.entropy_bounds.low == pytest.approx(-0.7 * log(0.7) - 0.3 * log(0.3))
    assert found.entropy_bounds.high == pytest.approx(
        -0.5 * log(0.5) - 0.3 * log(0.3) - 2 * 0.1 * log(0.1)
    )  # two responses left, each another action
    assert found.probability("b").low == 0.3 and found.probability("b").high == 0.5
    assert found.probability("c").low == 0 and found.probability("c").high == 0.2


def test_rows_of_any_length_get_the_logits_of_each_by_itself() -> None:
    model = six_tokens().model
    rows: list[TokenIds] = [(2, 3, 4), (3,), (5, 2, 2, 3, 4)]
    with torch.no_grad():
        found = next_logits(model, rows)
        for row, logits in zip(rows, found, strict=True):
            torch.testing.assert_close(logits, model(torch.tensor([row])).logits[0, -1], atol=1e-5, rtol=1e-5)


def test_enumeration_draws_nothing_and_leaves_the_model_as_it_is() -> None:
    policy = six_tokens()
    before = {name: weight.clone() for name, weight in policy.model.state_dict().items()}
    random = torch.get_rng_state()
    enumerated(policy, Sampling(max_new_tokens=LONGEST), 1e-4)
    assert torch.equal(random, torch.get_rng_state())
    assert all(torch.equal(before[name], weight) for name, weight in policy.model.state_dict().items())


def test_intervals_of_samples_cover_the_enumerated_probabilities() -> None:
    policy, sampling = six_tokens(sharpness=4.0), Sampling(max_new_tokens=LONGEST)
    exact = enumerated(policy, sampling, 1e-30)
    engine = LocalEngine(policy)
    prompts = [prompt for prompt in PROMPTS for _ in range(60)]
    found = sample_actions(engine, prompts, partial(last_word, policy), sampling, samples=50, seed=1)
    covered = [
        sampled.interval(action).low <= probability <= sampled.interval(action).high
        for index, sampled in enumerate(found)
        for action, probability in exact[index // 60].probabilities.items()
    ]
    assert len(covered) == 3 * 60 * 4 and 0.92 < np.mean(covered) < 0.985
    entropies = [sampled.entropy for sampled in found[:60]]
    assert np.mean(entropies) == pytest.approx(exact[0].entropy, abs=0.02)
    within = [s.entropy_interval.low <= exact[i // 60].entropy <= s.entropy_interval.high
              for i, s in enumerate(found)]  # fmt: skip
    assert np.mean(within) > 0.85


def test_estimates_of_counts_are_those_of_a_hand_calculation() -> None:
    """Shares 3 of 4 and 1 of 4: plug-in entropy 0.562335, Miller's correction 1/8."""
    found = SampledMacroPolicy({"up": 3, "": 1})
    assert found.share("up") == 0.75 and found.share("down") == 0
    assert found.entropy == pytest.approx(0.562335 + 0.125, abs=1e-6)
    half = 1.959964 * (0.75 * (log(0.75) + 0.562335) ** 2 + 0.25 * (log(0.25) + 0.562335) ** 2) ** 0.5 / 2
    assert found.entropy_interval.high - found.entropy == pytest.approx(half, abs=1e-6)


def test_an_estimate_needs_samples() -> None:
    policy = six_tokens()
    with pytest.raises(ValueError, match="at least one sample"):
        sample_actions(LocalEngine(policy), PROMPTS, policy.decode, Sampling(), 0, 0)


def test_a_real_parser_reads_the_responses() -> None:
    policy = six_tokens()
    read = lambda tokens: plain(policy.decode(tokens)).action  # noqa: E731
    found = Enumeration(policy.model, Sampling(max_new_tokens=1), policy.stop_token_ids, read, 1e-9)(PROMPTS)
    assert set(found[0].probabilities) == {"", "a", "b", "go", "halt"}  # <pad> and <unk> are not text
