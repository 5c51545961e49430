"""A command that looks at a stranger's experiment runs none of its code and shows no terminal escapes.

One experiment has every trap that is known: parameters and tasks that name modules, modules named as
libraries, settings that start programs and load libraries, models with pickles and with code of their own,
and escapes in records and logs. Every command that looks is tried on it. A new command is listed here, or
says that it runs code.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import yaml

from skillpress.cli.command import COMMANDS, main
from skillpress.core.names import CodeNotRunError, check_name, looking, search_lab
from skillpress.core.registry import ALGORITHMS
from skillpress.core.rollout_files import write_rollouts
from skillpress.core.sequence_files import write_sequences
from skillpress.core.task_files import read_tasks, write_tasks
from skillpress.core.trajectory import SkillSequence
from skillpress.experiment.params import check_params, merge, read_yaml
from skillpress.pipeline.files import BASE_ROLLOUTS, SEQUENCES, split_file
from tests.support.integrations.trace_records import chat
from tests.support.pages import ROOT
from tests.support.pipeline.finished_run import play_run
from tests.support.reports.viewer_samples import ordinary

pytestmark = pytest.mark.heavy
NAME = "evil:PART"
ESCAPE = "\x1b]0;owned\x07\x1b[2J\u202e<script>document.title='owned'</script>"
MODULES = (
    "evil",
    "numpy",
    "polars",
    "json",
    "sitecustomize",
    "usercustomize",
    "torch",
    "tokenizers",
    "modeling_evil",
)
PARTS = {
    "environment": {"name": NAME, "max_steps": 8, "own": {"key": [1, ESCAPE]}},
    "policy": {"rendering": NAME, "parser": NAME, "state_update": NAME},
    "skills": {"search": NAME, "corpus": NAME, "dictionaries": NAME, "closure": NAME},
    "reward": {"shaping": NAME},
    "algorithm": {"name": NAME, "kl_coefficient": 0.0, "select": {"name": NAME}},
    "engine": {"name": NAME},
    "experience": {"name": NAME},
}
"""Every parameter that can name a module."""
FOREIGN = {
    "environment": {
        "name": "gymnasium_text", "id": "evil:Evil-v0", "module": "evil", "oracle": NAME, "kwargs": {},
        "max_steps": 8, "won": {"reward": 1.0},
    },
    "policy": {"rendering": "text", "parser": "rendering", "model": "models/evil"},
}  # fmt: skip
PROGRAM = {
    "environment": {
        "name": "program", "max_steps": 8, "run": NAME, "verify": NAME, "tasks": "log.jsonl", "seconds": 9.0,
        "isolation": "none",
    },
    "policy": {"rendering": "requests", "parser": "rendering", "model": "models/evil"},
    "imitation": {"demonstrations": 0},
}  # fmt: skip
"""Environments of ours that import what their sections name."""
PLAYED = str(BASE_ROLLOUTS)
LOOKING = {
    "init": [["init", "OUT/lab"]],
    "compare": [["compare", "results/evaluations/a", "results/evaluations/b", "--output", "OUT/comparison"]],
    "trajectory-ratio": [
        ["trajectory-ratio", PLAYED, "models/evil", "models/evil", "--policy", "start", "--output", "OUT"]
    ],
    "choice": [["choice", "."], ["choice", "foreign"]],
    "view": [],
    "runs": [["runs"], ["runs", "foreign", "--csv", "OUT/runs.csv"], ["runs", "program"]],
    "tables": [["tables", each, "--out", "OUT/tables"] for each in (".", "foreign", "program")],
    "export": [["export", "--format", "atif", PLAYED, "--output", "OUT/a", "--tokenizer", "models/evil"]],
    "skills": [["skills", "log.jsonl", "--output", "OUT/skills"], ["skills", ".", "--output", "OUT/more"]],
    "rules": [["rules", "log.jsonl", "--output", "OUT/rules.yaml"]],
    "serve-retriever": [["serve-retriever", "--passages", "log.jsonl", "--indexes", "OUT/indexes"]],
    "upgrade": [["upgrade", "--dry-run"]],
    "doctor": [["doctor"]],
}  # fmt: skip
"""Command to what is tried with it; ``view`` does not end, so it has a test of its own."""
DRIVER = """
import contextlib, io, json, os, sys, traceback
from skillpress.cli.command import main
found = {}
for number, words in enumerate(json.loads(sys.argv[1])):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            code = main(words)
        except Exception:
            code = traceback.format_exc()
    found[number] = code, out.getvalue()
