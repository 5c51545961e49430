"""The wheel as a user has it: without an extra, in an empty environment, away from this repository.

Not collected with the other tests, since it installs packages; ``make wheel-test`` runs it. What the commands
are given is made here, with everything installed, and where both can do it they must say the same.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import urllib.request
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from safetensors.numpy import load_file

from skillpress.cli.command import main
from skillpress.core.rollout_files import write_rollouts
from skillpress.core.task_files import write_tasks
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import check_params, merge, read_yaml
from skillpress.pipeline import exit_codes
from skillpress.pipeline.files import EVALUATION_ROLLOUTS, POLICIES, TRAINED, split_file
from skillpress.pipeline.reproduce.workspace import source_files
from skillpress.rollouts.collection import requests

MOST_MIB = 300
"""What an empty environment may grow by."""
UNWANTED = ("torch", "transformers", "deepspeed", "dvc", "mlflow", "prefect", "numba", "scipy", "plotly")
RUN = {
    "tasks": {"train": 1, "validation": 1, "test": 12},
    "evaluation": {"runs": 1, "votes": 1},
    "training": {"steps": 7},
}


@dataclass(frozen=True)
class Installed:
    """An environment with nothing but the base layer."""

    python: Path
    grown_mib: float
    folder: Path
    """Where its commands run: no lab is here or above."""

    def __call__(self, *words: str | Path, code: int = 0) -> tuple[str, str]:
        """What ``skillpress WORDS`` says on (stdout, stderr)."""
        done = subprocess.run(
            self.command(*words), cwd=self.folder, env=self.variables, capture_output=True, text=True
        )
        assert done.returncode == code, done.stderr
        return done.stdout, done.stderr

    def command(self, *words: str | Path) -> list[str]:
        return [str(self.python.with_name("skillpress")), *map(str, words)]

    @property
    def variables(self) -> dict[str, str]:
        """The caller's environment without what would lead back to this repository or its settings."""
        kept = ("HOME", "LANG", "TMPDIR")
        return {"PATH": "/usr/bin:/bin"} | {name: os.environ[name] for name in kept if name in os.environ}


