"""Settings of every test: no telemetry, no hub, one thread, and nothing in the repository's own mlruns/.

Importing ``skillpress.pipeline`` applies infra/settings.env; it must come before torch, MLflow or Prefect.
"""

import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

_SCRATCH = Path(tempfile.mkdtemp(prefix="skillpress-tests-"))
os.environ["MLFLOW_TRACKING_URI"] = f"sqlite:///{_SCRATCH}/mlflow/mlflow.db"
os.environ["PREFECT_HOME"] = str(_SCRATCH / "prefect")
os.environ["HF_HUB_OFFLINE"] = "1"

import skillpress.pipeline  # noqa: E402, F401
from skillpress.core.log_lines import VARIABLE, set_up  # noqa: E402

set_up()

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background programs of a script without Ctrl-C; programs of tests would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says something of the machine and its other work, not of the code.
# `make test` tries each law on few examples, the same ones each time, so that a failure repeats.
# `make test-laws` tries many more, others each time.
EXAMPLES = int(os.environ.get("SKILLPRESS_EXAMPLES", "40"))
settings.register_profile(
    "any machine",
    deadline=None,
    max_examples=EXAMPLES,
    derandomize="SKILLPRESS_EXAMPLES" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("any machine")

pytest.register_assert_rewrite("tests.support")

from tests.support.clone import Clone, reproduced_clone  # noqa: E402

LAUNCHERS = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@pytest.fixture(scope="module", autouse=True)
def no_launcher_is_left_behind() -> Iterator[None]:
    """A training in this process sets LOCAL_RANK, which DeepSpeed reads as long as it learns; accelerate
    takes that for a launcher and sets the others. Later modules and their programs would believe both."""
    before = {name: os.environ.get(name) for name in LAUNCHERS}
    yield
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@pytest.fixture
def log_level() -> Iterator[Callable[[str], None]]:
    """Sets the level of messages for one test: of this process, and of those that it starts."""
    before = os.environ.get(VARIABLE, "")

    def choose(level: str) -> None:
        os.environ[VARIABLE] = level

    yield choose
    choose(before)
    set_up()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests come first: a long one that starts last would leave the other workers idle."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


pytest_plugins = ("tests.support.selection", "tests.support.second_try")


@pytest.fixture(scope="session")
def repository() -> Path:
    """The repository under test."""
    return Path(__file__).parents[1]


@pytest.fixture(scope="session")
def reproduced(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A clone with the small experiment in it, made once for all processes of this session; to be copied."""
    ours = tmp_path_factory.getbasetemp()
    shared = ours.parent if "PYTEST_XDIST_WORKER" in os.environ else ours
    return reproduced_clone(repository, shared / "reproduced")


@pytest.fixture(scope="session")
def alfworld_data(repository: Path) -> str:
    """The folder that holds ALFWorld's official games."""
    return str(shared_data(repository, "alfworld", "ALFWorld's games are"))


@pytest.fixture(scope="session")
def qa_data(repository: Path) -> Path:
    """The folder that holds ``questions.parquet`` and ``paragraphs.parquet``."""
    return shared_data(repository, "qa", "questions and paragraphs are")


@pytest.fixture(scope="session")
def code_repair_data(repository: Path) -> Path:
    """The folder that holds QuixBugs and HumanEvalFix."""
    return shared_data(repository, "code_repair", "programs to repair are")


def shared_data(repository: Path, name: str, what: str) -> Path:
    """A folder of data that is no part of the repository; a test that needs it is skipped without."""
    home = os.environ.get("SKILLPRESS_DATA") or str(repository.parent / "shared" / "data")
    folder = Path(home) / name
    if not folder.is_dir():
        pytest.skip(f"{what} not at {folder}; set SKILLPRESS_DATA to the folder above it")
    return folder


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
