"""A mistake in an overlay is named before anything heavy is imported: torch and transformers take seconds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.programs import importing

pytestmark = pytest.mark.heavy

PROBE = """
import json, sys
from importlib import import_module

module, arguments = sys.argv[1], sys.argv[2:]
try:
    code = import_module(module).main(arguments)
except SystemExit as end:
    code = end.code
print(json.dumps([code, sorted({"torch", "transformers", "deepspeed"} & set(sys.modules))]))
"""
CONSOLE = "skillpress.cli.command"
MODEL = ("--model", "no/such-model")
COMMANDS = {
    "run": (CONSOLE, "run"),
    "make run": ("flows.run",),
    "run as a module": ("skillpress.pipeline.reproduce.__main__",),
    "dry run": (CONSOLE, "run", "--dry-run"),
    "dry run of devices": (CONSOLE, "run", "--dry-run", "--devices", "8", "--device-memory", "80"),
    "launch": (CONSOLE, "run", "--dry-run", "--launch", "slurm"),
    "check": (CONSOLE, "check"),
    "check of a name": (CONSOLE, "check", "countdown"),
    "evaluate": (CONSOLE, "evaluate", *MODEL, "--environment", "countdown"),
    "evaluate at a URL": (
        CONSOLE,
        "evaluate",
        "--model",
        "http://127.0.0.1:9/v1",
        "--environment",
        "countdown",
    ),
    "evaluate the explorer": (CONSOLE, "evaluate", "--agent", "explorer", "--environment", "countdown"),
    "reverse-parse": (CONSOLE, "reverse-parse", *MODEL, "--environment", "countdown", "--output", "nowhere"),
    "judge-questions": (CONSOLE, "judge-questions", *MODEL, "--output", "nowhere"),
    "judge-answers": (CONSOLE, "judge-answers", ".", *MODEL),
    "serve": (CONSOLE, "serve", "--environment", "countdown"),
    "ablation": ("flows.ablation", "--params", "params/grpo.yaml"),
}


@pytest.fixture(scope="module")
def misspelt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An overlay with a key that does not exist."""
    file = tmp_path_factory.mktemp("overlays") / "misspelt.yaml"
    file.write_text("training:\n  setps: 3\n")
    return file


def started(repository: Path, *words: str) -> tuple[int, list[str], str]:
    """(exit code, imported heavy modules, standard error) of a command in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *words],
        cwd=repository, env=importing(), capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    code, heavy = json.loads(done.stdout.splitlines()[-1])
    return code, heavy, done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_a_misspelt_key_is_named_before_torch_is_imported(
    command: str, repository: Path, misspelt: Path
) -> None:
    code, heavy, said = started(repository, *COMMANDS[command], "--params", str(misspelt))
    assert "training.setps: unknown key; did you mean 'steps'?" in said
    assert (code, heavy) == (2, [])


@pytest.mark.parametrize("command", ["dry run", "check", "evaluate", "make run"])
def test_a_misspelt_file_is_named_before_torch_is_imported(command: str, repository: Path) -> None:
    code, heavy, said = started(repository, *COMMANDS[command], "--params", "params/nope.yaml")
    assert "params/nope.yaml: cannot be read" in said
    assert (code, heavy) == (2, [])


def test_no_shipped_overlay_needs_torch_to_be_checked(repository: Path) -> None:
    """Otherwise a mistake in one like it would wait for torch."""
    script = (
        "import sys; from pathlib import Path; from skillpress.experiment.params import load_params\n"
        "for overlay in sorted(Path('params').glob('*.yaml')):\n"
        "    load_params('params.yaml', overlay)\n"
        "    assert not {'torch', 'transformers'} & set(sys.modules), overlay\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=repository, env=importing(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_make_names_a_missing_overlay_before_it_installs_anything(repository: Path) -> None:
    done = subprocess.run(
        ["make", "--silent", "run", "PARAMS=params/grpo.yaml params/nope.yaml", "VENV=/nowhere/venv"],
        cwd=repository, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("PARAMS: there is no file params/nope.yaml\n")