@pytest.fixture(scope="session")
def wheel(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that no build/ is left here and none that was left goes into it."""
    folder = tmp_path_factory.mktemp("wheel")
    for file in (*source_files(repository), Path("params.yaml")):  # which a workspace has for itself
        (folder / "source" / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(repository / file, folder / "source" / file)
    pip(
        Path(sys.executable),
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        folder,
        folder / "source",
    )
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def skillpress(wheel: Path, repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    python, empty = folder / "venv" / "bin" / "python", mib(folder / "venv")
    pip(python, "install", "--constraint", repository / "constraints.txt", wheel)
    (folder / "work").mkdir()
    return Installed(python, mib(folder / "venv") - empty, folder / "work")


@pytest.fixture(scope="session")
def run(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as a finished experiment leaves it; every policy is the random explorer."""
    folder = tmp_path_factory.mktemp("run")
    values = merge(read_yaml(repository / "params.yaml"), RUN)
    experiment = Experiment(check_params(values, "test"))
    params = experiment.params
    sizes = params.tasks.make()
    made = params.environment.checked_tasks(sizes, params.seed)
    tasks = [task for task in made if task.split == "test"]
    explorer = experiment.collector(experiment.explorer())
    episodes = []
    for policy in POLICIES:
        wanted = requests(tasks, 1, 0, policy, "run-0", policy=policy, run=0)
        step = params.training.steps if policy == TRAINED else 0
        episodes += explorer.collect(wanted, policy_version=step)
    (folder / "results").mkdir()
    (folder / "params.yaml").write_text(yaml.safe_dump(values))
    write_tasks(folder / split_file("test"), tasks)
    write_rollouts(folder / EVALUATION_ROLLOUTS, episodes)
    evaluation = {
        "checkpoint": {"rule": "last", "step": 7, "validation_success": None},
        "policies": {},
        "comparisons": {},
    }
    (folder / "results" / "evaluation.json").write_text(json.dumps(evaluation))
    return folder


@pytest.fixture(scope="session")
def evaluations(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two evaluations of the random explorer on the same tasks."""
    one, other = (tmp_path_factory.mktemp("evaluations") / name for name in ("one", "other"))
    for folder in (one, other):
        small = ("--agent", "explorer", "--environment", "countdown", "--tasks", "12", "--votes", "3")
        assert main(["evaluate", *small, "--output", str(folder)]) == 0
    return one, other


@pytest.fixture(scope="session")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The logs of an agent that often does the same, and beside them the same in other files."""
    chance, lines = random.Random(0), []
    for number in range(60):
        tools = ["look", "open", *(["edit", "test"] * chance.randint(1, 3))]
        calls = [
            {"id": str(n), "function": {"name": tool, "arguments": "{}"}} for n, tool in enumerate(tools)
        ]
        said = [{"role": "user", "content": "Mend it."}, {"role": "assistant", "tool_calls": calls}]
        lines.append(json.dumps({"task_id": f"t{number % 20}", "messages": said, "solved": number % 3 > 0}))
    file = tmp_path_factory.mktemp("log") / "log.jsonl"
    file.write_text("\n".join(lines))
    with zipfile.ZipFile(file.with_suffix(".zip"), "w") as archive:
        archive.write(file, "runs/log.jsonl")
    rows = pl.DataFrame([json.loads(line) for line in lines], infer_schema_length=None)
    rows.write_parquet(file.with_suffix(".parquet"))
    rows.write_ipc_stream(file.with_suffix(".arrow"))
    return file


def test_the_wheel_has_one_package_its_types_its_licence_and_the_reference_lab(
    wheel: Path, repository: Path
) -> None:
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
        params = opened.read("skillpress/pipeline/lab/params.yaml")
    top = {name.split("/")[0] for name in names}
    assert sorted(re.sub(r"-.*", "", name) for name in top) == ["skillpress", "skillpress"]
    assert {"skillpress/py.typed", "skillpress/pipeline/lab/infra/settings.env"} <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert params == (repository / "params.yaml").read_bytes()
    assert not [name for name in names if "__pycache__" in name]


def test_the_base_layer_is_small_and_holds_no_torch(skillpress: Installed) -> None:
    print(f"\nthe base layer takes {skillpress.grown_mib:.0f} MiB")
    found = f"import importlib.util as u; print([m for m in {UNWANTED} if u.find_spec(m)])"
    said = subprocess.run([skillpress.python, "-c", found], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"
    assert skillpress.grown_mib <= MOST_MIB


def test_the_help_comes_at_once(skillpress: Installed) -> None:
    seconds = []
    for _ in range(5):
        started = time.monotonic()
        assert "skills" in skillpress("--help")[0]
        seconds.append(time.monotonic() - started)
    print(f"\nskillpress --help takes {min(seconds):.2f} s")  # the machine's other work decides: not asserted


def test_doctor_says_what_is_there_and_how_to_get_the_rest(skillpress: Installed) -> None:
    said, _ = skillpress("doctor")
    assert re.search(r"ok  polars +\d", said)
    assert "missing: pip install 'skillpress[train]'" in said and f"in {skillpress.folder};" in said


@pytest.mark.parametrize(
    ("words", "layers"),
    [
        (["run"], "train,pipeline"),
        (["evaluate", "--agent", "explorer", "--environment", "countdown"], "train"),
        (["serve", "--environment", "countdown"], "serve"),
        (["reverse-parse", "--output", "x"], "train"),
    ],
)
def test_a_command_that_lacks_a_layer_says_so_in_one_line(
    skillpress: Installed, words: Sequence[str], layers: str
) -> None:
    out, said = skillpress(*words, code=exit_codes.USER_ERROR)
    assert not out and len(said.splitlines()) == 1
    assert said.startswith(f"{words[0]}: needs the layer") and f"pip install 'skillpress[{layers}]'" in said
    assert not list(skillpress.folder.iterdir()), "it did nothing"


@pytest.mark.parametrize("stored", ["log.jsonl", "log.zip", "log.parquet", "log.arrow"])
def test_skills_finds_the_same_routines_as_with_everything_installed(
    skillpress: Installed, log: Path, stored: str, tmp_path: Path
) -> None:
    words = ["skills", str(log.with_name(stored)), "--success", "solved", "--output"]
    skillpress(*words, tmp_path / "bare")
    assert main([*words, str(tmp_path / "whole")]) == 0
    for name in ("dictionary.json", "phrases.csv", "skills.html"):
        assert (tmp_path / "bare" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


def test_export_writes_what_needs_no_layer(skillpress: Installed, run: Path, tmp_path: Path) -> None:
    episodes = run / EVALUATION_ROLLOUTS
    for form in ("atif", "sharegpt"):
        output = tmp_path / f"{form}.jsonl"
        said, _ = skillpress("export", "--format", form, episodes, "--output", output)
        assert said.startswith("36 episodes") and len(output.read_text().splitlines()) == 36
    refused = ("export", "--format", "datasets", episodes, "--output", tmp_path / "rows")
    assert "skillpress[train]" in skillpress(*refused, code=exit_codes.USER_ERROR)[1]


def test_compare_says_the_same_as_with_everything_installed(
    skillpress: Installed, evaluations: tuple[Path, Path], tmp_path: Path
) -> None:
    skillpress("compare", *evaluations, "--output", tmp_path / "bare")
    assert main(["compare", *map(str, evaluations), "--output", str(tmp_path / "whole")]) == 0
    bare, whole = ((tmp_path / name / "comparison.md").read_text() for name in ("bare", "whole"))
    assert bare == whole and "12 tasks" in bare


def test_tables_says_the_same_as_with_everything_installed(
    skillpress: Installed, run: Path, tmp_path: Path
) -> None:
    skillpress("tables", run, "--out", tmp_path / "bare")
    assert main(["tables", str(run), "--out", str(tmp_path / "whole")]) == 0
    bare, whole = ((tmp_path / name / "tables.md").read_text() for name in ("bare", "whole"))
    assert bare == whole and "Table 1" in bare


def test_runs_says_the_same_as_with_everything_installed(
    skillpress: Installed, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare, _ = skillpress("runs", run)
    assert main(["runs", str(run)]) == 0
    assert bare == capsys.readouterr().out and "SegCost (buffer)" in bare


def test_view_serves_the_episodes(skillpress: Installed, run: Path) -> None:
    started = subprocess.Popen(
        skillpress.command("view", run, "--no-browser"), cwd=skillpress.folder, env=skillpress.variables,
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert started.stdout is not None
    try:
        line = started.stdout.readline()
        assert line.startswith("36 episodes of 1 file: http://"), line
        with urllib.request.urlopen(line.split()[5], timeout=60) as page:
            assert b"<html" in page.read()
    finally:
        started.send_signal(signal.SIGINT)
        started.wait(60)
        started.stdout.close()


PAGE = Path("docs/extending.md")
BLOCK = re.compile(r"^```(?:python|yaml)\n# ((?:my_lab|params)/\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
METHOD = Path("my_lab/batch_baseline.py")
ENVIRONMENT = "my_lab.number_line:NumberLine"
LAB = ("--params", "params/my_lab.yaml", "--params", "params/my_algorithm.yaml")


def test_a_new_lab_runs_what_the_page_shows_and_an_edit_reruns_the_stages_that_use_it(
    wheel: Path, repository: Path, tmp_path: Path
) -> None:
    """The package alone comes from the wheel; what it depends on is this environment's."""
    pip(Path(sys.executable), "install", "--no-deps", "--target", tmp_path / "site", wheel)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MLFLOW", "PREFECT"))}
    variables = kept | {"PYTHONPATH": str(tmp_path / "site")}

    def said(*words: str, folder: Path) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "skillpress.cli.command", *words],
            cwd=folder, env=variables, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def stages(*words: str, folder: Path) -> list[str]:
        """The stages that ran, in their order."""
        return re.findall(r"^Running stage '(\w+)'", said(*words, folder=folder), re.MULTILINE)

    said("init", str(tmp_path / "lab"), folder=tmp_path)
    write_page(repository / PAGE, tmp_path / "lab")
    assert said("upgrade", "--dry-run", folder=tmp_path / "lab").endswith("no file differs\n")
    assert "  ok     demonstrations " in said("check", ENVIRONMENT, "--tasks", "12", folder=tmp_path / "lab")
    assert len(stages("run", *LAB, folder=tmp_path / "lab")) == 11
    (made,) = (tmp_path / "lab" / "workspaces").glob("*/results/report.html")
    assert "my_lab" in made.read_text(encoding="utf-8")
    model = made.parents[1] / "models" / "policy"
    assert np.isfinite(load_file(model / "model.safetensors")["model.embed_tokens.weight"]).all()
    even = ("--params", "params/even.yaml", "--tasks", "4", "--votes", "1")  # the page's engine
    playing = ("evaluate", "--model", str(model), "--environment", ENVIRONMENT, *even)
    assert "page: " in said(*playing, folder=tmp_path / "lab")
    method = tmp_path / "lab" / METHOD
    method.write_text(method.read_text(encoding="utf-8") + "\n# A comment changes no code.\n")
    assert stages("run", *LAB, folder=tmp_path / "lab") == ["pin_inputs"]
    method.write_text(method.read_text(encoding="utf-8") + "CHANGED = True\n")
    found = stages("run", *LAB, folder=tmp_path / "lab")
    # The weights come out as before, so nothing is evaluated again. The report shows seconds of the training.
    assert found[:2] == ["pin_inputs", "train_policy"] and set(found[2:]) <= {"report"}


LAB_PAGE = Path("docs/lab.md")


def test_the_pages_first_commands_work_one_after_the_other_and_install_nothing_twice(
    wheel: Path, repository: Path, tmp_path: Path
) -> None:
    """In a fresh environment that finds this one's packages, apart from skillpress, by a .pth file. pip gets
    skillpress from the wheel's folder, and from nowhere else."""
    (words,) = re.findall(
        r"```\n(pip install .*?)```", (repository / LAB_PAGE).read_text(encoding="utf-8"), re.DOTALL
    )
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    pip(environment / "bin" / "python", "uninstall", "--yes", "setuptools")  # torch needs a later one
    own, others = (Path(sysconfig.get_path("purelib", vars=base(place))) for place in (environment, None))
    (tmp_path / "others").mkdir()
    for entry in others.iterdir():
        if not re.match(r"(__editable__.*)?skillpress|pip\b", entry.name.replace("-", "_")):
            (tmp_path / "others" / entry.name).symlink_to(entry)
    (own / "others.pth").write_text(str(tmp_path / "others"))
    kept = {name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ}
    variables = {**kept, "PATH": f"{environment / 'bin'}:/usr/bin:/bin"}
    variables |= {"PIP_FIND_LINKS": str(wheel.parent), "PIP_NO_INDEX": "1"}
    done = subprocess.run(
        ["bash", "-e", "-c", words], cwd=tmp_path, env=variables, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lab = tmp_path / "my-study"
    assert "  ok     demonstrations " in done.stdout and "6 passed" in done.stdout
    (report,) = (lab / "workspaces").glob("*/results/report.html")
    assert str(report.relative_to(lab)) in done.stdout
    assert not (lab / ".venv").exists(), "skillpress was installed already"
    recorded = (lab / "origin.mk").read_text(encoding="utf-8")
    assert f"INSTALLED ?= {environment}/bin/python" in recorded
    assert f"PIP_FIND_LINKS ?= {wheel.parent}\n" in recorded


def base(place: Path | None) -> dict[str, str]:
    """sysconfig's variables of an environment; None means this one."""
    return {} if place is None else {"base": str(place), "platbase": str(place)}


def write_page(page: Path, lab: Path) -> None:
    """Put the files that the page shows into a lab. Those that a new lab has already are the same."""
    shown = BLOCK.findall(page.read_text(encoding="utf-8"))
    assert sum((lab / place).is_file() for place, _ in shown) == 4 and len(shown) == 6
    for place, content in shown:
        if (lab / place).is_file():
            assert (lab / place).read_text(encoding="utf-8") == content, place
        (lab / place).write_text(content, encoding="utf-8")


def pip(python: Path, *words: str | Path) -> None:
    command = [python, "-m", "pip", "--disable-pip-version-check", "--quiet", *words]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def mib(folder: Path) -> float:
    """What the files below a folder take."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 2**20
