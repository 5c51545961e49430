"""The warm start: the content of a demonstration, and that a policy learns it."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from skillpress.core.chains import Pairs
from skillpress.core.errors import StorageError
from skillpress.core.interface import AgentState, Info
from skillpress.core.resume import SaveTimer
from skillpress.core.trajectory import Task
from skillpress.models.policy import Policy
from skillpress.models.policy.passes import FAN_OUT
from skillpress.models.policy.precision import MasterWeights
from skillpress.models.policy.scorers import checkpoint_layers, choose_scorer
from skillpress.models.policy.scoring import ResponseScorer, pack_responses
from skillpress.rollouts.agents import Prompter
from skillpress.rollouts.agents.state_updates import Window
from skillpress.training.imitation import trainer
from skillpress.training.imitation.dataset import tokenize
from skillpress.training.imitation.demonstrations import DemonstratedStep, demonstrate
from skillpress.training.imitation.optimizers import muon
from skillpress.training.imitation.parameters import ImitationParameters
from skillpress.training.imitation.samples import Sample
from skillpress.training.imitation.trainer import SHORTEST, add_gradients, alike, batches, passes
from tests.support.environments.small_games import COUNTDOWN as SECTION
from tests.support.models.tiny import tiny_policy

TASKS = [
    Task("e3", "countdown", 0, {"target": 54, "numbers": [80, 2, 28, 1]}),
    Task("easy", "countdown", 0, {"target": 24, "numbers": [2, 3, 4]}),
]
PARAMETERS = ImitationParameters(
    thoughts=None,
    demonstrations=1,
    detour_rate=0.0,
    batch_size=16,
    optimizer="adamw",
    learning_rate=0.01,
    warmup_updates=50,
    epochs=60,
)
WITH_MUON = PARAMETERS.model_copy(update={"optimizer": "muon"})
LIMIT = 65_536
"""Tokens of a pass; here a whole batch fits."""
imitate = partial(trainer.imitate, token_limit=LIMIT)
OPTIMIZERS = pytest.mark.parametrize("parameters", [PARAMETERS, WITH_MUON], ids=["adamw", "muon"])


def demonstrations(rendering: str, count: int, detours: float = 0.0) -> list[list[tuple[str, str]]]:
    words = SECTION.rendering(rendering, 2)
    shown = demonstrate(TASKS, count, SECTION, words, Window(2), detours, seed=0)
    return [[(words.prompt(step.state), step.response) for step in steps] for steps in shown]


def test_following_a_demonstration_wins_its_task_and_each_prompt_shows_the_actions_before() -> None:
    for number, steps in enumerate(demonstrations("compact", 20, detours=0.3)):
        environment = SECTION.make()
        environment.reset(TASKS[number % 2])
        for index, (prompt, response) in enumerate(steps):
            past = [said for _, said in steps[:index]][-2:]
            assert prompt.split()[-2:] == ["_"] * (2 - len(past)) + past
            _, terminated, _, info = environment.step(response)
        assert terminated
        assert info.won


def test_in_text_a_demonstrated_action_is_canonical_and_stands_in_the_parsers_tags() -> None:
    (steps, _) = demonstrations("text", 2)
    assert all("Make 54 from the numbers" in prompt for prompt, _ in steps)
    assert all(response.startswith("<think>") and "<action>op(" in response for _, response in steps)


def test_demonstrations_are_decided_by_the_seed() -> None:
    assert demonstrations("compact", 6, 0.5) == demonstrations("compact", 6, 0.5)


def samples(policy: Policy) -> list[Sample]:
    words = [("3 4", "up stop"), ("9", "down stop"), ("5 6 7", "stop")] * 8
    return [(policy.encode([prompt])[0], policy.encode_response(response)) for prompt, response in words]


@OPTIMIZERS
def test_imitation_raises_the_likelihood_of_what_was_shown_to_near_certainty(
    parameters: ImitationParameters,
) -> None:
    policy = tiny_policy()
    rows = samples(policy)
    seen: list[tuple[int, int, float]] = []
    losses = imitate(policy, rows, parameters, 0, lambda *update: seen.append(update))
    assert seen == [(done, 120, loss) for done, loss in enumerate(losses, 1)]
    logprobs, _ = ResponseScorer(policy.model)(pack_responses(rows), 1.0)
    assert float(logprobs.detach().exp().min()) > 0.9
    assert losses[-1] < 0.1


@dataclass(frozen=True)
class AsSeen:
    """A rendering whose prompt is the observation."""

    parser: str = "plain"
    history: int | None = 0

    def prompt(self, state: AgentState) -> str:
        return state.observation

    def response(self, action: str, info: Info) -> str:
        return action


def test_a_step_whose_prompt_does_not_fit_is_not_imitated() -> None:
    policy = tiny_policy()
    seen = [DemonstratedStep(AgentState(TASKS[0], words, Info()), "stop") for words in ("3", "3 4 5", "3 4")]
    rows = tokenize(seen, Prompter(AsSeen(), policy.encode, 2), policy)
    assert [prompt for prompt, _ in rows] == policy.encode(["3", "3 4"])


def test_muon_moves_the_matrices_between_layers_and_adamw_the_rest() -> None:
    named = list(tiny_policy().model.named_parameters())
    first, second = muon(named, 0.01)
    moved = {id(weight) for group in first.param_groups for weight in group["params"]}
    names = {name for name, weight in named if id(weight) in moved}
    assert (
        "model.layers.0.self_attn.q_proj.weight" in names and "model.layers.0.mlp.down_proj.weight" in names
    )
    assert not any("embed" in name or "norm" in name or "lm_head" in name for name in names)
    rest = {id(weight) for group in second.param_groups for weight in group["params"]}
    assert moved | rest == {id(weight) for _, weight in named} and not moved & rest


class KilledError(Exception):
    """Raised in place of a kill."""


@OPTIMIZERS
@pytest.mark.parametrize("killed_after", [1, 60, 119])
def test_imitation_that_was_killed_goes_on_to_the_same_weights(
    tmp_path: Path, killed_after: int, parameters: ImitationParameters
) -> None:
    whole, killed, resumed = tiny_policy(), tiny_policy(), tiny_policy()
    losses = imitate(whole, samples(whole), parameters, 0)

    def kill(done: int, total: int, loss: float) -> None:
        if done == killed_after + 1:  # one update after the last saved one
            raise KilledError

    checkpoint = tmp_path / "imitation.pt"
    with pytest.raises(KilledError):
        imitate(killed, samples(killed), parameters, 0, kill, checkpoint, SaveTimer(0.0))
    seen: list[int] = []
    again = imitate(
        resumed,
        samples(resumed),
        parameters,
        0,
        lambda done, *_: seen.append(done),
        checkpoint,
        SaveTimer(0.0),
    )
    assert seen == list(range(killed_after + 1, 121)) and again == losses
    for one, other in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
        np.testing.assert_array_equal(one.detach().numpy(), other.detach().numpy())


def half(seed: int = 0) -> Policy:
    """A tiny policy in bfloat16."""
    policy = tiny_policy(seed)
    policy.model.to(torch.bfloat16)  # type: ignore[call-overload]
    return policy


def flat(policy: Policy) -> torch.Tensor:
    return torch.cat([weight.detach().flatten() for weight in policy.model.parameters()])


def test_a_bfloat16_policy_moves_as_far_as_a_float32_one_where_single_updates_round_to_nothing() -> None:
    """Without masters only a seventh of the weights move, and the total movement is 94% off."""
    parameters = PARAMETERS.model_copy(update={"learning_rate": 2e-5, "epochs": 100})
    policy, twin = half(), half()
    twin.model.to(torch.float32)  # type: ignore[call-overload]
    start = flat(twin)
    imitate(policy, samples(policy), parameters, 0)
    imitate(twin, samples(twin), parameters, 0)
    assert {weight.dtype for weight in policy.model.parameters()} == {torch.bfloat16}
    moved = flat(twin).bfloat16() != start.bfloat16()
    assert float(moved.float().mean()) > 0.2
    found = (flat(policy).float() - start)[moved]
    expected = (flat(twin).bfloat16().float() - start)[moved]
    assert float((found - expected).norm() / expected.norm()) < 0.1


def test_a_killed_bfloat16_imitation_goes_on_with_its_masters(tmp_path: Path) -> None:
    parameters = PARAMETERS.model_copy(update={"learning_rate": 1e-4, "epochs": 6})
    whole, killed, resumed = half(), half(), half()
    losses = imitate(whole, samples(whole), parameters, 0)

    def kill(done: int, total: int, loss: float) -> None:
        if done == 8:
            raise KilledError

    checkpoint = tmp_path / "imitation.pt"
    with pytest.raises(KilledError):
        imitate(killed, samples(killed), parameters, 0, kill, checkpoint, SaveTimer(0.0))
    assert imitate(resumed, samples(resumed), parameters, 0, checkpoint=checkpoint) == losses
    assert torch.equal(flat(whole), flat(resumed))


@pytest.mark.parametrize("content", [b"", b"no checkpoint", pickle.dumps({"losses": []}, protocol=2)])
def test_a_damaged_checkpoint_of_imitation_is_named(tmp_path: Path, content: bytes) -> None:
    checkpoint = tmp_path / "imitation.pt"
    checkpoint.write_bytes(content)
    policy = tiny_policy()
    with pytest.raises(StorageError, match=r"imitation\.pt: not a checkpoint of this imitation"):
        imitate(policy, samples(policy), PARAMETERS, 0, checkpoint=checkpoint)


@given(st.integers(1, 200), st.integers(1, 9), st.integers(0, 99))
def test_every_sample_is_shown_once_an_epoch_in_full_batches(count: int, size: int, seed: int) -> None:
    parameters = PARAMETERS.model_copy(update={"batch_size": size, "epochs": 2})
    found = list(batches([range(row, row + 1) for row in range(count)], parameters, seed))
    assert len(found) == 2 * -(-count // size)
    for epoch in (found[: len(found) // 2], found[len(found) // 2 :]):
        assert sorted(row for rows in epoch for row in rows) == list(range(count))
        assert sum(len(rows) != size for rows in epoch) <= 1


@given(st.lists(st.integers(1, 6), min_size=1, max_size=80), st.integers(1, 9), st.integers(0, 99))
def test_chains_are_drawn_as_one_and_fill_batches_of_about_the_size(
    lengths: list[int], size: int, seed: int
) -> None:
    edges = np.cumsum([0, *lengths])
    chains = [range(first, last) for first, last in itertools.pairwise(edges.tolist())]
    found = [
        rows.tolist()
        for rows in batches(chains, PARAMETERS.model_copy(update={"batch_size": size, "epochs": 1}), seed)
    ]
    assert sorted(row for rows in found for row in rows) == list(range(sum(lengths)))
    chain_of = np.repeat(np.arange(len(lengths)), lengths)
    updates = [{*chain_of[rows]} for rows in found]
    assert sum(map(len, updates)) == len(lengths)  # no chain is divided between updates
    assert all(
        row + 1 == after or chain_of[row] != chain_of[after]
        for rows in found
        for row, after in itertools.pairwise(rows)
    )
    assert all(abs(len(rows) - size) < max(lengths) for rows in found[:-1]) or max(lengths) > size


def test_a_conversation_goes_through_the_model_once_with_the_gradient_of_its_steps() -> None:
    policy = tiny_policy()
    first, answer, more, last = (
        policy.encode(["3 4 5"])[0],
        policy.encode_response("up stop"),
        (5, 6),
        policy.encode_response("down stop"),
    )
    talk = [(first, answer), (first + answer + more, last)]
    apart = [talk[0], (policy.encode(["7"])[0], policy.encode_response("stop")), talk[1]]
    together = Pairs.of([talk[0], talk[1], apart[1]])
    rows = next(passes(together, LIMIT, True))
    assert rows.tolist() == [0, 1]
    packed = pack_responses(together.select(rows))
    assert packed.size == sum(map(len, talk[1])) - 1  # every token but the last
    (one_loss, one), (other_loss, other) = gradients([*together.rows], LIMIT), gradients(apart, LIMIT)
    assert one_loss == pytest.approx(other_loss, rel=1e-5)
    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-7)


@given(st.lists(st.integers(1, 500), min_size=1, max_size=80))
def test_passes_hold_every_sample_once_and_none_much_shorter_than_the_longest(sizes: list[int]) -> None:
    groups = alike(sizes)
    assert sorted(row for group in groups for row in group) == list(range(len(sizes)))
    for group in groups:
        found = [sizes[row] for row in group]
        assert min(found) >= SHORTEST * max(found) and group == sorted(group)
    tops = [max(sizes[row] for row in group) for group in groups]
    assert all(after < SHORTEST * before for before, after in itertools.pairwise(tops))


def test_an_update_in_several_passes_is_the_update_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    policies, losses = (tiny_policy(), tiny_policy()), []
    words = [("3", "up stop"), ("3 4 5 6 7 8 9 10 11", "down up stop"), ("5 6 7 8", "stop")] * 5
    for policy, shortest in zip(policies, (SHORTEST, 0.0), strict=True):
        monkeypatch.setattr(trainer, "SHORTEST", shortest)
        rows = [(policy.encode([prompt])[0], policy.encode_response(said)) for prompt, said in words]
        assert (len(alike([len(prompt) + len(said) for prompt, said in rows])) > 1) == bool(shortest)
        losses.append(imitate(policy, rows, PARAMETERS.model_copy(update={"epochs": 3}), 0))
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)
    for one, other in zip(*(policy.model.parameters() for policy in policies), strict=True):
        np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), atol=2e-4)


tokens = st.lists(st.integers(3, 99), min_size=1, max_size=9).map(tuple)


@given(st.lists(st.tuples(tokens, tokens), min_size=1, max_size=24), st.integers(1, 60), st.booleans())
def test_no_pass_holds_more_tokens_than_the_limit_but_for_one_sample_that_does(
    samples: list[Sample], limit: int, shared: bool
) -> None:
    known = Pairs.of(samples)
    found = list(passes(known, limit, shared))
    assert sorted(row for rows in found for row in rows) == list(range(len(samples)))
    for rows in found:
        packed = pack_responses(known.select(rows))
        assert len(packed.owner) == 1 or packed.size <= limit
        fanned_out = len(packed.owner) * (packed.prompts.shape[1] + packed.continuations.shape[1])
        alone = len(packed.owner) == 1
        assert alone or not packed.continuations.shape[1] or fanned_out <= FAN_OUT * limit


@given(st.lists(st.tuples(tokens, tokens), min_size=1, max_size=24))
def test_passes_that_fit_are_those_of_before(samples: list[Sample]) -> None:
    """Equal bit for bit: another order of rows would round differently."""
    known = Pairs.of(samples)
    assume(not known.goes_on.any())
    found = [rows.tolist() for rows in passes(known, LIMIT, True)]
    assert found == alike([len(prompt) + len(said) for prompt, said in samples])


def gradients(rows: list[Sample], limit: int, checkpointed: bool = False) -> tuple[float, torch.Tensor]:
    """The loss of a batch, and its gradient as one vector."""
    policy = tiny_policy()
    if checkpointed:
        checkpoint_layers(policy.model)
    scorer = choose_scorer(policy.model.train())
    weights = MasterWeights(scorer.parameters())
    loss = add_gradients(scorer, weights, rows, sum(len(said) for _, said in rows), limit)
    return loss, torch.cat([master.grad.flatten() for master in weights.masters if master.grad is not None])


@pytest.mark.parametrize("checkpointed", [False, True], ids=["kept", "checkpointed"])
@pytest.mark.parametrize("limit", [1, 20, LIMIT])
def test_the_gradient_of_a_batch_is_that_of_the_mean_over_its_tokens_whatever_the_passes(
    limit: int, checkpointed: bool
) -> None:
    rows = samples(tiny_policy())
    assert (len(list(passes(Pairs.of(rows), limit, True))) > 2) == (limit < LIMIT)
    policy = tiny_policy()
    logprobs, _ = ResponseScorer(policy.model.train())(pack_responses(rows), 1.0)
    expected = -logprobs.mean()
    expected.backward()
    by_hand = [weight.grad.flatten() for weight in policy.model.parameters() if weight.grad is not None]
    loss, gradient = gradients(rows, limit, checkpointed)
    assert loss == pytest.approx(float(expected.detach()), rel=1e-5)
    torch.testing.assert_close(gradient, torch.cat(by_hand), rtol=1e-4, atol=1e-7)


def test_a_bfloat16_batch_in_many_passes_has_the_gradient_of_one() -> None:
    """Masters add up in float32 the gradients that passes would round."""

    def of(limit: int) -> torch.Tensor:
        policy = half()
        scorer = choose_scorer(policy.model.train())
        weights, rows = MasterWeights(scorer.parameters()), samples(policy)
        add_gradients(scorer, weights, rows, sum(len(said) for _, said in rows), limit)
        return torch.cat([master.grad.flatten() for master in weights.masters if master.grad is not None])

    one, many = of(LIMIT), of(1)
    assert float((one - many).norm() / one.norm()) < 0.02
