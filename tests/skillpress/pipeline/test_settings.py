import os
import subprocess
import sys
from pathlib import Path

from skillpress.pipeline import settings


def test_make_and_python_read_the_same_values_from_the_one_file(repository: Path) -> None:
    values = settings.read(repository / "infra" / "settings.env", repository)
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    printed = subprocess.run(
        ["make", "--silent", "--eval", "print-environment: ; @env", "print-environment"],
        cwd=repository, env=environment, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    of_make = dict(line.split("=", 1) for line in printed.splitlines() if "=" in line)
    assert values == {name: of_make.get(name) for name in values}
    assert values["MLFLOW_TRACKING_URI"] == f"sqlite:///{repository}/mlruns/mlflow.db"


def test_what_the_caller_has_set_stays(monkeypatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    settings.apply()
    assert os.environ["OMP_NUM_THREADS"] == "3"


def test_a_lab_sets_further_variables_only_where_its_code_runs(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "infra").mkdir()
    (tmp_path / "infra" / "settings.env").write_text("BROWSER ?= mine\nSKILLPRESS_TRACES ?= 7\n")
    monkeypatch.setattr("skillpress.core.lab.ROOT", tmp_path)
    monkeypatch.setattr(os, "environ", {"PATH": os.environ["PATH"]})
    settings.apply()
    assert "BROWSER" not in os.environ and os.environ["SKILLPRESS_TRACES"] == "7"
    settings.apply_all()
    assert os.environ["BROWSER"] == "mine"


def test_telemetry_of_every_tool_is_off_in_a_fresh_process(repository: Path) -> None:
    code = (
        "import flows\n"
        "from dvc import analytics\n"
        "from mlflow.telemetry.utils import is_telemetry_disabled\n"
        "from prefect.settings import get_current_settings\n"
        "assert not analytics.is_enabled()\n"
        "assert is_telemetry_disabled()\n"
        "assert not get_current_settings().server.analytics_enabled\n"
    )
    known = set(settings.read(repository / "infra" / "settings.env", repository))
    environment = {name: value for name, value in os.environ.items() if name not in known}
    subprocess.run([sys.executable, "-c", code], cwd=repository, env=environment, check=True)
