"""A real language model writes its reflection: SmolLM2-135M-Instruct, on two short failures of Countdown.

It shows that the reflection is asked for, that every prompt of the second attempt and no plain prompt has it,
and that a lesson's loss equals that of the model's own forward passes. It does not show that so small a model
learns from it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from skillpress.environments.section import SplitSizes
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import load_params
from skillpress.experiment.training_job import experience
from skillpress.models.policy.scoring import ResponseScorer
from skillpress.rollouts.collection import requests
from skillpress.training.algorithms.batch import Batch
from skillpress.training.experience.erl import LEARNED, REQUEST
from skillpress.training.loop.lessons import Lessons, lessons_of
from skillpress.training.loop.scoring_passes import ScoringPasses
from skillpress.training.loop.update import Update

ROOT = Path(__file__).parents[4]
OVERLAY = """
processes: 1
environment: {max_steps: 2, max_numbers: 3}
policy: {model: smollm2-135m, rendering: text, history: 2, context_tokens: 1024}
imitation: {demonstrations: 0}
sampling: {max_new_tokens: 12, slots: 8}
experience: {name: erl, distill: 0.5, kl: 0.5, retries: 2, reflection: own}
"""

pytestmark = pytest.mark.thorough


def test_a_language_model_reflects_on_failures_and_is_taught_without_it(tmp_path: Path) -> None:
    (tmp_path / "overlay.yaml").write_text(OVERLAY)
    params = load_params(ROOT / "params.yaml", tmp_path / "overlay.yaml")
    experiment = Experiment(params)
    policy = experiment.starting_policy()
    method = experience(params, policy)
    assert method is not None and method.reflection is not None
    made = params.environment.checked_tasks(SplitSizes(2, 1, 1), params.seed)
    tasks = [task for task in made if task.split == "train"]
    sampling = experiment.training_sampling
    agent = experiment.agent(policy, experiment.engine(policy), sampling, method.reflection)
    with experiment.collector(agent) as collector:
        failed = collector.collect(requests(tasks, 1, 0, "train", 1))
        second = collector.collect(method.attempts(tasks, failed))
    assert len(second) == 2 and not any(each.won for each in failed), "two steps are too few for it"
    for first, episode in zip(failed, second, strict=True):
        (reflection,) = episode.summaries
        asked = policy.decode(reflection.decision.prompt_ids)
        assert reflection.before == 0 and REQUEST.strip() in asked
        assert f"failed ({first.outcome})" in asked
        assert all(f"you did '{step.action or '(none)'}'" in asked for step in first.steps)
        wrote = reflection.decision.thought
        assert reflection.decision.response_ids and wrote
        for step in episode.steps:
            plain = policy.decode(step.plain_prompt_ids or ())
            assert policy.decode(step.prompt_ids).count(f"{LEARNED}\n{wrote}") == 1
            assert LEARNED not in plain and "Countdown" in plain
        assert episode.steps[0].plain_prompt_ids == first.steps[0].prompt_ids, "the same first state"
    lesson = second[0].steps[0]
    update = Update(Batch.of_steps(()), lessons_of([lesson], np.full(1, 0.5)))
    section = params.experience.model_copy(update={"kl": 2.0})
    part = Lessons(section, policy.model.config.vocab_size)
    scoring = ScoringPasses(ResponseScorer(policy.model), 1.0, 2048, "cpu")
    (each,) = part.passes(update, scoring)
    with torch.no_grad():
        found, _ = part.loss(each, update, scoring)
        plain, held = (
            torch.log_softmax(
                policy.model(torch.tensor([prompt + lesson.response_ids])).logits[0, len(prompt) - 1 : -1], -1
            )
            for prompt in (lesson.plain_prompt_ids or (), lesson.prompt_ids)
        )
    taken = plain[torch.arange(len(plain)), torch.tensor(lesson.response_ids)].sum()
    kl = torch.nn.functional.kl_div(plain, held, reduction="sum", log_target=True)
    assert float(kl) > 0
    assert float(found) == pytest.approx(0.5 * float(2.0 * kl - 0.5 * taken), rel=1e-3)
