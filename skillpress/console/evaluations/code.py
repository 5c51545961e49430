"""Which code decides an evaluation's episodes, and with it whether an unfinished evaluation may go on."""

from __future__ import annotations

from pathlib import Path

from skillpress.core.lab import SOURCE, lab_file
from skillpress.environments import bundle
from skillpress.experiment.params import Params
from skillpress.pipeline.graph import read_stage

CHAT = Path("skillpress/play/chat")
"""The one agent that no stage lets play."""


def deciding_code(params: Params) -> list[Path]:
    """Files and folders of the library: what ``dvc.yaml`` says that collected episodes depend on, what this
    environment needs beyond it, and the chat agent. Tests hold all to what is imported."""
    stage = read_stage("collect_rollouts", params.model_dump(mode="json"), lab_file("dvc.yaml"))
    library = [path for path in stage.dependencies if path.parts[0] == "skillpress"]
    library = [path for path in library if path.parts[1] != "pipeline"]
    return [SOURCE / path for path in (*library, *bundle(params.environment.name).code, CHAT)]