print(json.dumps({"found": found, "variables": dict(os.environ)}))
"""


class Trap:
    """Unpickled, it leaves a mark."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self._mark),)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which every trap that is sprung leaves a mark."""
    return tmp_path_factory.mktemp("ran")


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory, repository: Path, ran: Path, explored: Path) -> Path:
    """The hostile experiment: it is a lab, a finished run, and beside a second one, ``foreign``."""
    folder = play_run(tmp_path_factory.mktemp("somebody") / "else", repository)
    write_rollouts(folder / BASE_ROLLOUTS, ordinary(count=2))
    won = [SkillSequence(f"p{n // 2}", n % 2, True, (ESCAPE, "b")[: 1 + n % 2]) for n in range(24)]
    write_sequences(folder / SEQUENCES, won)
    for name in ("foreign", "program"):
        shutil.copytree(folder, folder.parent / name)
    for name in ("foreign", "program"):
        shutil.move(folder.parent / name, folder / name)
    for place, parts in ((folder, PARTS), (folder / "foreign", FOREIGN), (folder / "program", PROGRAM)):
        values = read_yaml(place / "params.yaml")
        for section, keys in parts.items():
            values[section] = dict(keys) if "name" in keys else values[section] | keys
        (place / "params.yaml").write_text(yaml.safe_dump(values))
        tasks = read_tasks(place / split_file("test"))
        write_tasks(place / split_file("test"), [replace(task, environment="evil:PART") for task in tasks])
    for module in MODULES:
        (folder / f"{module}.py").write_text(f"import os\nos.makedirs({str(ran / module)!r})\nPART = dict\n")
    (folder / "dvc.yaml").write_text("stages: {}\n")
    (folder / ".skillpress.json").write_text(
        json.dumps({"schema": "skillpress/lab/1", "name": ESCAPE, "version": "0", "files": {}})
    )
    (folder / "infra").mkdir()
    (folder / "infra" / "settings.env").write_text(
        "BROWSER ?= evil\nLD_PRELOAD ?= evil\nPYTHONPATH ?= $(CURDIR)\n"
    )
    write_model(folder / "models" / "evil", ran)
    for name in "ab":
        write_evaluation(explored, folder / "results" / "evaluations" / name)
    lines = [chat(id=f"{ESCAPE}{n}", model=ESCAPE) for n in range(30)]
    (folder / "log.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return folder


def write_model(folder: Path, ran: Path) -> None:
    """A model that wants to run code of its own, whose weights are a pickle."""
    folder.mkdir(parents=True)
    named = {
        name: f"modeling_evil.{name}" for name in ("AutoConfig", "AutoModelForCausalLM", "AutoTokenizer")
    }
    config = {"model_type": "evil", "architectures": ["Evil"], "auto_map": named, "vocab_size": 8}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "Evil", "auto_map": named}))
    (folder / "tokenizer.json").write_text("{}")
    (folder / "modeling_evil.py").write_text(f"import os\nos.makedirs({str(ran / 'model')!r})\n")
    for name in ("pytorch_model.bin", "training_args.bin"):
        (folder / name).write_bytes(pickle.dumps(Trap(ran / name)))


def write_evaluation(source: Path, folder: Path) -> None:
    """An evaluation of the hostile environment."""
    shutil.copytree(source, folder)
    record = json.loads((folder / "evaluation.json").read_text())
    record["label"] = record["environment_title"] = f"{ESCAPE}{folder.name}"
    record["parameters"]["environment"]["name"] = "evil:PART"
    record["parameters"]["seed"] = ord(folder.name)
    (folder / "evaluation.json").write_text(json.dumps(record))


def variables(repository: Path) -> dict[str, str]:
    """The environment of the installed command: no folder of the experiment is on the path of imports."""
    hidden = ("BROWSER", "LD_PRELOAD", "DISPLAY")
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    return kept | {"PYTHONPATH": str(repository), "PYTHONSAFEPATH": "1"}


