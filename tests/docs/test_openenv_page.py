"""The examples of docs/openenv.md, run from the page unchanged except for the port."""

from __future__ import annotations

import re
import subprocess
from dataclasses import fields
from itertools import islice
from pathlib import Path

import pytest
import yaml

from skillpress.cli.serve import PORT, _parser
from skillpress.environments.openenv.parameters import OpenEnvParameters
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import check_params, load_params, merge
from skillpress.integrations.serving import ServingLimits
from skillpress.rollouts.collection import requests
from tests.support.integrations.served import TASKS, served

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "openenv.md").read_text()
PYTHON = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
(OVERLAY,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
CLIENT = ROOT / ".venv-openenv"


def at(url: str, text: str) -> str:
    """The example with this server's port."""
    port = url.rpartition(":")[2]
    assert f"127.0.0.1:{PORT}" in text
    return text.replace(f"127.0.0.1:{PORT}", f"127.0.0.1:{port}")


@pytest.mark.skipif(not (CLIENT / ".installed").exists(), reason="needs OpenEnv's client: make openenv")
def test_openenvs_own_client_plays_an_episode() -> None:
    with served() as door:
        program = [CLIENT / "bin" / "python", "-c", at(door.url, PYTHON[0])]
        found = subprocess.run(program, capture_output=True, text=True, check=False, timeout=300)
    assert re.fullmatch(r"-?\d+\.\d+ (True|False) \d+\n", found.stdout), found.stderr


def test_the_protocol_is_played_without_it(capsys: pytest.CaptureFixture[str]) -> None:
    with served() as door:
        exec(compile(at(door.url, PYTHON[1]), "docs/openenv.md", "exec"), {"__name__": "example"})
    assert capsys.readouterr().out.splitlines() == ["Target: 7. Numbers: 1 2 4", "nothing_to_undo"]


def test_the_overlay_plays_on_a_server() -> None:
    with served() as door:
        values = merge(
            yaml.safe_load((ROOT / "params.yaml").read_text()), yaml.safe_load(at(door.url, OVERLAY))
        )
        params = check_params(merge(values, {"sampling": {"slots": 4}}), "docs/openenv.md")
        experiment = Experiment(params)
        tasks = list(islice(params.environment.checked_tasks(params.tasks.make(), 0), len(TASKS)))
        with experiment.collector(experiment.explorer()) as collector:
            played = collector.collect(requests(tasks, 4, 0, "test"))
    skills = {step.skills for each in played for step in each.steps}
    assert skills == {(name,) for name in ("Add", "Subtract", "Multiply", "Divide", "rollback", "reset")}
    assert {each.outcome for each in played} == {"won", "done"}


def test_the_page_names_every_key_and_limit_with_its_default() -> None:
    for name, field in OpenEnvParameters.model_fields.items():
        assert f"`{name}`" in PAGE or f"{name}:" in OVERLAY, name
        if f"| `{name}` |" in PAGE and isinstance(field.default, int | float):
            assert f"| `{name}` | {field.default:g} |" in PAGE, name
    options = {action.option_strings[-1]: action.default for action in _parser()._actions}
    for field in fields(ServingLimits):
        option = f"--{field.name.replace('_', '-')}"
        assert options[option] == field.default
        assert f"| `{option}` | {field.default:g} |" in PAGE, option
    assert load_params(ROOT / "params.yaml").reward.success == 10.0, "the page says 10 for a success"
