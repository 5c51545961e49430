"""A rank imitates as the parameters ask."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from skillpress.core.errors import ParamsError
from skillpress.core.resume import ResumeStore
from skillpress.core.task_files import write_tasks
from skillpress.environments.section import SplitSizes
from skillpress.experiment.imitation import ImitationJob, ImitationResult, imitate_demonstrations
from skillpress.experiment.params import Params, load_params
from skillpress.models.policy import load_policy
from skillpress.training.imitation import trainer


@pytest.fixture
def params(tmp_path: Path, repository: Path) -> Params:
    """A small imitation of Countdown, whose tasks are in the test's folder."""
    params = load_params(repository / "params.yaml", repository / "params" / "smoke.yaml")
    made = params.environment.checked_tasks(SplitSizes(32, 1, 1), 0)
    write_tasks(tmp_path / "train.parquet", [task for task in made if task.split == "train"])
    section = params.imitation.model_copy(update={"demonstrations": 100, "batch_size": 32})
    return params.model_copy(update={"imitation": section})


def imitated(params: Params, folder: Path, name: str) -> ImitationResult:
    job = ImitationJob(params, folder / "train.parquet", folder / name, ResumeStore(folder, f"{name}-store"))
    return imitate_demonstrations(job, lambda rank, progress: None)


def with_training(params: Params, **changes: object) -> Params:
    return params.model_copy(update={"training": params.training.model_copy(update=changes)})


def test_passes_are_bounded_and_layers_checkpointed_as_the_section_training_asks(
    params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed: list[tuple[str, int]] = []
    real = trainer.add_gradients

    def observed(scorer: trainer.Scorer, *arguments: object) -> float:
        scorer.model.base_model.register_forward_hook(
            lambda module, _, named, output: passed.append((scorer.name, named["input_ids"].numel())),
            with_kwargs=True,
        )
        monkeypatch.setattr(trainer, "add_gradients", real)
        return real(scorer, *arguments)  # type: ignore[arg-type]

    results = {}
    for name, changes in {
        "whole": {},
        "bounded": {"microbatch_tokens": 60},
        "checkpointed": {"microbatch_tokens": 60, "gradient_checkpointing": True},
    }.items():
        passed.clear()
        monkeypatch.setattr(trainer, "add_gradients", observed)
        results[name] = imitated(with_training(params, **changes), tmp_path, name)
        most = max(tokens for _, tokens in passed)
        assert (most > 60) == (name == "whole")
        assert {scorer for scorer, _ in passed} == {"tree" if name == "checkpointed" else "cached"}
        assert not load_policy(tmp_path / name).model.is_gradient_checkpointing
    for name in ("bounded", "checkpointed"):
        np.testing.assert_allclose(results[name].losses, results["whole"].losses, rtol=1e-3)


def test_it_says_the_largest_rate_of_its_updates(params: Params, tmp_path: Path) -> None:
    result = imitated(params, tmp_path, "policy")
    assert 0.9 * params.imitation.learning_rate <= result.peak_rate <= params.imitation.learning_rate


def test_demonstrations_of_which_no_prompt_fits_are_refused(params: Params, tmp_path: Path) -> None:
    short = params.model_copy(update={"policy": params.policy.model_copy(update={"context_tokens": 1})})
    with pytest.raises(
        ParamsError, match=r"no prompt of 100 demonstrations fits into policy\.context_tokens"
    ):
        imitated(short, tmp_path, "policy")
