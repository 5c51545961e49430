from pathlib import Path
from zlib import crc32

import pytest
from mlflow import MlflowClient

from skillpress.storage import StorageError
from tasks import exit_codes
from tasks.stage import Stage, run_stage
from tasks.tracking import create_database


@pytest.fixture(scope="module", autouse=True)
def database() -> None:
    create_database()


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, repository: Path, monkeypatch, request: pytest.FixtureRequest) -> None:
    """A folder with params.yaml; the seed is the test's own, so that no test resumes another's run."""
    monkeypatch.chdir(tmp_path)
    text = (repository / "params.yaml").read_text()
    Path("params.yaml").write_text(text.replace("seed: 0", f"seed: {crc32(request.node.name.encode())}"))


def outcome(work) -> tuple[int, str, set[str]]:
    """(exit code, MLflow status of the stage's run, its artifacts)."""
    seen: list[str] = []

    def watched(stage: Stage) -> None:
        seen.append(stage.run.run_id)
        work(stage)

    code = run_stage("prepare_tasks", watched)
    client = MlflowClient()
    artifacts = {item.path for item in client.list_artifacts(seen[0])}
    return code, client.get_run(seen[0]).info.status, artifacts


@pytest.mark.parametrize(
    "error", [StorageError("x.parquet: no such file"), ValueError("splits overlap: 5=1,2")]
)
def test_what_a_user_can_put_right_is_one_line_and_a_code_of_its_own(error: Exception, capsys) -> None:
    def work(stage: Stage) -> None:
        raise error

    assert outcome(work) == (exit_codes.USER_ERROR, "FAILED", {"error.txt"})
    assert capsys.readouterr().err == f"prepare_tasks: {error}\n"


def test_ctrl_c_is_one_line_and_130(capsys) -> None:
    def work(stage: Stage) -> None:
        raise KeyboardInterrupt

    assert outcome(work) == (130, "KILLED", set())
    assert capsys.readouterr().err.count("\n") == 1


def test_a_bug_keeps_its_traceback(capsys) -> None:
    def work(stage: Stage) -> None:
        raise AttributeError("bug")

    with pytest.raises(AttributeError):
        run_stage("prepare_tasks", work)


def test_a_stage_that_is_done_says_so(capsys) -> None:
    assert outcome(lambda stage: None) == (0, "FINISHED", set())
    assert capsys.readouterr().out.startswith("prepare_tasks: done in ")


def test_wrong_parameters_are_refused_before_any_work(capsys) -> None:
    Path("params.yaml").write_text(Path("params.yaml").read_text().replace("seed: ", "seed: about "))

    def work(stage: Stage) -> None:
        pytest.fail("worked on wrong parameters")

    assert run_stage("prepare_tasks", work) == exit_codes.USER_ERROR
    assert "seed: is 'about" in capsys.readouterr().err
