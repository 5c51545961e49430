"""An experiment's environments run where their section says."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillpress.environments.countdown.parameters import CountdownParameters
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import load_params
from skillpress.rollouts.collection import SyncVectorEnv, ThreadVectorEnv, WorkerVectorEnv


@pytest.mark.parametrize(
    ("hosting", "kind"),
    [("in_process", SyncVectorEnv), ("workers", WorkerVectorEnv), ("threads", ThreadVectorEnv)],
)
def test_environments_live_where_the_section_says(
    hosting: str, kind: type, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = Experiment(load_params(repository / "params.yaml"))
    monkeypatch.setattr(CountdownParameters, "hosting", hosting)
    with experiment.collector(experiment.explorer()) as collector:
        assert isinstance(collector.environments, kind)
