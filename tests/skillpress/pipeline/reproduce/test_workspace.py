import shutil
import subprocess
from pathlib import Path

import pytest

from skillpress.core.errors import ParamsError
from skillpress.experiment.params import load_params
from skillpress.pipeline.reproduce import workspace as module
from skillpress.pipeline.reproduce.workspace import Variant, WorkspaceError, prepare_workspace


@pytest.fixture
def small_repository(tmp_path: Path, repository: Path) -> Path:
    """A git repository with the real params.yaml, a package, and an ignored folder."""
    files = {
        "params.yaml": (repository / "params.yaml").read_text(),
        "params/grpo.yaml": "reward:\n  shaping: none\n",
        "params/typo.yaml": "reward:\n  shapping: none\n",
        "skillpress/a.py": "A = 1\n",
        "mlruns/README.md": "What MLflow writes.\n",
        ".gitignore": "/data/\n/workspaces/\n/.dvc/cache\n",
        "data/big.parquet": "not copied",
        ".dvc/config": "[core]\n",
        "dvc.lock": "schema: '2.0'\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "--all"], cwd=tmp_path, check=True)
    return tmp_path


GRPO = Variant((Path("params/grpo.yaml"),), seed=7)


@pytest.fixture(autouse=True)
def inside(small_repository: Path, monkeypatch) -> None:
    monkeypatch.chdir(small_repository)
    monkeypatch.setattr(module, "ROOT", small_repository)


def test_its_params_are_the_overlay_laid_over_params_yaml_with_the_seed(small_repository: Path) -> None:
    workspace = prepare_workspace(small_repository, GRPO)
    assert workspace == small_repository / "workspaces" / "grpo-seed7"
    merged, default = load_params(workspace / "params.yaml"), load_params(small_repository / "params.yaml")
    assert (merged.seed, merged.reward.shaping) == (7, "none")
    assert merged.training == default.training


def test_it_holds_the_sources_tracked_or_not_and_nothing_that_git_ignores(small_repository: Path) -> None:
    (small_repository / "skillpress" / "b.py").write_text("B = 2\n")
    workspace = prepare_workspace(small_repository, GRPO)
    assert (workspace / "skillpress" / "a.py").read_text() == "A = 1\n"
    assert (workspace / "skillpress" / "b.py").exists()
    assert not (workspace / "data").exists()
    assert not (workspace / "dvc.lock").exists()


def test_a_file_that_another_process_finishes_meanwhile_under_its_own_name_is_passed_over(
    small_repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = module.source_files(small_repository)
    monkeypatch.setattr(module, "source_files", lambda root: [*listed, Path("skillpress/.a.py.x7")])
    workspace = prepare_workspace(small_repository, GRPO)
    assert (workspace / "skillpress" / "a.py").exists()
    assert not (workspace / "skillpress" / ".a.py.x7").exists()


def test_preparing_again_keeps_what_mlflow_wrote_beside_its_readme(small_repository: Path) -> None:
    written = prepare_workspace(small_repository, GRPO) / "mlruns" / "mlflow.db"
    written.touch()
    prepare_workspace(small_repository, GRPO)
    assert written.exists()


def test_preparing_again_follows_the_sources_and_keeps_what_runs_made(small_repository: Path) -> None:
    workspace = prepare_workspace(small_repository, GRPO)
    for made in ("data/mine.parquet", "dvc.lock", "checkpoints/k/latest.json"):
        (workspace / made).parent.mkdir(parents=True, exist_ok=True)
        (workspace / made).write_text("made here")
    (small_repository / "skillpress" / "a.py").unlink()
    (small_repository / "skillpress" / "c.py").write_text("C = 3\n")
    prepare_workspace(small_repository, GRPO)
    assert not (workspace / "skillpress" / "a.py").exists()
    assert (workspace / "skillpress" / "c.py").exists()
    for made in ("data/mine.parquet", "dvc.lock", "checkpoints/k/latest.json"):
        assert (workspace / made).read_text() == "made here"


def test_an_unchanged_file_keeps_its_time_so_that_dvc_need_not_hash_it_again(small_repository: Path) -> None:
    workspace = prepare_workspace(small_repository, GRPO)
    before = {p: p.stat().st_mtime_ns for p in workspace.rglob("*") if p.is_file()}
    prepare_workspace(small_repository, GRPO)
    assert {p: p.stat().st_mtime_ns for p in workspace.rglob("*") if p.is_file()} == before


def test_a_wrong_overlay_is_refused_before_anything_is_written(small_repository: Path) -> None:
    with pytest.raises(ParamsError, match=r"typo\.yaml:\n  reward\.shapping: unknown key"):
        prepare_workspace(small_repository, Variant((Path("params/typo.yaml"),)))
    assert not (small_repository / "workspaces").exists()


def test_a_copy_without_git_is_refused_with_what_would_be_right(small_repository: Path) -> None:
    shutil.rmtree(small_repository / ".git")
    with pytest.raises(WorkspaceError, match=r"git cannot list its files \(fatal: .*clone the repository"):
        prepare_workspace(small_repository, GRPO)


def test_no_overlay_and_no_seed_is_the_repository_itself(small_repository: Path) -> None:
    assert prepare_workspace(small_repository, Variant()) == small_repository


def test_overlays_of_one_name_in_two_folders_have_a_workspace_each(small_repository: Path) -> None:
    (small_repository / "mine" / "params").mkdir(parents=True)
    places = ["params/grpo.yaml", "mine/grpo.yaml", "mine/params/grpo.yaml", "/elsewhere/params/grpo.yaml"]
    names = [Variant((Path(place),)).name for place in places]
    assert names[0] == "grpo"
    assert all(name.startswith("grpo-") for name in names[1:])
    assert len(set(names)) == len(places)


def test_an_overlay_has_one_workspace_however_its_place_is_written(
    small_repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (small_repository / "mine").mkdir()
    absolute = Variant((small_repository / "mine" / "grpo.yaml",)).name
    assert (
        Variant((Path("mine/grpo.yaml"),)).name == Variant((Path("mine/../mine/grpo.yaml"),)).name == absolute
    )
    assert Variant((small_repository / "params" / "grpo.yaml",)).name == "grpo"
    monkeypatch.chdir(small_repository / "mine")
    assert Variant((Path("grpo.yaml"),)).name == absolute
    assert Variant((Path("../params/grpo.yaml"),)).name == "grpo"


def test_assignments_lie_over_all_overlays_and_are_told_by_the_workspaces_name(
    small_repository: Path,
) -> None:
    variant = Variant((Path("params/grpo.yaml"),), 7, ("training.steps=5", "reward.shaping=segcost"))
    workspace = prepare_workspace(small_repository, variant)
    assert workspace.name == "grpo-reward.shaping=segcost-training.steps=5-seed7"
    params = load_params(workspace / "params.yaml")
    assert (params.training.steps, params.reward.shaping, params.seed) == (5, "segcost", 7)
    assert variant.options == [
        "--params", "params/grpo.yaml", "--set", "training.steps=5", "--set", "reward.shaping=segcost",
        "--seed", "7",
    ]  # fmt: skip


def test_one_value_has_one_workspace_however_it_is_written_and_in_any_order() -> None:
    one = Variant(assignments=("training.learning_rate=1e-4", "seed=3"))
    other = Variant(assignments=("seed=3", "training.learning_rate=0.0001"))
    assert one.name == other.name == "seed=3-training.learning_rate=0.0001"


def test_a_name_holds_no_character_that_a_folder_cannot_and_stays_different() -> None:
    texts = ("policy.model=/a/b", "policy.model=_a_b", "environment.urls=[a, b]", "policy.model=" + "x" * 300)
    names = [Variant(assignments=(text,), seed=1).name for text in texts]
    assert len(set(names)) == len(texts)
    assert all("/" not in name and len(name) <= 200 for name in names)


def test_an_overlay_that_is_named_twice_is_refused() -> None:
    twice = Variant((Path("params/grpo.yaml"), Path("params/../params/grpo.yaml")))
    with pytest.raises(ParamsError, match=r"--params: params/\.\./params/grpo\.yaml is named twice"):
        twice.values(Path())
