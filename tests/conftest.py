"""Settings of every test: no telemetry, no hub, one thread, and nothing in the repository's own mlruns/.

Importing ``tasks`` applies infra/settings.env; it must come before torch, MLflow or Prefect.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

_SCRATCH = Path(tempfile.mkdtemp(prefix="skillpress-tests-"))
os.environ["MLFLOW_TRACKING_URI"] = f"sqlite:///{_SCRATCH}/mlflow/mlflow.db"
os.environ["PREFECT_HOME"] = str(_SCRATCH / "prefect")
os.environ["HF_HUB_OFFLINE"] = "1"

import tasks  # noqa: E402, F401

# How long an example takes says something of the machine and its other work, not of the code.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

# Modules there serve tests in other folders too.
for shared in ("algorithms", "chat", "engines", "experiment", "policy", "rollout", "skills"):
    sys.path.append(str(Path(__file__).parent / "skillpress" / shared))
sys.path.append(str(Path(__file__).parent / "tasks"))


@pytest.fixture(scope="session")
def repository() -> Path:
    """The repository under test."""
    return Path(__file__).parents[1]


@pytest.fixture(scope="session")
def alfworld_data(repository: Path) -> str:
    """The folder that holds ALFWorld's official games."""
    home = os.environ.get("SKILLPRESS_DATA") or str(repository.parent / "shared" / "data")
    folder = Path(home) / "alfworld"
    if not folder.is_dir():
        pytest.skip(f"ALFWorld's games are not at {folder}; set SKILLPRESS_DATA to the folder above it")
    return str(folder)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 100 kB, mounted for one test."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=100k", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mount, check=False).returncode:
        pytest.skip("no disk can be mounted here; root can, on most machines")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests run side by side (``--dist loadgroup``): those of one module share its clones and servers
    and stay together, unless a mark says that they need nothing of it."""
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