@pytest.fixture(scope="module")
def looked(experiment: Path, repository: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What every command did there: its exit code, or a traceback, and all that it printed."""
    out = str(tmp_path_factory.mktemp("out"))
    asked = [[word.replace("OUT", out) for word in words] for each in LOOKING.values() for words in each]
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, json.dumps(asked)],
        cwd=experiment, env=variables(repository), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    found: dict[str, list[Any]] = {name: [] for name in LOOKING}
    for words, each in zip(asked, answer["found"].values(), strict=True):
        found[words[0]].append(each)
    return {**found, "variables": answer["variables"], "out": Path(out)}


def test_every_command_says_that_it_runs_code_or_is_tried_here() -> None:
    assert set(LOOKING) == {name for name, command in COMMANDS.items() if not command.runs_code}


@pytest.mark.parametrize("name", [name for name in LOOKING if name != "view"])
def test_a_command_that_looks_runs_nothing_and_prints_no_escapes(
    name: str, looked: dict[str, Any], ran: Path
) -> None:
    for code, printed in looked[name]:
        assert code in (0, 2), f"{code}\n{printed}"
        assert not {"\x1b", "\x07", "\u202e"} & set(printed)
    assert list(ran.iterdir()) == []


def test_the_settings_of_a_lab_start_no_program_and_load_no_library(looked: dict[str, Any]) -> None:
    assert not {"BROWSER", "LD_PRELOAD"} & set(looked["variables"])


def test_no_page_that_is_written_runs_what_a_log_says(looked: dict[str, Any]) -> None:
    pages = list(looked["out"].rglob("*.html"))
    assert {page.name for page in pages} >= {"skills.html"}
    assert not any("<script>document" in page.read_text() for page in pages)


def test_the_traps_lie_where_the_commands_pass(looked: dict[str, Any]) -> None:
    """A refusal before the trap would show nothing."""
    assert "models/evil" in looked["trajectory-ratio"][0][1]
    assert "models/evil/tokenizer.json: not a tokenizer" in looked["export"][0][1]
    assert [code for code, _ in looked["skills"]] == [0, 0] and looked["rules"][0][0] == 0
    assert looked["doctor"][0][1] and looked["upgrade"][0][1]


def test_what_the_record_holds_is_shown_and_a_sentence_says_what_was_left_out(looked: dict[str, Any]) -> None:
    (code, runs), *others = looked["runs"]
    assert code == 0 and "runs: 1 finished runs of 1 methods" in runs and "Pass@1" in runs, runs
    assert (
        "runs: environment.name: the code of 'evil:PART' is not run, so only what files say about it" in runs
    )
    assert runs.count("the code of 'evil:PART'") == 1, "once is enough"
    assert all(code == 0 and "Pass@1" in printed for code, printed in others), others
    assert looked["compare"][0][0] == 0 and "\\u001b]0;owned\\u0007" in looked["compare"][0][1]
    code, choice = looked["choice"][0]
    assert code == 2 and "is 'evil:PART', and its code is needed here" in choice and "--run-code" in choice


@pytest.mark.kills
def test_the_viewer_shows_the_episodes_without_their_skills(
    experiment: Path, repository: Path, ran: Path
) -> None:
    command = [sys.executable, "-m", "skillpress.cli.command", "view", ".", "foreign", "log.jsonl",
               "results/evaluations/a", "--no-browser"]  # fmt: skip
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=experiment, env=variables(repository), **pipes) as running:
        assert running.stdout is not None and running.stderr is not None
        try:
            line = running.stdout.readline()
            address = line.split(": ", 1)[1].split(" ")[0]
            for path in ("api/about", "api/dictionary", f"api/episode/{first_of(address)}"):
                with urlopen(address + path, timeout=60) as answer:
                    assert answer.status == 200
        finally:
            running.send_signal(signal.SIGINT)
            running.wait(timeout=60)
        told = running.stderr.read()
    assert "view: environment.name: the code of 'evil:PART' is not run" in told
    assert list(ran.iterdir()) == []


def first_of(address: str) -> str:
    """The name of the first episode."""
    with urlopen(f"{address}api/episodes", timeout=60) as answer:
        return str(json.load(answer)["rows"][0]["id"])


@pytest.fixture
def inside(experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working directory is a folder with a module ``trusted``, which leaves a mark."""
    (tmp_path / "trusted.py").write_text("open('ran', 'w').close()\n\n\nclass PART:\n    advantages = None\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("trusted", None)


def test_with_run_code_the_reader_takes_the_responsibility(
    inside: Path, experiment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = read_yaml(experiment / "params.yaml")
    values["environment"]["name"] = "trusted:PART"
    shutil.copytree(experiment / "data", inside / "data")
    (inside / "params.yaml").write_text(yaml.safe_dump(values))
    assert main(["choice", "."]) == 2
    assert not (inside / "ran").exists()
    assert main(["choice", ".", "--run-code"]) == 2, "it is no environment"
    assert (inside / "ran").exists()
    assert "evil" in capsys.readouterr().err


def test_neither_suggestions_nor_other_ways_to_the_folder_import_anything(inside: Path) -> None:
    with looking(lambda line: None):
        with pytest.raises(ValueError, match="allowed"):
            check_name(ALGORITHMS, "trusted")
        with pytest.raises(CodeNotRunError, match="--run-code"):
            search_lab()
        assert check_name(ALGORITHMS, "trusted:PART") == "trusted:PART"
        assert not (inside / "ran").exists()
    assert check_name(ALGORITHMS, "trusted:PART") == "trusted:PART"
    assert (inside / "ran").exists(), "what looks no longer runs code as before"


def test_a_scratch_policys_run_is_read_although_its_environment_is_not_imported() -> None:
    named = {"environment": {"name": NAME, "max_steps": 8, "own": 1}, "tasks": {"unseen": 4}}
    with looking(lambda said: None):
        params = check_params(merge(read_yaml(ROOT / "params.yaml"), named), "a record")
    assert params.policy.from_scratch and params.environment.name == NAME
