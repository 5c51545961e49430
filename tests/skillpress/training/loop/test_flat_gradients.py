"""DeepSpeed's bfloat16 step over all weights at once: the same bits as its own."""

from __future__ import annotations

import numpy as np
import torch

from skillpress.rollouts.workers.distributed import Ranks, free_port, join_ranks
from skillpress.training.algorithms.batch import Batch
from skillpress.training.loop.learner import Learner, Passing
from skillpress.training.loop.measured import Totals
from skillpress.training.loop.optimizer import AdamW
from skillpress.training.loop.policy_loss import PolicyLoss
from tests.support.models.tiny import tiny_policy
from tests.support.training.batches import clipped, steps_of_three_tokens


def samples(advantage: float = 1.0) -> Batch:
    steps = steps_of_three_tokens()
    return Batch.of_steps(steps, np.full(len(steps), advantage), np.full(len(steps), 0.1))


def learner(clipping: float = 1.0) -> Learner:
    """A learner whose updates have several passes."""
    join_ranks(Ranks(), free_port())
    model = tiny_policy().model
    torch.nn.Module.to(model, torch.bfloat16)
    optimizer = AdamW(1e-2, gradient_clipping=clipping, configuration="zero1_bf16")
    return Learner(model, [PolicyLoss(clipped(0.2, 0.2, 0.0))], optimizer, Passing(1.0, 12), Ranks())


def trained(made: Learner) -> tuple[list[float | None], dict[str, torch.Tensor]]:
    """The gradient's norms of three updates, and the weights after them."""
    made.begin_step(1)
    norms = [made.update(samples(advantage)).gradient_norm for advantage in (1.0, -2.0, 0.5)]
    return norms, {name: weight.clone() for name, weight in made.weights().items()}


def test_weights_and_norms_are_deepspeeds_to_the_bit() -> None:
    flat, own = learner(clipping=0.01), learner(clipping=0.01)
    from deepspeed.runtime.bf16_optimizer import BF16_Optimizer

    assert type(flat.engine.optimizer).__name__ == "FlatGradients"
    own.engine.optimizer.__class__ = BF16_Optimizer
    (norms, weights), (others, expected) = trained(flat), trained(own)
    assert norms == others and max(norm or 0 for norm in norms) > 0.01, "they are clipped"
    assert all(torch.equal(weights[name], weight) for name, weight in expected.items())


def test_a_gradient_that_is_not_finite_changes_no_weight_and_the_next_one_does() -> None:
    made = learner()
    made.begin_step(1)
    made.update(samples())
    before = {name: weight.clone() for name, weight in made.weights().items()}
    assert made.update(samples(float("inf"))).gradient_norm == float("inf")
    assert all(torch.equal(before[name], weight) for name, weight in made.weights().items())
    assert np.isfinite(made.update(samples()).gradient_norm or np.nan)
    assert not all(torch.equal(before[name], weight) for name, weight in made.weights().items())


def test_metrics_of_several_passes_are_summed_in_double_precision() -> None:
    totals = Totals()
    small = torch.tensor(2.0**-30)
    totals.add({"loss": torch.tensor(1.0), "tokens": torch.tensor(3)})
    totals.add({"loss": small, "entropy": small})
    assert totals.read(torch.tensor(0.5)) == ({"loss": 1 + 2.0**-30, "tokens": 3, "entropy": 2.0**-30}, 0.5)
    assert totals.read(None)[1] is None
