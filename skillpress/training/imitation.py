"""The warm start: supervised learning on an oracle's demonstrations.

Each demonstrated step is one sample: the prompt the policy would have seen, the response that the
demonstrator's action stands for. A policy made from scratch knows nothing of its world; without
these minutes no rollout would ever succeed and reinforcement learning would have nothing to go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from skillpress.environments import EnvironmentBundle, EnvironmentParameters
from skillpress.interface import AgentState, Environment, Rendering, StateUpdate
from skillpress.params import ImitationParameters
from skillpress.policy.policy import Policy
from skillpress.policy.scoring import ResponseScorer
from skillpress.seeds import derive, generator
from skillpress.trajectory import Task


@dataclass(frozen=True)
class Demonstrations:
    """Demonstrated steps as padded rows of tokens."""

    tokens: NDArray[np.int32]
    """[steps, width] prompt and response, padded on the right."""
    prompt_lengths: NDArray[np.int64]
    lengths: NDArray[np.int64]
    """[steps] tokens of prompt and response together."""

    def __len__(self) -> int:
        return len(self.tokens)


@dataclass(frozen=True)
class DemonstratedStep:
    """What a demonstration says at one step, as text."""

    prompt: str
    response: str


def demonstrate(
    tasks: Sequence[Task],
    count: int,
    bundle: EnvironmentBundle,
    section: EnvironmentParameters,
    rendering: Rendering,
    update_state: StateUpdate,
    detour_rate: float,
    seed: int,
) -> Iterator[list[DemonstratedStep]]:
    """``count`` demonstrations, the tasks visited in order and again from the start."""
    oracle, environment = bundle.oracle(section), bundle.make(section)
    for number in range(count):
        task = tasks[number % len(tasks)]
        words = oracle(task, detour_rate, derive(seed, "demonstration", number))
        yield list(_follow(environment, task, words, rendering, update_state))


def _follow(
    environment: Environment,
    task: Task,
    words: Sequence[str],
    rendering: Rendering,
    update_state: StateUpdate,
) -> Iterator[DemonstratedStep]:
    observation, info = environment.reset(task)
    state = AgentState(task, observation, info)
    for word in words:
        prompt = rendering.prompt(state)
        observation, _, _, info = environment.step(word)
        response = rendering.response(word, info)
        yield DemonstratedStep(prompt, response)
        state = update_state(state, "", word, observation, info)


def tokenize(steps: Sequence[DemonstratedStep], policy: Policy) -> Demonstrations:
    """Token rows of demonstrated steps."""
    prompts = policy.encode([step.prompt for step in steps])
    known = {response: policy.encode_response(response) for response in {s.response for s in steps}}
    rows = [prompt + known[step.response] for prompt, step in zip(prompts, steps, strict=True)]
    tokens = np.zeros((len(rows), max(map(len, rows))), dtype=np.int32)
    for index, row in enumerate(rows):
        tokens[index, : len(row)] = row
    return Demonstrations(tokens, np.array([*map(len, prompts)]), np.array([*map(len, rows)]))


def imitate(
    policy: Policy,
    demonstrations: Demonstrations,
    parameters: ImitationParameters,
    seed: int,
    on_update: Callable[[int, int, dict[str, float]], None] = lambda done, total, metrics: None,
) -> dict[str, float]:
    """Train the policy in place on the mean negative log-likelihood of the responses' tokens.

    Args:
        on_update: called with (updates done, updates in all, metrics of the last one).

    Returns:
        ``loss`` (nats per token), the mean over the last tenth of the updates, and ``updates``.
    """
    scorer = ResponseScorer(policy.model.train())
    optimizer = torch.optim.AdamW(
        scorer.parameters(), lr=parameters.learning_rate, weight_decay=0.01, fused=True
    )
    total = parameters.epochs * -(-len(demonstrations) // parameters.batch_size)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda done: min(1.0, (done + 1) / 50) * (1 - done / total)
    )
    recent: list[float] = []
    for done, rows in enumerate(_batches(len(demonstrations), parameters, seed), 1):
        input_ids, predicting, targets = _pack(demonstrations, rows, policy.model.device)
        logprobs, _ = scorer(input_ids, predicting, targets, 1.0)
        loss = -logprobs.mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(scorer.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        recent = [*recent[-(total // 10) :], float(loss.detach())]
        on_update(done, total, {"loss": recent[-1]})
    policy.model.eval()
    return {"loss": float(np.mean(recent)), "updates": float(total)}


def _batches(count: int, parameters: ImitationParameters, seed: int) -> Iterator[NDArray[np.int64]]:
    for epoch in range(parameters.epochs):
        order = generator(seed, "imitation", epoch).permutation(count)
        for first in range(0, count, parameters.batch_size):
            yield order[first : first + parameters.batch_size]


def _pack(
    demonstrations: Demonstrations, rows: NDArray[np.int64], device: torch.device
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(input ids [rows, width], predicting [tokens], targets [tokens]) of one batch."""
    ends, begins = demonstrations.lengths[rows], demonstrations.prompt_lengths[rows]
    width = int(ends.max())
    tokens = torch.from_numpy(demonstrations.tokens[rows, :width].astype(np.int64)).to(device)
    columns = torch.arange(width - 1, device=device)
    inside = (columns >= torch.from_numpy(begins - 1).to(device)[:, None]) & (
        columns < torch.from_numpy(ends - 1).to(device)[:, None]
    )
    return tokens[:, :-1].contiguous(), inside.flatten().nonzero().squeeze(1), tokens[:, 1:][inside]
