"""A clone of the repository in its present state, for tests that run the real pipeline."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from copy import copy
from pathlib import Path
from typing import IO, Any

import yaml

from skillpress.experiment.params import merge, read_yaml
from skillpress.pipeline.reproduce.lock import exclusive
from skillpress.pipeline.reproduce.workspace import source_files
from skillpress.pipeline.settings import read


class Clone:
    """A fresh ``git clone`` (uncommitted changes included) with the smoke overlay as its params.yaml.

    If the folder is already a clone, it is not changed.
    """

    def __init__(self, repository: Path, folder: Path) -> None:
        self.folder = folder
        known = read(repository / "infra" / "settings.env", repository)
        # Importing flows gives this process a secret of Prefect; to a run it would name a server elsewhere.
        ours = {k: v for k, v in os.environ.items() if k not in known and not k.startswith("PREFECT_")}
        # Runs have no traces, because these take seconds; tests that need traces turn them on.
        self.environment = ours | {"HF_HUB_OFFLINE": "1", "SKILLPRESS_TRACES": "0"}
        if not (folder / ".git").exists():
            self._make(repository)

    def _make(self, repository: Path) -> None:
        for path in [*source_files(repository), Path("params.yaml")]:
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(repository / path, self.folder / path)
        self.set_params(read_yaml(repository / "params" / "smoke.yaml"))
        git = ["git", "-c", "user.name=test", "-c", "user.email=test@localhost"]
        for command in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "clone"]):
            subprocess.run([*git, *command], cwd=self.folder, check=True)

    def cloned(self, folder: Path) -> Clone:
        """A clone as another machine would have it: the same commit and its own cache."""
        subprocess.run(["git", "clone", "--quiet", str(self.folder), str(folder)], check=True)
        return self._at(folder)

    def copied(self, folder: Path) -> Clone:
        """A copy in another folder with the cache, all outputs and MLflow's runs, whose files stay here."""
        shutil.copytree(self.folder, folder, symlinks=True, dirs_exist_ok=True)
        return self._at(folder)

    def _at(self, folder: Path) -> Clone:
        other = copy(self)
        other.folder, other.environment = folder, dict(self.environment)
        return other

    def set_params(self, overlay: Mapping[str, Any]) -> None:
        """Apply an overlay to the clone's params.yaml."""
        path = self.folder / "params.yaml"
        path.write_text(yaml.safe_dump(merge(read_yaml(path), overlay), sort_keys=False))

    def python(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run ``python -m ...`` in the clone."""
        return subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=self.folder, env=self.environment | variables, capture_output=True, text=True, check=False,
        )  # fmt: skip

    def start(self, *arguments: str, output: IO[str] | int = subprocess.PIPE) -> subprocess.Popen[str]:
        """The same without waiting, in a new process group; errors go to its stdout.

        A process with much output needs a file for it: when a pipe without a reader is full, the process
        stops.
        """
        return subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=self.folder, env=self.environment, text=True, start_new_session=True,
            stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def ran(self, output: str) -> list[str]:
        """The stages that DVC reported as run, except the one that always runs."""
        ran = [line.split("'")[1] for line in output.splitlines() if line.startswith("Running stage")]
        return [stage for stage in ran if stage != "pin_inputs"]


SECONDS = 600.0
"""The most seconds to reproduce the small experiment; another process waits as long for it."""
SAID = "said.txt"


def reproduced_clone(repository: Path, folder: Path) -> Clone:
    """A clone in which the small experiment has been reproduced once, traces of its episodes included.

    The first process that asks makes it under ``folder``, and the others use it. Tests that change it take a
    copy. The command's output is in ``said.txt`` next to it.
    """
    folder.mkdir(exist_ok=True)
    with exclusive(folder / "lock", "the reproduced clone", SECONDS):
        clone = Clone(repository, folder / "clone")
        if not (folder / SAID).exists():
            done = clone.python("skillpress.pipeline.reproduce", SKILLPRESS_TRACES="8")
            assert done.returncode == 0, done.stdout + done.stderr
            (folder / SAID).write_text(done.stdout)
    return clone
