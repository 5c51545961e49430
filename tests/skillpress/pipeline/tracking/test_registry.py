"""A registered model is named after the environment that was played, in letters that MLflow accepts."""

from __future__ import annotations

from typing import Any

import pytest

from skillpress.environments.gymnasium_text.parameters import GymnasiumTextParameters
from skillpress.environments.openenv.parameters import OpenEnvParameters
from skillpress.experiment.params import load_params
from skillpress.pipeline.tracking.runs import registered_name

GAME: dict[str, Any] = {
    "name": "gymnasium_text",
    "max_steps": 4,
    "module": "",
    "kwargs": {},
    "won": {"reward": 1.0},
}
SERVER: dict[str, Any] = {"name": "openenv", "max_steps": 4, "opening": "Play.", "won_at": 1.0}


@pytest.mark.parametrize(
    ("environment", "title", "registered"),
    [
        (GymnasiumTextParameters(**GAME, id="Doors-v0"), "Doors-v0", "skillpress-Doors-v0"),
        (GymnasiumTextParameters(**GAME, id="mine.doors:Doors-v0"), "Doors-v0", "skillpress-Doors-v0"),
        (GymnasiumTextParameters(**GAME, id="textarena/Wordle-v0"), "textarena/Wordle-v0",
         "skillpress-textarena-Wordle-v0"),
        (OpenEnvParameters(**SERVER, url="http://127.0.0.1:8000"), "openenv at 127.0.0.1:8000",
         "skillpress-openenv-at-127.0.0.1-8000"),
        (load_params().environment, "countdown", "skillpress-countdown"),
    ],
)  # fmt: skip
def test_a_door_to_foreign_environments_is_called_as_the_one_behind_it(
    environment, title, registered
) -> None:
    assert environment.title == title
    assert registered_name(load_params().model_copy(update={"environment": environment})) == registered
