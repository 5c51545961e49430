"""A learner refuses a model that it would score wrongly, before any update, and an empty checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import PreTrainedModel

from skillpress.core.errors import StorageError
from skillpress.core.trajectory import Step
from skillpress.models.policy import PolicyError
from skillpress.models.policy.agreement import example_pairs
from skillpress.rollouts.workers.distributed import Ranks, free_port, join_ranks
from skillpress.training.algorithms.batch import Batch
from skillpress.training.loop.learner import Learner, Passing
from skillpress.training.loop.optimizer import AdamW
from skillpress.training.loop.policy_loss import PolicyLoss
from tests.support.models.families import family
from tests.support.training.batches import clipped


def strange(does: Callable[[torch.Tensor], bool]) -> PreTrainedModel:
    """A Llama that doubles its logits for some inputs, which its configuration does not show."""
    model = family("Llama")

    def double(module: object, arguments: object, named: dict, output: object) -> object:
        if does(named["input_ids"]):
            output.logits = 2 * output.logits  # type: ignore[attr-defined]
        return output

    model.register_forward_hook(double, with_kwargs=True)
    return model


def learner(model: PreTrainedModel) -> Learner:
    join_ranks(Ranks(), free_port())
    parts = [PolicyLoss(clipped(0.2, 0.2, 0.0))]
    optimizer = AdamW(0.1, configuration="zero0_fp32")
    return Learner(model, parts, optimizer, Passing(1.0, 100), Ranks())


def samples(*prompts: tuple[int, ...]) -> Batch:
    """A response of three tokens to each prompt."""
    steps = [Step(prompt, (3, 4, 5), (-4.0,) * 3, "", "", "", None, ()) for prompt in prompts]
    return Batch.of_steps(tuple(steps), np.ones(len(steps)), np.full(len(steps), 0.1))


def unseen(model: PreTrainedModel) -> int:
    """A token that occurs neither in the examples by which a family is checked nor in ``samples``."""
    shown = {token for pair in example_pairs(model) for ids in pair for token in ids}
    return min(set(range(6, 60)) - shown)


def test_a_family_that_disagrees_on_examples_is_refused_at_the_start() -> None:
    with pytest.raises(PolicyError, match=r"policy\.model: .*Llama.* nats from the model's own"):
        learner(strange(lambda ids: True))


def test_a_model_that_disagrees_on_the_first_real_samples_is_refused_before_its_first_update() -> None:
    token = unseen(family("Llama"))
    model = strange(lambda ids: bool((ids == token).any()))
    made = learner(model)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    with pytest.raises(PolicyError, match="nats from the model's own"):
        made.update(samples((1, 2), (1, 2, token)))
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())


def test_a_model_that_agrees_learns() -> None:
    model = strange(lambda ids: False)
    made = learner(model)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    made.update(samples((1, 2), (1, 2, 6)))
    assert not all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())


def test_a_folder_without_a_checkpoint_is_a_users_mistake_that_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=rf"{tmp_path}: holds no DeepSpeed checkpoint"):
        learner(family("Llama")).load(tmp_path)
